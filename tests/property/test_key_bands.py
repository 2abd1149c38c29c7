"""A run that is cut into bands of keys shows what the run over the records as they came shows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.engine import bands, kernel_run
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import NumberOverflow
from sessionkit.records.batch import RecordBatch
from sessionkit.views import tables
from tests.interpreted import fewer
from tests.property.streams import AGGREGATIONS, draw

COMPILED = {name: each for name, each in AGGREGATIONS.items() if each.parts}


def _sessions(rng: np.random.Generator, seed: int) -> tuple[Any, int]:
    stream = draw(seed)  # some of them have no grace, but a retention in segments
    return stream.windows, stream.retention_ms


def _time(rng: np.random.Generator, seed: int) -> tuple[Any, int]:
    advance = int(rng.choice([1, 2, 3, 10, 50]))
    size = advance * int(rng.integers(1, 14)) + int(rng.integers(0, advance))
    windows = sk.TimeWindows(size_ms=size, advance_ms=advance, grace_ms=int(rng.integers(0, 15)) * advance)
    return windows, windows.retention_ms(None)


def _tumbling(rng: np.random.Generator, seed: int) -> tuple[Any, int]:
    windows = sk.TimeWindows(size_ms=int(rng.integers(1, 60)), grace_ms=int(rng.integers(0, 90)))
    return windows, windows.retention_ms(None)


def _sliding(rng: np.random.Generator, seed: int) -> tuple[Any, int]:
    limits = {"time_difference_ms": int(rng.integers(1, 60)), "grace_ms": int(rng.integers(0, 90))}
    windows = sk.SlidingWindows(**limits, trailing_only=bool(rng.random() < 0.3))
    return windows, windows.retention_ms(None)


KINDS = {"sessions": _sessions, "tumbling": _tumbling, "hopping": _time, "sliding": _sliding}


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bands each run was cut into, with records enough for as many as there are keys."""
    counts, cut = list[int](), bands.cut

    def count(*given: Any) -> bands.Bands:
        found = cut(*given)
        counts.append(found.band_count)
        return found

    monkeypatch.setattr("sessionkit.engine.bands.cut", count)
    monkeypatch.setattr(kernel_run, "MANY_WINDOWS", 0)
    return counts


def _both(monkeypatch: pytest.MonkeyPatch, windows: Any, batch: RecordBatch, retention_ms: int, named: Any) -> Any:
    outcomes = []
    for fewest in (0, 2**62):
        monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", fewest)
        outcomes.append(run_kernel(windows, named, batch, retention_ms=retention_ms, keep_trace=False))
    return outcomes


