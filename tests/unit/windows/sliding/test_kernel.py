"""The compiled sliding windows against the rules, followed line by line over a dict of windows."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionkit.base.compiled import NOTHING
from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, OPENED
from sessionkit.errors import NumberOverflow
from sessionkit.windows.sliding import blocks
from sessionkit.windows.sliding.finals import sliding_best, sliding_total
from sessionkit.windows.sliding.running import running_best, running_total
from sessionkit.windows.sliding.structure import SlidingStructure, sliding_structure
from sessionkit.windows.sliding.touches import sliding_touches
from tests.interpreted import fewer

NO_LONGS = np.empty(0, np.int64)
NO_INTS = np.empty(0, np.int32)
EVERY = np.empty(0, np.bool_)


# ---- the rules


class Window(NamedTuple):
    """The records in a window, in order of arrival, and the largest of their times."""

    records: tuple[int, ...]
    timestamp_ms: int


class Row(NamedTuple):
    """A result that Kafka forwards, or a drop."""

    effect: int
    start_ms: int
    window: Window | None = None
    source_ms: int | None = None


class Rules:
    """KStreamSlidingWindowAggregate for one key, on a dict of windows by start."""

    def __init__(self, difference_ms: int) -> None:
        self.difference_ms = difference_ms
        self.windows: dict[int, Window] = {}
        self.made: list[int] = []

    def process(self, record: int, t: int, close_ms: int) -> list[Row]:
        self.record, self.t, self.close_ms, self.rows = record, t, close_ms, list[Row]()
        if t + self.difference_ms < close_ms:
            self.rows.append(Row(LATE, max(0, t - self.difference_ms)))
        elif t < self.difference_ms:
            self._early()
        else:
            self._usual()
        return self.rows

    def _starts(self, first_ms: int, last_ms: int) -> list[int]:
        if last_ms - first_ms < len(self.windows):
            return [s for s in range(first_ms, last_ms + 1) if s in self.windows]
        return sorted(s for s in self.windows if first_ms <= s <= last_ms)

    def _put(self, row: Row) -> None:
        assert row.window is not None
        if row.start_ms not in self.windows:
            self.made.append(row.start_ms)
        self.windows[row.start_ms] = row.window
        self.rows.append(row)

    def _update(self, start_ms: int, base: Window | None, effect: int, source_ms: int | None = None) -> None:
        if start_ms + self.difference_ms >= self.close_ms:
            records, newest_ms = base or ((), self.t)
            window = Window((*records, self.record), max(self.t, newest_ms))
            self._put(Row(effect, start_ms, window, source_ms))
        else:
            self.rows.append(Row(LATE, start_ms))

    def _usual(self) -> None:
        d, t = self.difference_ms, self.t
        previous_ms = left = right = None
        left_exists = right_exists = False
        starts = set()
        for start_ms in reversed(self._starts(max(0, t - 2 * d), t + 1)):
            window = self.windows[start_ms]
            starts.add(start_ms)
            if start_ms == t + 1:
                right_exists = True
            elif start_ms + d > t:
                right = right or (start_ms, window)
                self._update(start_ms, window, ADDED)
            elif start_ms + d == t:
                left_exists = True
                self._update(start_ms, window, ADDED)
                if window.timestamp_ms >= t:
                    return
                previous_ms = window.timestamp_ms
            else:
                left, previous_ms = (start_ms, window), window.timestamp_ms
                break
        if previous_ms is not None and previous_ms + 1 not in starts and previous_ms + 1 + d >= t:
            self._update(previous_ms + 1, None, OPENED)
        if not left_exists and left is not None and previous_ms is not None and previous_ms >= t - d:
            self._update(t - d, left[1], COPIED_ADDED, left[0])
        elif not left_exists:
            self._update(t - d, None, OPENED)
        if not right_exists and right is not None and right[1].timestamp_ms > t:
            self._put(Row(COPIED, t + 1, right[1], right[0]))

    def _early(self) -> None:
        t = self.t
        previous_ms = combined = right = None
        right_exists = False
        starts = self._starts(0, t + 1)
        for start_ms in starts:
            window = self.windows[start_ms]
            if start_ms == 0:
                combined = window
                previous_ms = window.timestamp_ms if window.timestamp_ms < t else None
            elif start_ms <= t:
                right = (start_ms, window)
                self._update(start_ms, window, ADDED)
            else:
                right_exists = True
        if right is None and combined is not None and combined.timestamp_ms > t:
            right = (0, combined)
        if not right_exists and right is not None and right[1].timestamp_ms > t:
            self._put(Row(COPIED, t + 1, right[1], right[0]))
        if previous_ms is not None and previous_ms + 1 not in starts:
            self._update(previous_ms + 1, None, OPENED)
        self._update(0, combined, OPENED if combined is None else ADDED)


# ---- streams


class Stream(NamedTuple):
    """Records of a few slots in one partition; slot -1 is skipped and does not move stream time."""

    slot: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    slots: int
    time_difference_ms: int
    grace_ms: int

    @property
    def stair(self) -> npt.NDArray[np.int64]:
        """Stream time with each record."""
        return np.maximum.accumulate(np.where(self.slot >= 0, self.times, -1)) if len(self.slot) else NO_LONGS


def make_stream(slots: list[int], times: list[int], difference_ms: int, grace_ms: int) -> Stream:
    count = max([0, *slots]) + 1
    return Stream(np.array(slots, np.int32), np.array(times, np.int64), count, difference_ms, grace_ms)


def random_stream(seed: int, most: int = 50) -> Stream:
    """Few distinct times, much disorder, many records near the close line and near 0."""
    rng = random.Random(seed)
    d = rng.choice([1, 2, 3, 5, 8, 13, 40])
    grace = rng.choice([0, 0, 1, 2, d, 3 * d, 1000])
    now = rng.choice([0, 0, 0, d, 100])
    steps = rng.choice([[0, 1], [0, 0, 1, d], [1, 2, 3, d, d + 1], [0, 2 * d, 2 * d + 1, 3 * d + 2]])
    order, ahead, slots = rng.choice([0.2, 0.6, 0.9]), rng.choice([0, 0.1]), rng.choice([1, 1, 2, 3])
    slot, times = [], []
    for _ in range(rng.randint(0, most)):
        now += rng.choice(steps)
        back = rng.choice([rng.randint(0, 3), rng.randint(0, d), grace + rng.randint(0, d + 2), rng.randint(0, 3 * d)])
        t = now if rng.random() < order else max(0, now - back)
        times.append(t + (rng.randint(0, 2 * d) if rng.random() < ahead else 0))
        slot.append(-1 if rng.random() < 0.03 else rng.randrange(slots))
    return make_stream(slot, times, d, grace)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    d, grace = draw(st.integers(1, 8)), draw(st.sampled_from([0, 0, 1, 2, 5, 100]))
    records = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), max_size=30))
    return make_stream([s for s, _ in records], [t for _, t in records], d, grace)


def follow(stream: Stream) -> tuple[list[Rules], list[list[Row]], list[tuple[int, int, int]]]:
    """(the slots in the end, the rows of each record, windows as (slot, start, record) in the order of making)."""
    rules = [Rules(stream.time_difference_ms) for _ in range(stream.slots)]
    rows, made = [], []
    columns = (stream.slot.tolist(), stream.times.tolist(), stream.stair.tolist())
    for i, (slot, t, now) in enumerate(zip(*columns, strict=True)):
        rows.append([] if slot < 0 else rules[slot].process(i, t, now - stream.grace_ms))
        if slot >= 0:
            made += [(slot, start_ms, i) for start_ms in rules[slot].made]
            rules[slot].made.clear()
    return rules, rows, made


def decide(stream: Stream, lo: int = 0, hi: int | None = None, loaded: Any = None) -> SlidingStructure:
    slot, start_ms, timestamp_ms = loaded or (NO_INTS, NO_LONGS, NO_LONGS)
    records = (stream.slot[lo:hi], stream.times[lo:hi], stream.stair[lo:hi])
    limits = {"time_difference_ms": stream.time_difference_ms, "grace_ms": stream.grace_ms}
    return sliding_structure(*records, stream.slots, slot, start_ms, timestamp_ms, **limits)


# ---- values


class Values(NamedTuple):
    """A column with nulls; the sums of integers tell which records they are of."""

    whole: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float64]  # few distinct ones, so that there are ties
    valid: npt.NDArray[np.bool_]


def random_values(count: int, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    valid = EVERY if seed % 3 == 0 else rng.random(count) < 0.8
    return Values(rng.integers(-(2**40), 2**40, count), rng.integers(-2, 3, count) / 4, valid)


def expected(values: Values, records: tuple[int, ...]) -> tuple[Any, ...]:
    """count, count of values, sums, positions of the smallest, largest, first and last."""
    known = [i for i in records if not len(values.valid) or values.valid[i]]
    whole, floats = ({i: column[i].item() for i in known} for column in (values.whole, values.floats))
    if not known:
        return len(records), 0, 0, 0.0, *[NOTHING] * 4
    extremes = min(known, key=floats.__getitem__), max(known, key=floats.__getitem__)
    return len(records), len(known), sum(whole.values()), sum(floats.values()), *extremes, known[0], known[-1]


def aggregated(total: Any, best: Any, over: Any, values: Values) -> list[tuple[Any, ...]]:
    """As `expected`, by the loops for totals and for positions, of windows or of touches."""
    whole, floats, valid = values
    summed, failed = total(over, whole, valid, NO_LONGS)
    assert failed == -1
    counts = (total(over, None, which, NO_LONGS)[0] for which in (EVERY, valid))
    places = (best(over, 0, of, valid, last, NO_LONGS) for of in (floats, None) for last in (False, True))
    columns = (*counts, summed, total(over, floats, valid, np.empty(0))[0], *places)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def finals(structure: SlidingStructure, values: Values) -> list[tuple[Any, ...]]:
    return aggregated(sliding_total, sliding_best, structure, values)


def running(structure: SlidingStructure, values: Values) -> list[tuple[Any, ...]]:
    return aggregated(running_total, running_best, sliding_touches(structure), values)


# ---- the same


def decision_of(rows: list[Row]) -> int:
    effects = {row.effect for row in rows}
    if not rows:
        return 0
    return OPENED if effects & {OPENED, COPIED_ADDED} else ADDED if ADDED in effects else LATE


def check_structure(stream: Stream, structure: SlidingStructure) -> tuple[list[Rules], list[list[Row]]]:
    rules, rows, made = follow(stream)
    assert structure.decision.tolist() == [decision_of(mine) for mine in rows]
    assert structure.dropped.tolist() == [sum(row.effect == LATE for row in mine) for mine in rows]
    windows = (structure.slot, structure.start_ms, structure.opened_at)
    assert list(zip(*(column.tolist() for column in windows), strict=True)) == made
    newest = [rules[slot].windows[start_ms].timestamp_ms for slot, start_ms, _ in made]
    assert structure.timestamp_ms.tolist() == newest
    return rules, rows


def check_values(structure: SlidingStructure, rules: list[Rules], values: Values) -> None:
    keys = zip(structure.slot.tolist(), structure.start_ms.tolist(), strict=True)
    assert finals(structure, values) == [expected(values, rules[s].windows[start].records) for s, start in keys]


def check_touches(structure: SlidingStructure, rows: list[list[Row]], values: Values) -> None:
    touches = sliding_touches(structure)
    start_of = [*structure.start_ms.tolist(), None]
    found = [
        (record, effect, start_ms, start_of[window], start_of[source])
        for record, window, effect, start_ms, source in zip(*(column.tolist() for column in touches), strict=True)
    ]
    flat = [(i, row) for i, mine in enumerate(rows) for row in mine]
    assert found == [
        (i, row.effect, row.start_ms, None if row.window is None else row.start_ms, row.source_ms) for i, row in flat
    ]
    slots = structure.slot[touches.window[touches.window >= 0]]
    assert (slots == structure.records.slot[touches.record[touches.window >= 0]]).all()
    for value, (_, row) in zip(running(structure, values), flat, strict=True):
        assert row.window is None or value == expected(values, row.window.records)


def check_stream(stream: Stream, seed: int) -> None:
    structure, values = decide(stream), random_values(len(stream.slot), seed)
    rules, rows = check_structure(stream, structure)
    check_values(structure, rules, values)
    check_touches(structure, rows, values)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_random_streams_follow_the_rules(part: int) -> None:
    for seed in range(part * 250, part * 250 + fewer(250)):
        try:
            check_stream(random_stream(seed), seed)
        except AssertionError as error:
            raise AssertionError(f"random_stream({seed})") from error


@pytest.mark.slow
@given(streams(), st.integers(0, 5))
@settings(max_examples=fewer(200))
def test_any_stream_follows_the_rules(stream: Stream, seed: int) -> None:
    check_stream(stream, seed)


# ---- trees of several levels


def wide_stream(records: int, difference_ms: int, grace_ms: int, seed: int) -> Stream:
    """One slot with many windows: some records out of order, some of them partly late."""
    rng = np.random.default_rng(seed)
    times = 3 * difference_ms + np.cumsum(rng.integers(0, 9, records))
    times[rng.random(records) < 0.3] -= rng.integers(0, grace_ms + difference_ms)
    return make_stream([0] * records, times.tolist(), difference_ms, grace_ms)


@pytest.mark.slow
@pytest.mark.parametrize(("records", "difference_ms", "grace_ms"), [(2600, 60, 40), (150, 900, 300), (100, 5000, 9)])
def test_many_windows_in_one_slot(records: int, difference_ms: int, grace_ms: int) -> None:
    check_stream(wide_stream(records, difference_ms, grace_ms, records), 1)


@pytest.mark.thorough
@pytest.mark.parametrize("one_of", [2, 40, 3_000])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 4096, 4097, 9000])
def test_places_that_are_taken(size: int, one_of: int) -> None:
    rng, nodes = random.Random(size), np.empty(4 * blocks.MOST_LEVELS, np.int64)
    tree = np.zeros(blocks.tree_length(size), np.int32)
    taken: set[int] = set()
    for place in rng.sample(range(size), max(1, size // one_of)):
        blocks.take(tree, size, place)
        taken.add(place)
    asked = [(rng.randrange(size), rng.randint(0, size)) for _ in range(300)]
    for place, other in map(sorted, [*asked, (0, size), (size - 1, size)]):
        before = max((p for p in taken if p < place), default=blocks.NO_PLACE)
        assert blocks.taken_before(tree, size, place) == before
        assert blocks.taken_between(tree, size, place, other, nodes) == sum(place <= p < other for p in taken)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 64, 65, 300, 4096, 5000, 257 * 64])
def test_what_was_laid_over_places(size: int) -> None:
    rng, nodes, nothing = random.Random(size), np.empty(4 * blocks.MOST_LEVELS, np.int64), np.int64(2**63 - 1)
    length = blocks.tree_length(size)
    largest, sums = np.full(length, -1, np.int32), np.zeros(length, np.int64)
    keys, positions = np.full(length, nothing), np.full(length, nothing)
    plain = [(-1, 0, (int(nothing), int(nothing)))] * size
    for step in range(400):
        first, end, number = *sorted((rng.randint(0, size), rng.randint(0, size))), rng.randint(0, 50)
        if rng.random() < 0.6:
            blocks.lay_largest(largest, size, first, end, number, nodes)
            blocks.lay_sum(sums, size, first, end, number, nodes)
            blocks.lay_best(keys, positions, size, first, end, number, step, nodes)
            for p in range(first, end):
                high, total, best = plain[p]
                plain[p] = max(high, number), total + number, min(best, (number, step))
        elif first < size:
            blocks.set_largest(largest, size, first, number, -1, nodes)
            blocks.set_sum(sums, size, first, number, 0, nodes)
            blocks.set_best(keys, positions, size, first, number, step, nothing, nodes)
            plain[first] = number, number, (number, step)
        for p in (0, first % size, rng.randrange(size)):
            found = blocks.largest_at(largest, size, p), blocks.sum_at(sums, size, p)
            assert (*found, blocks.best_at(keys, positions, size, p)) == plain[p]


# ---- batches


def carried(structure: SlidingStructure, stream: Stream, hi: int) -> npt.NDArray[np.intp]:
    """Rows of the windows that a later record could still reach, in any order."""
    close_ms = int(stream.stair[:hi].max(initial=-1)) - stream.grace_ms
    last = structure.start_ms + stream.time_difference_ms
    rows = np.flatnonzero(last >= close_ms - 2 * stream.time_difference_ms)
    return np.random.default_rng(hi).permutation(rows)


def batch_finals(structure: SlidingStructure, values: Values, loaded: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Values instead of positions, so that they compare with those of a run in one batch."""
    whole, floats, valid = values
    columns = list(zip(*loaded, strict=True)) or [()] * 8
    counts, known, sums = (np.array(column, np.int64) for column in columns[:3])
    total, failed = sliding_total(structure, whole, valid, sums)
    assert failed == -1
    out: list[list[Any]] = [
        sliding_total(structure, None, EVERY, counts)[0].tolist(),
        sliding_total(structure, None, valid, known)[0].tolist(),
        total.tolist(),
        sliding_total(structure, floats, valid, np.array(columns[3], np.float64))[0].tolist(),
    ]
    for place, fold in enumerate(
        (
            lambda pool, mask, held: sliding_best(structure, len(held), pool, mask, False, held),
            lambda pool, mask, held: sliding_best(structure, len(held), pool, mask, True, held),
            lambda pool, mask, held: sliding_best(structure, len(held), None, mask, False, held),
            lambda pool, mask, held: sliding_best(structure, len(held), None, mask, True, held),
        )
    ):
        given_values = columns[4 + place]
        there = np.array([value is not None for value in given_values], np.bool_)
        pool = np.array([*(0.0 if value is None else value for value in given_values), *floats.tolist()])
        mask = np.concatenate([there, valid if len(valid) else np.ones(len(floats), np.bool_)])
        position = fold(pool, mask, np.where(there, np.arange(len(there)), NOTHING))
        out.append([None if p == NOTHING else pool[p].item() for p in position.tolist()])
    return list(zip(*out, strict=True))


