"""Suggestions by brute force: a grace by trying each, a sweep's cells by a run each, a gap by how a stream was made.

What sessions, tumbling and hopping windows drop is counted by hand here; of sliding windows, by a run.
"""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import sessionkit as sk
from sessionkit.base.decisions import LATE
from tests.reliability.pieces import Outcome

PIECE = 900
GOAL = 2_000
S, MIN, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
KINDS = ("session", "tumbling", "hopping", "sliding")
CHECKS = ("grace", "sweep", "gap")
KEYED = sk.group_by_key("key", timestamp="time", unit="ms", partition="partition")
NEAR = 0.1  # a gap is rounded to two digits and a bit

Record = tuple[str | None, int, int]  # key, time, partition


class Counted(NamedTuple):
    """What windows make of a stream."""

    windows: int
    merges: int
    late: int
    records: int


def check(seed: int, count: int) -> Outcome:
    """`count` streams of this seed; the three checks take turns."""
    wrong: list[str] = []
    noted: Counter[str] = Counter()
    for index in range(count):
        name, rng = CHECKS[index % len(CHECKS)], Random(f"suggestions/{seed}/{index}")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "column 'time' read as", UserWarning)
                found = [*{"grace": _grace, "sweep": _sweep, "gap": _gap}[name](rng, noted)]
        except Exception:
            found = [traceback.format_exc()]
        noted[name] += 1
        wrong += [f"{seed}/{index}, {name}: {text}" for text in found[:1]]
    return Outcome(count, wrong, dict(noted))


# ---- grace and sweeps


