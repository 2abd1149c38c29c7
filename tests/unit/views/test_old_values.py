"""`changelog(old_values=True)`: what each update replaces, also when that came out of a store."""

from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from tests.kinds import plan_of

WINDOWS = [
    sk.SessionWindows(inactivity_gap_ms=5, grace_ms=20),
    sk.TimeWindows(size_ms=10, grace_ms=20),
    sk.TimeWindows(size_ms=10, advance_ms=5, grace_ms=20),
    sk.SlidingWindows(time_difference_ms=6, grace_ms=20),
]
DATA = pd.DataFrame({"key": list("aabaabab"), "at": [3, 7, 4, 20, 13, 9, 11, 1], "v": [1, 2, 3, 4, 5, 6, 7, 8]})


def plan(windows: Any) -> sk.Plan:
    joined = sk.aggregation(
        initializer=lambda: (),
        aggregator=lambda key, value, aggregate: (*aggregate, value),
        merger=lambda key, older, newer: (*older, *newer),
        value="v",
    )
    named = {"total": sk.sum("v"), "mean": sk.mean("v"), "all": sk.collect("v"), "joined": joined}
    return plan_of(windows, named=named)


@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_it_is_what_was_sent_last_for_that_window(windows: Any) -> None:
    held: dict[tuple[Any, ...], Any] = {}
    replaced = 0
    for row in plan(windows).run(DATA).changelog(old_values=True).to_dict("records"):
        place = row["key"], row["window_start_ms"], row["window_end_ms"]
        if place in held and (row["what"] == "tombstone" or not isinstance(windows, sk.SessionWindows)):
            assert (row["old_total"], row["old_joined"]) == held.pop(place)
            replaced += 1
        else:
            assert pd.isna(row["old_total"])
            assert row["old_joined"] is None
        if row["what"] == "update":
            held[place] = row["total"], row["joined"]
    assert replaced >= 3


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_what_a_store_kept_is_replaced_too(windows: Any, kind: str, tmp_path: Any) -> None:
    whole = plan(windows).run(DATA).changelog(old_values=True).drop(columns="offset")
    options = {"directory": tmp_path} if kind == "rocksdb" else {}
    with sk.open_store(kind, "s", of="sessions" if windows is WINDOWS[0] else "windows", **options) as store:
        parts = [plan(windows).run(DATA[i : i + 2], store=store).changelog(old_values=True) for i in (0, 2, 4, 6)]
    joined = pd.concat(parts, ignore_index=True).drop(columns="offset")
    assert joined.map(repr).equals(whole.map(repr))


@pytest.mark.parametrize("windows", WINDOWS[:3], ids=repr)
def test_a_single_record_replaces_nothing(windows: Any) -> None:
    """Functions of Python give an array of objects, of which the place of no value was read: IndexError."""
    assert plan(windows).run(DATA[:1]).changelog(old_values=True)["old_joined"].tolist() == [None]


@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_a_final_result_replaces_nothing(windows: Any) -> None:
    data = pd.concat([DATA, DATA[:1].assign(at=99)])
    table = plan(windows).emit("on_window_close").run(data).changelog(old_values=True)
    assert len(table) >= 3
    assert table[["old_total", "old_mean", "old_all", "old_joined"]].isna().all(axis=None)