def _shown(outcome: Outcome) -> dict[str, list[str]]:
    """Floats to their last digit; NaN is equal to itself, and zeros have their signs."""
    columns = pa.table(dict(tables.whole_table(outcome))).to_pydict().items()
    return {name: [repr(value) for value in column] for name, column in columns}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_bands_equal_the_records_as_they_came(kind: str, monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    dropped = 0
    for seed in range(fewer(250)):
        rng = np.random.default_rng([seed, 21])
        monkeypatch.setattr(bands, "BAND", int(rng.choice([1, 5, 20])))
        monkeypatch.setenv("SESSIONKIT_THREADS", str(1 + seed % 3))
        windows, retention_ms = KINDS[kind](rng, seed)
        batch = draw(seed).batch()
        ours, theirs = _both(monkeypatch, windows, batch, retention_ms, COMPILED)
        assert _shown(ours) == _shown(theirs), seed
        told = (windows, sk.group_by_key("key", timestamp="at").source)
        assert tables.metrics(ours, 0, 0, *told) == tables.metrics(theirs, 0, 0, *told), seed
        assert (ours.snapshots, ours.merge_count) == (theirs.snapshots, theirs.merge_count), seed
        dropped += theirs.missed_count
    assert max(cuts) > 3 and dropped > 0


def test_a_key_that_is_larger_than_a_band_is_not_cut(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    monkeypatch.setattr(bands, "BAND", 10)
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    keys = ["b"] * 95 + ["c", "a", "d", "a", "e"]
    table = pa.table({"k": keys, "t": range(100), "v": range(100)})
    plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(sk.TimeWindows(size_ms=9, grace_ms=0))
    plan = plan.aggregate(n=sk.count(), s=sk.sum("v"))
    assert plan.run(table, trace=False).table().equals(plan.run(table).table())
    assert cuts == [2]  # "a" and "b", which ends in the tenth tenth; the rest


def test_records_that_are_all_rejected_make_no_bands(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    table = pa.table({"k": pa.nulls(5, pa.string()), "t": range(5)})
    plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(sk.TimeWindows(size_ms=9, grace_ms=0)).count()
    assert plan.run(table, trace=False).metrics()["dropped-null-key"] == 5
    assert cuts == []


def test_of_sums_that_overflow_in_bands_the_first_record_is_named(
    monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    """Key "b" comes after key "a", but its sum is too large at an earlier record."""
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    large = 2**62
    data = pa.table({"k": ["a", "b", "b", "a", "a"], "t": [1, 2, 3, 4, 5], "v": [large, large, large, 1, large]})
    plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(sk.TimeWindows(size_ms=50, grace_ms=0))
    with pytest.raises(NumberOverflow, match="record 2"):
        plan.aggregate(s=sk.sum("v")).run(data, trace=False)
    assert cuts == [1]


def test_functions_in_python_are_called_in_the_order_of_arrival(
    monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    called: list[str] = []
    own = sk.aggregation(
        initializer=int,
        aggregator=lambda key, value, total: called.append(key) or total + 1,
        merger=lambda k, a, b: a + b,
    )
    data = pa.table({"k": ["b", "a", "b", "a"], "t": [1, 2, 3, 4]})
    plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(sk.TimeWindows(size_ms=50, grace_ms=0))
    plan.aggregate(n=own).run(data, trace=False)
    assert called == ["b", "a", "b", "a"] and cuts == []


def test_only_many_windows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows that the records of a few keys make tell how many there are."""
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 1_000)
    rng = np.random.default_rng(3)
    table = pa.table({"k": rng.integers(0, 200, 5_000), "t": np.arange(5_000)})
    plan = sk.group_by_key("k", timestamp="t", unit="ms")
    for size, is_cut in ((5_000, False), (50, True)):
        counted = plan.windowed_by(sk.TimeWindows(size_ms=size, grace_ms=0)).count()
        run = counted.run(table, trace=False)
        assert (run._outcome.finished is not None) == is_cut
        assert run.table().equals(counted.run(table).table())


def test_rows_that_only_move_stream_time_do_so_for_all_bands(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    """Partition 1 is idle from 10 s on, and what comes to it after that is late."""
    monkeypatch.setattr(bands, "BAND", 2)
    rng = np.random.default_rng(4)
    arrived = np.sort(rng.integers(0, 100_000, 300))
    is_first = (arrived < 90_000) & (arrived > 10_000)
    table = pa.table(
        {"k": rng.integers(0, 20, 300), "p": np.where(is_first, 0, rng.integers(0, 2, 300)),
         "t": np.where(arrived > 90_000, 15_000, arrived), "arrived": arrived},
    )  # fmt: skip
    places = {"partition": "p", "arrival": "arrived", "idle_after": "10s"}
    plan = sk.group_by_key("k", timestamp="t", unit="ms", **places)
    plan = plan.windowed_by(sk.TimeWindows(size_ms=5_000, grace_ms=1_000)).count()
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    ours, theirs = plan.run(table, trace=False), plan.run(table)
    assert ours.table().equals(theirs.table()) and ours.metrics() == theirs.metrics()
    assert ours.metrics()["dropped-late"] > 5 and len(cuts) == 1


@pytest.mark.parametrize("frame", ["pandas", "polars", "arrow"])
def test_windows_in_pieces_are_shown_as_others_are(
    frame: Any, monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(bands, "BAND", 7)
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    rows = {"u": list("abcdefgh") * 9, "d": ["x", None] * 36, "t": range(0, 72_000, 1_000), "v": [0.5, None, 2.5] * 24}
    plan = sk.group_by_key("u", "d", sep="|", timestamp="t", unit="ms", timezone="Asia/Tokyo")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap="10s", grace="1h")).aggregate(
        n=sk.count(), all=sk.collect("v"), most=sk.max("v")
    )
    ours, theirs = plan.run(rows, trace=False, frame=frame), plan.run(rows, frame=frame)
    assert cuts[0] > 2 and ours.table().equals(theirs.table())
    assert ours._repr_html_() == theirs._repr_html_() and repr(ours) == repr(theirs)