def _windows(rng: Random, scale: int) -> Any:
    kind, span, grace = (
        rng.choice(KINDS),
        rng.randint(1, rng.choice((4, 30))) * scale,
        rng.choice((0, 1, 7, 20)) * scale,
    )
    if kind == "session":
        return sk.SessionWindows(inactivity_gap_ms=span if rng.random() < 0.9 else 0, grace_ms=grace)
    if kind == "sliding":
        return sk.SlidingWindows(time_difference_ms=span, grace_ms=grace)
    advance = rng.randint(-(-span // 6), span) if kind == "hopping" else span
    return sk.TimeWindows(size_ms=span, advance_ms=advance, grace_ms=grace)


def _stream(rng: Random, scale: int) -> list[Record]:
    count, keys, partitions = rng.randint(0, rng.choice((8, 60, 60))), rng.choice("1123"), rng.choice((1, 1, 2))
    late, wide, step = rng.choice((0.1, 0.4, 0.8)), rng.randint(1, 150), rng.choice((1, 3, 12))
    now, records = rng.choice((0, 1_000)) * scale, []
    for _ in range(count):
        now += rng.randint(0, 2 * step) * scale + (rng.randint(0, scale - 1) if scale > 1 else 0)
        back = rng.randint(0, wide) * scale if rng.random() < late else 0
        key = None if rng.random() < 0.03 else "abc"[rng.randrange(int(keys))]
        records.append((key, max(0, now - back), rng.randrange(partitions)))
    return records


def _table(records: list[Record]) -> pa.Table:
    keys, times, partitions = zip(*records, strict=True) if records else ((), (), ())
    return pa.table(
        {"key": pa.array(keys, pa.string()), "time": pa.array(times, pa.int64()),
         "partition": pa.array(partitions, pa.int64())},
    )  # fmt: skip


def counted(windows: Any, records: list[Record]) -> Counted:
    """What the windows come to, by hand as far as that is short."""
    if isinstance(windows, sk.SlidingWindows):
        return _by_a_run(windows, records)
    usable = [record for record in records if record[0] is not None]
    now: dict[int, int] = {}
    held: set[tuple[Any, ...]] = set()
    late = merges = 0
    for key, time_ms, partition in usable:
        stream_ms = now[partition] = max(now.get(partition, -1), time_ms)
        if isinstance(windows, sk.SessionWindows):
            reach_ms = windows.inactivity_gap_ms
            kept_ms = reach_ms + windows.grace_ms
            mine = (each for each in held if each[:2] == (partition, key) and each[3] >= stream_ms - kept_ms)
            met = {each for each in mine if each[2] <= time_ms + reach_ms and each[3] >= time_ms - reach_ms}
            start_ms, end_ms = min([time_ms, *(m[2] for m in met)]), max([time_ms, *(m[3] for m in met)])
            if end_ms < stream_ms - kept_ms:
                late += 1
                continue
            merges += max(0, len(met) - 1)
            held = held - met | {(partition, key, start_ms, end_ms)}
            continue
        last_ms = time_ms // windows.advance_ms * windows.advance_ms
        starts_ms = range(last_ms, max(-1, time_ms - windows.size_ms), -windows.advance_ms)
        open_ms = [each for each in starts_ms if each + windows.size_ms > stream_ms - windows.grace_ms]
        held |= {(partition, key, each) for each in open_ms}
        late += not open_ms
    return Counted(len(held), merges, late, len(usable))


def _by_a_run(windows: Any, records: list[Record]) -> Counted:
    run = KEYED.windowed_by(windows).count().run(_table(records))
    metrics = run.metrics()
    usable = sum(record[0] is not None for record in records)
    merges = metrics["windows-merged"] if isinstance(windows, sk.SessionWindows) else 0
    return Counted(len(run.table()), merges, int((run.trace.decision == LATE).sum()), usable)


def _grace(rng: Random, noted: Counter[str]) -> Iterator[str]:
    scale = rng.choice((1, 1, 1, 997))
    windows, records = _windows(rng, scale), _stream(rng, scale)
    usable = sum(record[0] is not None for record in records)
    some = rng.randint(usable // 2, max(usable, 1)) / max(usable, 1)
    keep = rng.choice((0, 1, 1, 0.5, 0.9, 0.95, 0.999, some, some, rng.random()))
    plan = KEYED.windowed_by(windows).count()
    options: dict[str, Any] = {}
    if isinstance(windows, sk.SessionWindows) and rng.random() < 0.3:
        options["gap"] = f"{rng.randint(0, 30) * scale}ms"
    found = sk.suggest_grace(plan, _table(records), keep=keep, **options)
    if "gap" in options:
        plan = plan.with_windows(inactivity_gap=options["gap"])

    def share(grace_ms: int) -> float:
        told = counted(plan.with_windows(grace_ms=grace_ms).windows, records)
        return (told.records - told.late) / told.records if told.records else 1.0

    told = f"{plan.windows!r}, keep={keep!r}, {options}, {records}: {found!r}"
    if share(found.grace_ms) < keep:
        yield f"it keeps {share(found.grace_ms)} only; {told}"
    below = range(found.grace_ms)
    if scale > 1:
        below = sorted({*rng.sample(below, min(10, len(below))), *below[-2:]})
    enough = next((grace_ms for grace_ms in below if share(grace_ms) >= keep), None)
    if enough is not None:
        yield f"{enough} ms keep it as well; {told}"
    if (found.records, found.plan.windows.grace_ms) != (usable, found.grace_ms):
        yield f"{found.records} records, {usable} are usable; {told}"
    if found.kept_share != share(found.grace_ms):
        yield f"kept_share is {found.kept_share}, not {share(found.grace_ms)}; {told}"
    for grace_ms, kept in [*zip(*(each.tolist() for each in found.curve), strict=True)][::5]:
        if kept != share(grace_ms):
            yield f"at {grace_ms} ms the curve says {kept}, not {share(grace_ms)}; {told}"
    noted["grace above 0"] += found.grace_ms > 0
    noted["drops some"] += found.kept_share < 1


def _sweep(rng: Random, noted: Counter[str]) -> Iterator[str]:
    windows, records = _windows(rng, 1), _stream(rng, 1)
    values: dict[str, list[int]] = {"grace_ms": [rng.randint(0, 60) for _ in range(rng.randint(1, 4))]}
    if isinstance(windows, sk.SessionWindows):
        values["inactivity_gap_ms"] = [rng.randint(0, 40) for _ in range(rng.randint(1, 3))]
    elif isinstance(windows, sk.SlidingWindows):
        values["time_difference_ms"] = [rng.randint(1, 40) for _ in range(rng.randint(1, 3))]
    else:
        values["size_ms"] = [rng.randint(windows.advance_ms, windows.advance_ms + 40) for _ in range(rng.randint(1, 3))]
    plan = KEYED.windowed_by(windows).count()
    found = sk.sweep(plan, _table(records), **values)
    for cell in found.cells:
        told = f"{cell.plan.windows!r} of {values}, {records}"
        if plan.with_windows(**cell.settings).windows != cell.plan.windows:
            yield f"the cell of {dict(cell.settings)} has {told}"
        mine = Counted(cell.windows, cell.merges, cell.dropped, counted(cell.plan.windows, records).records)
        for name, other in (("a run", _by_a_run), ("by hand", counted)):
            if mine != other(cell.plan.windows, records):
                yield f"the cell says {mine}, {name} {other(cell.plan.windows, records)}; {told}"
        if cell.dropped_share != (mine.late / mine.records if mine.records else 0) or cell.delay_ms < 0:
            yield f"dropped_share is {cell.dropped_share}; {told}"
        noted["cells"] += 1
        noted["cells with drops"] += cell.dropped > 0
    wanted = {tuple(sorted(zip(values, each, strict=True))) for each in _combinations([*values.values()])}
    if wanted != {tuple(sorted(cell.settings.items())) for cell in found.cells}:
        yield f"the cells are {[dict(cell.settings) for cell in found.cells]}, wanted were {values}"


def _combinations(lists: list[list[int]]) -> Iterator[tuple[int, ...]]:
    if not lists:
        yield ()
        return
    for first in lists[0]:
        yield from ((first, *rest) for rest in _combinations(lists[1:]))


# ---- gap


def _gap(rng: Random, noted: Counter[str]) -> Iterator[str]:
    random = np.random.default_rng(rng.randrange(2**32))
    structure = rng.choice(("two humps", "two humps", "three humps", "one hump", "few"))
    keys, count = rng.choice(((1, 3_000), (5, 800), (30, 120), (200, 21)))
    size, lengths = keys * (count - 1), []
    if structure == "few":
        keys, size = 3, rng.randint(3, 32) * 3
    humps = {"two humps": 2, "three humps": 3}.get(structure, 1)
    spread = rng.choice((0, 0.1, 0.25))
    middle = rng.choice((20, 300, 2 * S, 30 * S, 5 * MIN))
    for hump in range(humps):
        share = size if hump == 0 else rng.randint(max(30, size // 40), size // 3)
        # within four deviations, so that nothing strays
        scatter = np.exp(np.clip(spread * random.standard_normal(share), -4 * spread, 4 * spread))
        lengths.append(np.maximum(1, np.round(middle * scatter)).astype(np.int64))
        if structure == "one hump" and rng.random() < 0.5:
            lengths[-1] = np.ceil(random.exponential(middle, share) + 1).astype(np.int64)
        middle = round(middle * rng.uniform(60, 5_000))
    pauses = np.concatenate(lengths)
    random.shuffle(pauses)
    data = _of_pauses(pauses, keys, rng, random)
    found = sk.suggest_gap(KEYED, data)
    told = f"{structure}, spread {spread}, {[(int(e.min()), int(e.max()), len(e)) for e in lengths]}: {found!r}"
    noted[structure] += 1
    noted["a gap"] += found.gap_ms is not None
    if found.pauses != len(pauses):
        yield f"{found.pauses} pauses, there are {len(pauses)}; {told}"
    edges = [(int(a.max()), int(b.min())) for a, b in pairwise(lengths)]
    yield from (f"{text}; {told}" for text in _wrong_gap(found, edges))


def _wrong_gap(found: sk.GapSuggestion, edges: list[tuple[int, int]]) -> Iterator[str]:
    """What is wrong, if nothing lies between the lengths of each pair."""
    parting = [edge for edge in edges if edge[1] >= MIN]
    if not parting:
        if found.gap_ms is not None:
            yield "no gap parts visits here"
    else:
        widest = max(long / short for short, long in parting)
        short, long = next(edge for edge in parting if edge[1] / edge[0] == widest)
        middle = (short * long) ** 0.5
        if found.gap_ms is None or not short < found.gap_ms < long or abs(found.gap_ms - middle) > NEAR * middle:
            yield f"the gap is {found.gap_ms}, the middle of the widest empty stretch {middle:.0f}"
    for short, long in edges:
        if sum(short < valley.gap_ms < long for valley in found.valleys) != 1:
            yield f"not one valley between {short} and {long}: {found.valleys}"
    if (found.gap_ms is None) != repr(found).startswith("unsure: "):
        yield "its words do not fit"


def _of_pauses(pauses: Any, keys: int, rng: Random, random: Any) -> pa.Table:
    """A stream whose keys have these pauses, its rows in any order."""
    records: list[Record] = []
    for key, mine in enumerate(np.array_split(pauses, keys)):
        times = np.concatenate([[0], np.cumsum(mine)]) + rng.randint(0, DAY)
        records += [(f"key-{key}", time_ms, key % 2) for time_ms in times.tolist()]
    records += [(None, rng.randint(0, DAY), 0) for _ in range(rng.choice((0, 3)))]
    return _table(records).take(random.permutation(len(records)))
