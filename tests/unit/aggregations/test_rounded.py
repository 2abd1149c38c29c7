"""Approximate quantiles: within the error that is said, in a bounded size, the same in any order."""

import dataclasses
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.aggregations.list_columns import quantiles
from sessionkit.aggregations.rounded import joined, quantile_of, rounded, rounded_column, seen
from sessionkit.errors import InvalidArgument, StoreCorrupted
from tests.deployments import run_deployed
from tests.kinds import plan_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=4, grace_ms=10**6)
P90 = sk.quantile("value", 0.9, approx=True)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, min_value=-1e300, max_value=1e300)


def held_of(values: list[float]) -> list[Any]:
    held: list[Any] = []
    for value in values:
        held = seen("a", value, held)
    return held


@given(st.lists(FLOATS, min_size=2, max_size=20))
def test_rounding_changes_a_value_by_less_than_one_in_128_and_keeps_their_order(values: list[float]) -> None:
    near = rounded(np.sort(values))
    is_normal = np.abs(near) > 1e-300
    assert (np.abs(near - np.sort(values)) <= np.abs(np.sort(values)) / 128)[is_normal].all()
    assert (np.diff(near) >= 0).all() and (rounded(near) == near).all()
    assert (rounded(-np.array(values)) == -rounded(np.array(values))).all()


def test_small_whole_numbers_and_what_is_no_number_stay() -> None:
    small = np.arange(-128.0, 129.0)
    assert rounded(small).tolist() == small.tolist()
    largest = float(np.finfo(float).max)
    ends = rounded(np.array([math.inf, -math.inf, largest, -largest, math.nan, -0.0]))
    assert ends[:4].tolist() == [math.inf, -math.inf, largest, -largest]
    assert math.isnan(ends[4]) and math.copysign(1, ends[5]) == 1
    assert rounded_column(pa.array([1000.0, None])).to_pylist() == [1000.0, None]


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=60), st.floats(0, 1))
def test_the_error_is_as_said(values: list[float], q: float) -> None:
    exact, near = np.quantile(values, q), quantile_of(held_of(values), q)
    assert near is not None and abs(near / exact - 1) <= 0.008
    columns = pa.array([held_of(values)], P90.part_types(pa.float64())[0])
    assert quantiles(columns, q).to_pylist() == [near]


@given(st.data())
def test_what_is_kept_is_the_same_in_any_order_of_values_and_merges(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from([0.0, -0.0, 1.0, 1.001, -3.0, 1e6, math.nan, math.inf]), max_size=30))
    cut = data.draw(st.integers(0, len(values)))
    mixed = data.draw(st.permutations(values))
    whole = held_of(values)
    assert repr(joined("a", held_of(mixed[:cut]), held_of(mixed[cut:]))) == repr(whole)
    assert sum(each["count"] for each in whole) == len(values)


def test_any_cut_into_runs_and_any_order_give_one_number_in_a_bounded_size() -> None:
    rng = np.random.default_rng(5)
    values = rng.lognormal(5, 2, 100_000)
    table = pa.table({"key": ["a"] * len(values), "at": np.arange(len(values)) * 3, "value": values})
    plan, found = plan_of(SESSIONS, "on_window_close", {"it": P90}), set()
    for parts in (1, 3):
        shuffled, store = table.take(rng.permutation(len(values))), sk.open_store("memory", "kept", of="sessions")
        for lo in range(0, len(values), len(values) // parts + 1):
            run = plan.run(shuffled.slice(lo, len(values) // parts + 1), store=store)
        (row,) = run.table().to_pylist()
        found.add(row["it"])
    (near,) = found
    assert abs(near / np.quantile(values, 0.9) - 1) < 0.008
    assert len(np.unique(rounded(values))) <= 64 * math.ceil(math.log2(values.max() / values.min()) + 1) < 2_000


def test_the_processor_finds_what_the_compiled_loops_do() -> None:
    rng = np.random.default_rng(6)
    table = pa.table({"key": rng.choice(["a", "b"], 400), "at": rng.integers(0, 900, 400), "value": rng.random(400)})
    for emit in ("on_window_update", "on_window_close"):
        plan = plan_of(SESSIONS, emit, {"it": P90, "middle": sk.median("value", approx=True)})
        expected = plan.run(table).table().to_pylist()
        assert run_deployed(plan, table, retention="1h").table().to_pylist() == expected
    assert sk.quantile("value", 0.5, approx=True).result([{"value": 2.0, "count": 9}]) == 2.0


# ---- what is refused


@pytest.mark.parametrize("approx", [1, "yes", None])
def test_approx_is_true_or_false(approx: Any) -> None:
    for make in (lambda: sk.median("value", approx=approx), lambda: sk.quantile("value", 0.5, approx=approx)):
        with pytest.raises(InvalidArgument, match=r"approx tells .*; got .*; True or False, such as sk\."):
            make()


def test_an_approximate_quantile_is_another_aggregation() -> None:
    assert P90 != sk.quantile("value", 0.9) == sk.quantile("value", 0.9, approx=False)
    assert repr(P90) == "quantile('value', 0.9, approx=True)"
    assert repr(sk.median("value", approx=True)) == "median('value', approx=True)"
    assert pickle.loads(pickle.dumps(P90)) == P90


@pytest.mark.parametrize("windows", [SESSIONS, sk.SlidingWindows(time_difference_ms=4, grace_ms=9)], ids=str)
def test_damaged_counts_in_a_store_are_a_clear_error(windows: Any, tmp_path: Path) -> None:
    """Where columns are folded, and where functions are called."""

    def damage(key: Any, *_: Any) -> list[Any]:
        return [{"value": 1.0, "count": -1}]

    damaging = dataclasses.replace(P90, parts=(), result=lambda held: 0, aggregator=damage, merger=damage)
    table = pa.table({"key": ["a", "a"], "at": [0, 1], "value": [1.0, 2.0]})
    store = sk.open_store("rocksdb", "kept", of=windows.holds, directory=tmp_path)
    plan_of(windows, named={"it": damaging}).run(table, store=store)
    with pytest.raises(StoreCorrupted, match="a stored count of values is damaged; got -1; 1 or more, as it was"):
        plan_of(windows, named={"it": P90}).run(table, store=store)