def run_in_batches(stream: Stream, values: Values, cuts: list[int]) -> tuple[list[int], list[int], dict[Any, Any]]:
    """(decisions, drops, what each window holds in the end), the windows handed on from batch to batch."""
    decision, dropped, held = [], [], dict[tuple[int, int], Any]()
    slot, start_ms, timestamp_ms, loaded = NO_INTS, NO_LONGS, NO_LONGS, list[tuple[Any, ...]]()
    for lo, hi in zip([0, *cuts], [*cuts, len(stream.slot)], strict=True):
        structure = decide(stream, lo, hi, (slot, start_ms, timestamp_ms))
        mine = Values(values.whole[lo:hi], values.floats[lo:hi], values.valid[lo:hi])
        contents = batch_finals(structure, mine, loaded)
        decision += structure.decision.tolist()
        dropped += structure.dropped.tolist()
        assert (structure.opened_at[: len(slot)] == -1).all()
        assert (structure.opened_at[len(slot) :] >= 0).all()
        keys = list(zip(structure.slot.tolist(), structure.start_ms.tolist(), strict=True))
        held |= dict(zip(keys, zip(structure.timestamp_ms.tolist(), contents, strict=True), strict=True))
        rows = carried(structure, stream, hi)
        slot, start_ms, timestamp_ms = structure.slot[rows], structure.start_ms[rows], structure.timestamp_ms[rows]
        loaded = [contents[row] for row in rows.tolist()]
    return decision, dropped, held


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_any_cut_into_batches_gives_the_same(part: int) -> None:
    for seed in range(part * 100, part * 100 + fewer(100)):
        stream, rng = random_stream(seed), random.Random(-seed)
        values = random_values(len(stream.slot), seed)
        cuts = sorted(rng.randint(0, len(stream.slot)) for _ in range(rng.choice([1, 1, 4, 20])))
        assert run_in_batches(stream, values, cuts) == run_in_batches(stream, values, []), f"random_stream({seed})"


