"""Approximate counts: the same in any order, within the error that is said, and no sketch is believed unseen."""

import contextlib
import dataclasses
import datetime as dt
import math
import pickle
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.aggregations.sketches import MOST, hashable, how_many, united
from sessionkit.errors import InvalidArgument, SketchesUnavailable, StoreCorrupted
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import plan_of

pytest.importorskip("datasketches", reason="datasketches is not installed: it has no wheels for Python 3.14")

APPROX = sk.count_distinct("value", approx=True)
STANDARD_ERROR = 1 / math.sqrt(MOST - 1)  # of a theta sketch
SESSIONS = sk.SessionWindows(inactivity_gap_ms=4, grace_ms=10**6)


def seen(values: Any) -> bytes:
    return united([], map(hashable, values))


def count_of(column: pa.Array) -> int:
    table = pa.table({"key": ["a"] * len(column), "at": range(len(column)), "value": column})
    (row,) = plan_of(SESSIONS, named={"it": APPROX}).run(table).table().to_pylist()
    assert isinstance(row["it"], int)
    return row["it"]


# ---- laws


@pytest.mark.parametrize("most", [5, MOST, 3 * MOST, 20 * MOST])
@settings(max_examples=fewer(10), deadline=None)
@given(data=st.data())
def test_a_sketch_is_the_same_in_any_order_of_values_and_merges(most: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = rng.permutation(np.tile(np.arange(most, dtype=np.float64), 2)).tolist()
    cuts = sorted(rng.integers(0, len(values), 6).tolist())
    sketches = [seen(values[lo:hi]) for lo, hi in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    while len(sketches) > 1:
        one, other = (sketches.pop(int(rng.integers(len(sketches)))) for _ in range(2))
        sketches.append(united([one, other]))
    whole = seen(range(most))
    assert sketches == [whole] and united([whole, seen([]), whole]) == whole
    assert len(whole) <= 8 * (MOST + 3)
    assert how_many(whole) == most if most <= MOST else abs(how_many(whole) / most - 1) < 6 * STANDARD_ERROR


@pytest.mark.slow
def test_the_error_is_as_said() -> None:
    """Of 400 sketches of other values: no error is larger than 5 standard errors, and 95 of 100 are within two."""
    rng, most = np.random.default_rng(11), 20_000
    errors = [how_many(seen(rng.permutation(most) + i * most)) / most - 1 for i in range(400)]
    assert np.abs(errors).max() < 5 * STANDARD_ERROR
    assert abs(np.mean(errors)) < 5 * STANDARD_ERROR / math.sqrt(len(errors))
    # 0.95 ± 5 standard deviations of a share of 400
    assert 0.895 < np.mean(np.abs(errors) < 1.96 * STANDARD_ERROR) <= 1
    assert 1.96 * STANDARD_ERROR < 0.031, "the docstring says so"


def test_large_sessions_that_merge_and_a_state_that_travels() -> None:
    """More values than a sketch has room for: any split into runs gives one number, whatever the order of arrival."""
    rng, most = np.random.default_rng(3), 4 * MOST
    table = pa.table({"key": ["a"] * most, "at": np.arange(most) * 3, "value": np.arange(most) // 2})
    plan, counts = plan_of(SESSIONS, "on_window_close", {"it": APPROX}), set()
    for parts in (1, 2, 5):
        shuffled, store = table.take(rng.permutation(most)), sk.open_store("memory", "kept", of="sessions")
        for lo in range(0, most, most // parts + 1):
            shown = plan.run(shuffled.slice(lo, most // parts + 1), store=store).table().to_pylist()
        counts.add(tuple(row["it"] for row in shown))
    ((count,),) = counts
    assert count == how_many(seen(range(most // 2))) and abs(count / (most // 2) - 1) < 6 * STANDARD_ERROR


# ---- equal values


def test_equal_values_count_once_whatever_their_type() -> None:
    at = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    equal: list[list[Any]] = [
        [1, 1.0, Decimal("1.00"), True, np.float64(1)],
        [0, 0.0, -0.0, Decimal(0), False],
        [0.5, Decimal("0.50")],
        [2**53 + 1, Decimal(2**53 + 1), Decimal("9007199254740993.00")],
        [2**63 + 5, Decimal(2**63 + 5)],
        [math.nan, -math.nan, np.float64("nan")],
        [at, pd.Timestamp(at), at.astimezone(dt.timezone(dt.timedelta(hours=2)))],
        [pd.Timestamp(at) + pd.Timedelta(1, "ns")],
        [dt.timedelta(days=1), pd.Timedelta(1, "D")],
        ["1"], ["=1"], [""], [b"2"], [b"\xff"], ["x"], ["x "], ["0.1"],
        [Decimal("0.1")], [0.1],
    ]  # fmt: skip
    for values in equal:
        assert how_many(seen(values)) == 1, values
    assert how_many(seen([values[0] for values in equal])) == len(equal)


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ([pa.array([1, 2, None]), pa.array([1.0, 2.5, None]), pa.array([2, 3], pa.uint64())], 4),
        ([pa.array([1, 2, 2**60 + 1]), pa.array([1, 2]).cast(pa.decimal128(21, 2)), pa.array([2.0**60])], 4),
        ([pa.array([0.0, -0.0, math.nan, None]), pa.array([math.nan, 0.0], pa.float32()), pa.array([5e-324, 1.0])], 4),
        ([pa.array([0, 5], pa.timestamp(unit, "UTC")) for unit in ("s", "ms", "us", "ns")], 5),
        ([pa.array([0, 5], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")], 5),
        ([pa.array([0, 5], pa.time32("s")), pa.array([5_000_000], pa.time64("us"))], 2),
        ([pa.array([0, 5], pa.date32()), pa.array([5 * 86_400_000], pa.date64())], 2),
        ([pa.array(["a", "", None]), pa.array(["a", "b"]).dictionary_encode(), pa.array(["b"], pa.string_view())], 3),
        ([pa.array([b"a", b""]), pa.array([b"a", b"\xff"], pa.large_binary())], 3),
        ([pa.nulls(2), pa.array([True, False, None]), pa.nulls(1)], 2),
        ([pa.nulls(2)], 0),
    ],
    ids=lambda case: str(case) if isinstance(case, int) else "-".join(str(each.type) for each in case),
)  # fmt: skip
def test_a_store_counts_equal_values_of_other_columns_once(columns: list[pa.Array], count: int) -> None:
    """One run after another; the types may change, as pandas makes floats of integers beside a missing one."""
    plan, store = plan_of(SESSIONS, named={"it": APPROX}), sk.open_store("memory", "kept", of="sessions")
    for column in columns:
        table = pa.table({"key": ["a"] * len(column), "at": [0] * len(column), "value": column})
        (row,) = plan.run(table, store=store).table().to_pylist()
    assert row["it"] == count


@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_nanoseconds_are_told_apart_by_the_processor_too(emit: str) -> None:
    values = pd.to_datetime([0, 1, 1, 1_000, 2_000_001], unit="ns")
    frame = pd.DataFrame({"key": "a", "at": range(5), "value": values})
    plan = plan_of(SESSIONS, emit, {"it": APPROX})
    assert plan.run(frame).table()["it"].tolist() == [4]
    assert run_deployed(plan, frame, retention="1h").table()["it"].tolist() == [4]


def test_values_that_a_float_has_the_bits_of_are_others() -> None:
    """The library hashes 0.5 and the integer of its bits alike."""
    bits = int(np.float64(0.5).view(np.int64))
    assert count_of(pa.array([0.5, float(bits)])) == 2
    assert count_of(pa.array([5e-324, 1.0])) == 2


# ---- what is refused


@pytest.mark.parametrize("approx", [1, 0, "yes", None, 0.05])
def test_approx_is_true_or_false(approx: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"; got .*; .*sk\.count_distinct\("):
        sk.count_distinct("value", approx=approx)


def test_approx_or_not_are_two_aggregations() -> None:
    assert APPROX != sk.count_distinct("value") == sk.count_distinct("value", approx=False)
    assert repr(APPROX) == "count_distinct('value', approx=True)"
    assert pickle.loads(pickle.dumps(APPROX)) == APPROX == sk.count_distinct("value", approx=np.True_)  # type: ignore[arg-type]


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(SketchesUnavailable, match=r"pip install 'sessionkit-streams\[sketches\]'$") as error:
        sk.count_distinct("value", approx=True)
    assert isinstance(error.value, ImportError)
    assert repr(sk.count_distinct("value")) == "count_distinct('value')"


SMALL, FULL = seen(range(5)), seen(range(3 * MOST))
UNSORTED = SMALL[:16] + SMALL[-8:] + SMALL[16:-8]
DAMAGED = {
    "empty": b"", "cut": FULL[:-8], "longer": SMALL + bytes(8), "no sketch": b"not a sketch at all",
    "unsorted": UNSORTED, "a hash of zero": SMALL[:16] + bytes(8) + SMALL[24:], "cut after its head": SMALL[:8],
    "beyond theta": FULL[:-8] + b"\xff" * 7 + b"\x7f", "other flags": SMALL[:5] + b"\x00" + SMALL[6:],
    "a smaller sketch": FULL[:8] + (2).to_bytes(4, "little") + FULL[12:40],
}  # fmt: skip


@pytest.mark.parametrize("held", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_sketch_is_not_believed(held: bytes) -> None:
    for call in (lambda: how_many(held), lambda: united([held]), lambda: united([SMALL, held], ["=x"])):
        with pytest.raises(
            StoreCorrupted, match=r"a stored sketch (is damaged|cannot be read); got .*; a sketch as it"
        ):
            call()


@example(at=5, bit=4)  # that its hashes stand in order
@given(at=st.integers(0, len(SMALL) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_or_changes_a_hash_alone(at: int, bit: int) -> None:
    """The checksum of a store finds these as well."""
    held = bytearray(SMALL)
    held[at] ^= 1 << bit
    with contextlib.suppress(StoreCorrupted):
        assert how_many(bytes(held)) == 5 and at >= 16


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("windows", [SESSIONS, sk.SlidingWindows(time_difference_ms=4, grace_ms=9)], ids=str)
def test_a_damaged_sketch_in_a_store_is_a_clear_error(kind: str, windows: Any, tmp_path: Path) -> None:
    """Where columns are folded, and where functions are called."""
    damage = {"aggregator": lambda key, value, held: UNSORTED, "merger": lambda key, older, newer: newer or older}
    damaging = dataclasses.replace(APPROX, parts=(), result=lambda held: 0, **damage)
    table = pa.table({"key": ["a", "a"], "at": [0, 1], "value": ["x", "y"]})
    directory = {"directory": tmp_path} if kind == "rocksdb" else {}
    store = sk.open_store(kind, "kept", of=windows.holds, **directory)
    plan_of(windows, named={"it": damaging}).run(table, store=store)
    with pytest.raises(StoreCorrupted, match="a stored sketch is damaged; got 56 bytes; a sketch as it was written"):
        plan_of(windows, named={"it": APPROX}).run(table, store=store)
