"""Decimals are summed exactly, whatever the windows, the store and the way; what is computed with floats is told."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import NumberOverflow
from tests.deployments import run_deployed
from tests.kinds import plan_of

NOW = 1_767_225_600_000
KINDS: dict[str, Any] = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=4, grace_ms=200),
    "tumbling": sk.TimeWindows(size_ms=10, grace_ms=200),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=3, grace_ms=200),
    "sliding": sk.SlidingWindows(time_difference_ms=6, grace_ms=200),
}
NAMED = {"total": sk.sum("price"), "least": sk.min("price")}
LARGE = "99999999999999999999999999999.12345678"  # of 38 digits there is one left


def records(seed: int, count: int = 150) -> pa.Table:
    """Records of three keys in no order, with negative, large and missing prices; floats would lose digits."""
    rng = np.random.default_rng(seed)
    far = rng.choice(["", "", "1000000000000000", "-1000000000000000", "99999999999999999999999999"], count)
    price = [Decimal(f"{units}{rng.integers(100, 999)}.05") if rng.random() < 0.8 else None for units in far]
    return pa.table({"key": rng.choice(["a", "b", "c"], count), "at": NOW + rng.integers(0, 150, count),
                     "price": pa.array(price, pa.decimal128(38, 8)), "n": np.arange(count)})  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_exact(kind: str) -> None:
    table = records(1)
    price = [Fraction(value or 0) for value in table["price"].to_pylist()]
    rows = plan_of(KINDS[kind], named={**NAMED, "rows": sk.collect("n")}).run(table).table().to_pylist()
    assert [Fraction(row["total"]) for row in rows] == [sum(price[n] for n in row["rows"]) for row in rows]
    assert any(Fraction(row["total"]) != Fraction(float(row["total"])) for row in rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store_kind", ["memory", "rocksdb"])
def test_their_state_travels_from_run_to_run(kind: str, store_kind: str, tmp_path: Path) -> None:
    table, plan, changes = records(2), plan_of(KINDS[kind], named=NAMED), []
    directory = {"directory": tmp_path} if store_kind == "rocksdb" else {}
    for part in (table.slice(0, 20), table.slice(20, 70), table.slice(90)):
        if store_kind == "rocksdb" or not changes:
            store = sk.open_store(store_kind, "kept", of=KINDS[kind].holds, **directory)
        changes.append(plan.run(part, store=store).changelog())
        if store_kind == "rocksdb":
            store.close()
    whole = plan.run(table).changelog()
    assert pa.concat_tables(changes).equals(whole)


@pytest.mark.parametrize("kind", ["sessions", "hopping", "sliding"])
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_a_deployment_gives_the_same(kind: str, emit: str) -> None:
    table, plan = records(3), plan_of(KINDS[kind], emit, NAMED)
    ours, theirs = plan.run(table), run_deployed(plan, table, retention="1s", caching=False)
    assert ours.table().equals(theirs.table())
    assert ours.changelog()["total"].type == theirs.changelog()["total"].type == pa.decimal128(38, 8)


@pytest.mark.parametrize("store_kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("prices", [("12.50", "0.125"), ("0.125", "12.5"), ("1000.5", "2")])
def test_each_run_may_have_other_digits(store_kind: str, prices: tuple[str, str], tmp_path: Path) -> None:
    """As pandas' columns of objects have them: their type is that of the values."""
    plan = plan_of(KINDS["sessions"], named={**NAMED, "newest": sk.latest("price"), "all": sk.collect("price")})
    directory = {"directory": tmp_path} if store_kind == "rocksdb" else {}
    store = sk.open_store(store_kind, "kept", of="sessions", **directory)
    for place, price in enumerate(prices):
        frame = pd.DataFrame({"key": ["a"], "at": [NOW + place], "price": [Decimal(price)]})
        (row,) = plan.run(frame, store=store).table().to_dict("records")
    both = [*map(Decimal, prices)]
    assert [row["total"], row["least"], row["newest"]] == [sum(both), min(both), both[1]]
    assert list(row["all"]) == both
    store.close()


@pytest.mark.parametrize("way", ["kernel", "deployed"])
@pytest.mark.parametrize("kind", ["sessions", "sliding"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_sum_of_more_than_38_digits_is_refused(way: str, kind: str, sign: str) -> None:
    table = pa.table({"key": ["a"] * 2, "at": [NOW, NOW + 1], "price": pa.array([Decimal(sign + LARGE)] * 2)})
    table = pa.concat_tables([table] * 6)
    plan = plan_of(KINDS[kind], named={"total": sk.sum("price")})
    totals = map(str, plan.run(table.slice(0, 10)).table()["total"].to_pylist())
    assert f"{sign}999999999999999999999999999991.23456780" in totals
    with pytest.raises(NumberOverflow, match=r"a sum of decimals does not fit into 38 digits; got .*; cast the column"):
        (plan.run(table) if way == "kernel" else run_deployed(plan, table, retention="1s")).table()


def test_sums_beyond_128_bits_and_wide_decimals_are_refused_alike() -> None:
    most = Decimal(10**38 - 1)
    table = pa.table({"key": ["a"] * 9, "at": range(NOW, NOW + 9), "price": pa.array([most] * 9)})
    with pytest.raises(NumberOverflow, match="a sum of decimals does not fit into 38 digits"):
        plan_of(KINDS["tumbling"], named={"total": sk.sum("price")}).run(table).table()
    wide = pa.table({"key": ["a"], "at": [NOW], "price": pa.array([most * 10], pa.decimal256(40, 0))})
    with pytest.raises(NumberOverflow, match=r"sum\('price'\) found a number that does not fit into 38 digits"):
        plan_of(KINDS["tumbling"], named={"total": sk.sum("price")}).run(wide)


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.decimal128(9, -2), pa.decimal256(70, 2), pa.decimal64(9, 2)])
def test_columns_of_any_length_are_summed(kind: pa.DataType) -> None:
    prices = pa.array([1200, -300, None, 500], pa.decimal128(9, -2)).cast(kind)
    table = pa.table({"key": ["b", "a", "a", "a"], "at": range(NOW, NOW + 4), "price": prices}).slice(1)
    (row,) = plan_of(KINDS["sessions"], named={"total": sk.sum("price")}).run(table).table().to_pylist()
    assert row["total"] == 200 and isinstance(row["total"], Decimal)


def test_an_aggregation_says_whether_it_makes_floats() -> None:
    made = {name: make(*{"count": (), "quantile": ("v", 0.5), "top": ("v", 2)}.get(name, ("v",)))
            for name, make in sk.aggregations.BUILT_INS.items()}  # fmt: skip
    floats = {name for name, each in made.items() if each.makes_floats(pa.decimal128(9, 2))}
    assert floats == {"mean", "median", "quantile", "std"}
    assert not any(each.makes_floats(pa.float64()) for each in made.values() if each.columns)