# ---- what values can do


def dense(count: int) -> Stream:
    """Everything is in one window."""
    return make_stream([0] * count, list(range(100, 100 + count)), 50, 0)


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_that_leaves_64_bits_is_found_at_its_first_record(seed: int) -> None:
    stream, rng = random_stream(seed), np.random.default_rng(seed)
    whole = rng.integers(-(2**62), 2**62, len(stream.slot)) >> rng.integers(0, 8)
    failed = -1
    for i, rows in enumerate(follow(stream)[1]):
        sums = [sum(whole[list(row.window.records)].tolist()) for row in rows if row.window and row.effect != COPIED]
        if any(not -(2**63) <= total < 2**63 for total in sums):
            failed = i
            break
    structure = decide(stream)
    assert sliding_total(structure, whole, EVERY, NO_LONGS)[1] == failed
    assert running_total(sliding_touches(structure), whole, EVERY, NO_LONGS)[1] == failed


def test_sums_at_the_border_of_64_bits() -> None:
    structure = decide(dense(3))
    for whole, failed in (([2**62, 2**62 - 1, 0], -1), ([2**62, 2**62, -5], 1), ([-(2**63), 0, -1], 2)):
        total, found = sliding_total(structure, np.array(whole), EVERY, NO_LONGS)
        assert found == failed
        assert failed >= 0 or total[structure.start_ms == 52].tolist() == [sum(whole)]


