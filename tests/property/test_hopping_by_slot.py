"""Hopping windows found slot by slot are those found record by record, and those of the processor."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.engine.commit import findable
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import NumberOverflow
from sessionkit.records.batch import RecordBatch
from sessionkit.views import tables
from sessionkit.windows import hopping
from sessionkit.windows import hopping_by_slot as by_slot
from sessionkit.windows.hopping import TimeWindows
from tests.interpreted import fewer
from tests.kinds import group_in_ms
from tests.property.streams import AGGREGATIONS, draw, rows_of
from tests.property.test_window_kernels import _processed

COMPILED = {name: each for name, each in AGGREGATIONS.items() if each.parts and name not in ("collect", "distinct")}


def _windows(seed: int) -> TimeWindows:
    rng = np.random.default_rng([seed, 7])
    advance = int(rng.choice([1, 2, 3, 10, 50]))
    size = advance * int(rng.integers(5, 14)) + int(rng.integers(0, advance))
    return TimeWindows(size_ms=size, advance_ms=advance, grace_ms=int(rng.integers(0, 15)) * advance)


def _bare(windows: TimeWindows, batch: RecordBatch, named: Any = COMPILED) -> Outcome:
    return run_kernel(windows, named, batch, retention_ms=windows.retention_ms(None), keep_trace=False)


def _shown(outcome: Outcome) -> list[tuple[Any, ...]]:
    return rows_of(tables.window_table(outcome, tables.table_rows(outcome)))


def _bits(outcome: Outcome) -> dict[str, bytes]:
    """Floats to their last bit, which equality would not tell for zeros."""
    rows = tables.table_rows(outcome)
    columns = tables.window_table(outcome, rows)
    return {name: np.asarray(c).tobytes() for name, c in columns.items() if np.asarray(c).dtype.kind == "f"}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One for each run: whether it went slot by slot."""
    answers: list[bool] = []

    def ask(*given: Any) -> bool:
        answers.append(by_slot.goes_by_slot(*given))
        return answers[-1]

    monkeypatch.setattr(hopping, "goes_by_slot", ask)
    return answers


@pytest.mark.thorough
def test_slot_by_slot_equals_record_by_record(monkeypatch: pytest.MonkeyPatch, taken: list[bool]) -> None:
    runs, late, ask = 0, 0, hopping.goes_by_slot
    for seed in range(fewer(400)):
        windows, batch = _windows(seed), draw(seed).batch()
        monkeypatch.setattr(hopping, "goes_by_slot", ask)
        ours = _bare(windows, batch)
        monkeypatch.setattr(hopping, "goes_by_slot", lambda *given: False)
        theirs = _bare(windows, batch)
        assert _shown(ours) == _shown(theirs), (seed, windows)
        assert _bits(ours) == _bits(theirs), (seed, windows)
        assert (ours.dropped, ours.missed_count) == (theirs.dropped, theirs.missed_count), (seed, windows)
        assert ours.snapshots == theirs.snapshots
        for name in ("timestamp_ms", "opened_by"):
            columns = [getattr(each.window_columns, name)[tables.table_rows(each)] for each in (ours, theirs)]
            np.testing.assert_array_equal(*columns)
        kept = [int(findable(each, windows, windows.retention_ms(None)).sum()) for each in (ours, theirs)]
        assert kept[0] == kept[1]
        runs, late = runs + 1, late + ours.dropped.get(LATE, 0)
    assert taken == [True] * runs and late > 0


def test_slot_by_slot_equals_the_processor(taken: list[bool]) -> None:
    for seed in range(fewer(60)):
        windows, batch = _windows(seed), draw(seed).batch()
        told, _ = _processed(windows, COMPILED, batch, "on_window_update")
        assert _shown(_bare(windows, batch)) == _shown(told), (seed, windows)
    assert taken and all(taken)


def test_windows_that_open_between_others_and_more_than_there_is_room_for(taken: list[bool]) -> None:
    """Times far apart for one key make five windows a record; times that go back open some between those there."""
    rng = np.random.default_rng(8)
    times = np.arange(3_000) * 40 + rng.integers(-120, 1, 3_000)
    times[:4] = 0
    data = pa.table({"k": ["a", "b", "b"] * 1_000, "t": times, "v": rng.normal(size=3_000)})
    plan = group_in_ms("k", timestamp="t")
    windows = sk.TimeWindows(size_ms=50, advance_ms=10, grace_ms=100)
    counted = plan.windowed_by(windows).aggregate(n=sk.count(), s=sk.sum("v"), last=sk.last("v"))
    assert counted.run(data, trace=False).table().equals(counted.run(data).table())
    assert taken == [True, False]


def test_of_sums_that_overflow_the_first_record_is_named(taken: list[bool]) -> None:
    """Slot "b" comes after slot "a", but its sum is too large at an earlier record."""
    large = 2**62
    data = pa.table({"k": ["a", "b", "b", "a", "a"], "t": [1, 2, 3, 4, 5], "v": [large, large, large, 1, large]})
    plan = sk.group_by_key("k", timestamp="t", unit="ms")
    summed = plan.windowed_by(sk.TimeWindows(size_ms=50, advance_ms=10, grace_ms=0)).aggregate(s=sk.sum("v"))
    for trace in (True, False):
        with pytest.raises(NumberOverflow, match="record 2"):
            summed.run(data, trace=trace)
    assert taken == [False, True]


@pytest.mark.parametrize("aggregation", [sk.collect("v")], ids=str)
def test_lists_are_made_record_by_record(aggregation: Any, taken: list[bool]) -> None:
    data = pa.table({"k": ["a", "b", "a"], "t": [1, 2, 3], "v": [1, 2, 3]})
    plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(
        sk.TimeWindows(size_ms=50, advance_ms=10, grace_ms=0)
    )
    lists = plan.aggregate(all=aggregation)
    assert lists.run(data, trace=False).table().equals(lists.run(data).table())
    assert taken == [False, False]