def test_loaded_sums_can_leave_64_bits_too() -> None:
    loaded = (np.zeros(1, np.int32), np.array([60]), np.array([90]))
    structure = decide(dense(3), loaded=loaded)
    largest = np.array([2**63 - 2])
    assert sliding_total(structure, np.array([1, 0, 0]), EVERY, largest)[1] == -1
    assert sliding_total(structure, np.array([1, 1, 0]), EVERY, largest)[1] == 1


def plain_extreme(values: list[float], records: tuple[int, ...], better: Callable[[float, float], bool]) -> int:
    best = NOTHING
    for i in records:
        if best == NOTHING or better(values[i], values[best]):
            best = i
    return best


@pytest.mark.parametrize("seed", range(30))
def test_smallest_and_largest_with_what_is_no_number(seed: int) -> None:
    stream, rng = random_stream(seed), random.Random(seed)
    values = rng.choices([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5], k=len(stream.slot))
    structure, (rules, rows, made) = decide(stream), follow(stream)
    touches, column = sliding_touches(structure), np.array(values)
    for largest in (False, True):
        better = (lambda one, other: one > other) if largest else (lambda one, other: one < other)
        found = sliding_best(structure, 0, column, EVERY, largest, NO_LONGS).tolist()
        assert found == [plain_extreme(values, rules[s].windows[start].records, better) for s, start, _ in made]
        flat = [row.window.records if row.window else () for mine in rows for row in mine]
        after = running_best(touches, 0, column, EVERY, largest, NO_LONGS).tolist()
        assert after == [plain_extreme(values, records, better) for records in flat]


def test_a_loaded_value_that_is_no_number_stays() -> None:
    structure = decide(dense(2), loaded=(np.zeros(2, np.int32), np.array([60, 40]), np.array([90, 90])))
    values, held = np.array([5.0, math.nan, 7.0, 3.0]), np.array([0, 1])
    found = sliding_best(structure, 2, values, EVERY, False, held)
    assert found[:2].tolist() == [3, 1]
    assert found[structure.start_ms == 50].tolist() == [1]  # a copy of the second, with the record


def test_whole_numbers_are_compared_as_such() -> None:
    structure = decide(dense(3))
    whole = np.array([2**63 - 1, 2**63 - 2, -(2**63)])
    at = structure.start_ms == 52
    assert sliding_best(structure, 0, whole, EVERY, False, NO_LONGS)[at].tolist() == [2]
    assert sliding_best(structure, 0, whole, EVERY, True, NO_LONGS)[at].tolist() == [0]
    only = np.array([2**63 - 1] * 3)
    assert sliding_best(structure, 0, only, EVERY, False, NO_LONGS)[at].tolist() == [0]


def test_floats_are_never_subtracted() -> None:
    stream = make_stream([0, 0, 0], [100, 200, 300], 60, 0)
    total = sliding_total(decide(stream), np.array([1e300, 1.0, 2.0]), EVERY, np.empty(0))[0]
    assert total.tolist() == [1e300, 1.0, 2.0]


# ---- corners


def test_a_partly_late_record_leaves_a_hole_that_is_inherited() -> None:
    """S = 105, close = 102: the record at 99 misses its own window, and the later window [99, 104] lacks it."""
    stream = make_stream([1, 0, 0], [105, 99, 104], 5, 3)
    structure = decide(stream)
    rules, _ = check_structure(stream, structure)
    assert rules[0].windows[99].records == (2,)
    assert structure.decision.tolist() == [OPENED, LATE, OPENED]
    assert structure.dropped.tolist() == [0, 1, 0]


def test_nothing_at_all() -> None:
    for stream in (make_stream([], [], 5, 3), make_stream([-1, -1], [7, 9], 5, 3)):
        structure = decide(stream)
        assert structure.decision.tolist() == [0] * len(stream.slot)
        assert len(structure.slot) == len(sliding_touches(structure).record) == 0
        assert finals(structure, random_values(len(stream.slot), 0)) == []


def test_loaded_windows_without_records_stay_as_they_are() -> None:
    loaded = (np.array([1, 0, 1], np.int32), np.array([30, 20, 10]), np.array([33, 20, 12]))
    structure = decide(make_stream([1, 1], [500, 501], 5, 3)._replace(slots=3), loaded=loaded)
    assert structure.slot[:3].tolist() == [1, 0, 1]
    assert structure.timestamp_ms[:3].tolist() == [33, 20, 12]
    assert structure.opened_at.tolist() == [-1, -1, -1, 0, 1, 1]
    assert sliding_total(structure, None, EVERY, np.array([7, 8, 9]))[0][:3].tolist() == [7, 8, 9]


def test_the_greatest_times() -> None:
    last = 2**63 - 1 - 10 - 1
    structure = decide(make_stream([0, 0], [last - 1, last], 10, 2**62))
    assert structure.start_ms.tolist() == [last - 11, last, last - 10]
    for t in (last + 1, 2**63 - 1):
        with pytest.raises(NumberOverflow, match="a window would end"):
            decide(make_stream([0], [t], 10, 0))
    assert decide(make_stream([-1, 0], [2**63 - 1, 5], 10, 0)).decision.tolist() == [0, OPENED]
    everything_late = decide(make_stream([0, 0], [last, 0], 10, 0))
    assert everything_late.decision.tolist() == [OPENED, LATE]


@pytest.mark.compiled
def test_the_overlap_costs_no_memory() -> None:
    """A million touches, and nothing of that size is kept."""

    def arrays(value: Any) -> Iterator[npt.NDArray[Any]]:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from arrays(part)

    structure = decide(make_stream([0] * 1500, list(range(10_000, 11_500)), 5000, 0))
    assert len(sliding_touches(structure).record) > 1_000_000
    assert max(len(array) for array in arrays(structure)) <= 2 * 1500
