"""`plan.run(data, keys=[…])`: which keys are meant, what is refused, and what a run of some keys says of the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotKept, UnknownRecord
from tests.kinds import flights_by_route, plan_of

CLICKS = pd.DataFrame(
    {"key": ["ada", "bob", "ada", "eve", "bob", "ada"], "at": [0, 10, 20, 100, 11, 130], "n": [1, 2, 3, 4, 5, 6]}
)
PLAN = plan_of(sk.SessionWindows(inactivity_gap_ms=30, grace_ms=10), named={"n": sk.sum("n")})


def keys_of(run: Any) -> list[Any]:
    found: list[Any] = run.trace.keys.to_pylist()
    return found


def test_a_run_of_one_key_holds_its_records_alone() -> None:
    run = PLAN.run(CLICKS, keys=["ada"])
    assert run.trace.records()["offset"].to_pylist() == [0, 2, 5]
    assert run.trace.batch.offset.tolist() == [0, 2, 3, 5]  # the third only moves stream time
    assert run.table()[["key", "n", "status"]].values.tolist() == [["ada", 4, "closed"], ["ada", 6, "open"]]
    assert run.summary().startswith("3 records in 2 sessions (1 closed, 1 open)")
    assert repr(run.trace) == "Trace of 3 records (2 opened, 1 added), 2 windows"
    assert run.trace.where(decision="opened")["offset"].to_pylist() == [0, 5]


@pytest.mark.parametrize(
    "keys", [["ada", "bob"], ("bob", "ada"), {"ada", "bob"}, ["bob", "ada", "bob"], pd.Series(["ada", "bob"])]
)
def test_keys_are_taken_once_in_any_order(keys: Any) -> None:
    run = PLAN.run(CLICKS, keys=keys)
    assert keys_of(run) == ["ada", "bob"]
    whole = PLAN.run(CLICKS).table()
    assert run.table().equals(whole[whole["key"] != "eve"].reset_index(drop=True))


def test_keys_that_are_numbers() -> None:
    numbered = CLICKS.assign(key=[1, 2, 1, 3, 2, 1])
    assert keys_of(PLAN.run(numbered, keys=np.array([3, 1]))) == [1, 3]
    with pytest.raises(UnknownRecord, match=r"got '1'; one of 3 keys, such as 1, 2, 3 \(numbers, not text\)"):
        PLAN.run(numbered, keys=["1"])


def test_a_key_of_several_columns_is_a_tuple_or_the_joined_text() -> None:
    plan = flights_by_route().windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()
    flights = sk.load_sample("flights")
    one, other = (plan.run(flights, keys=[key]) for key in (("AA", "LGA"), "AA@LGA"))
    assert keys_of(one) == keys_of(other) == ["AA@LGA"]
    whole = plan.run(flights).table()
    mine = whole[(whole["carrier"] == "AA") & (whole["origin"] == "LGA")].reset_index(drop=True)
    assert one.table().equals(mine)
    with pytest.raises(InvalidArgument, match="key= must have one value for each key column"):
        plan.run(flights, keys=[("AA", "LGA", "JFK")])


def test_a_key_that_only_a_dictionary_holds_has_an_empty_run() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["ada", "zoe"]))
    table = pa.table({"key": coded, "at": [0, 5], "n": [1, 2]})
    run = PLAN.run(table, keys=["zoe"])
    run.trace.check()
    assert (len(run.table()), run.metrics()["process-total"]) == (0, 0)


class SparkFrame:
    """What `plan.run` takes for a DataFrame of Spark."""

    __module__ = "pyspark.sql.dataframe"


@pytest.mark.parametrize(("data", "options", "telling"), [
    (CLICKS, {"keys": []}, "no key is named; got an empty list; a key, or all records without keys="),
    (CLICKS, {"keys": "ada"}, "keys= takes a list of keys; got 'ada'; such as keys=[\"ada\"]"),
    (CLICKS, {"keys": 7}, "keys= takes a list of keys; got 7; "),
    (CLICKS, {"keys": ["ada"], "deployment": sk.Deployment()}, "a run of some keys stands by itself; got deployment="),
    (CLICKS, {"keys": ["ada"], "store": sk.open_store("memory", "s")}, "a run of some keys stands by itself; got s"),
    (SparkFrame(), {"keys": ["ada"]},
     'keys= is for records that are read here; got a Spark DataFrame; plan.run(df).of("ada")'),
])  # fmt: skip
def test_what_is_refused(data: Any, options: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        PLAN.run(data, **options)
    assert telling in str(caught.value)


@pytest.mark.parametrize("keys", [["ada", "zoe"], [None], [("ada",), 3]])
def test_a_key_that_no_record_has(keys: list[Any]) -> None:
    with pytest.raises(UnknownRecord, match=r"this key is not in the run; got .*; one of 3 keys, such as 'ada'"):
        PLAN.run(CLICKS, keys=keys)


def test_without_a_trace() -> None:
    run = PLAN.run(CLICKS, keys=["ada"], trace=False)
    assert run.table()["status"].tolist() == ["closed", "open"]
    assert run.metrics()["process-total"] == 3
    with pytest.raises(NotKept):
        run.trace.records()


def test_a_record_of_another_key_is_named_where_it_moved_stream_time() -> None:
    whole, run = PLAN.run(CLICKS), PLAN.run(CLICKS, keys=["ada", "bob"])
    assert "by record 3 (key eve), of another key" in run.explain(offset=4)
    assert run.explain(offset=4) == whole.explain(offset=4)
    said = "Record 3 (key eve) is of a key that this run leaves out: it is here for stream time alone."
    assert run.explain(offset=3) == said
    with pytest.raises(UnknownRecord):
        PLAN.run(CLICKS, keys=["ada"]).explain(offset=1)  # nothing of ada depends on it
    assert "the record after it did" not in run.explain(key="ada", window_start=130)


def test_how_many_records_did_not_move_stream_time_on() -> None:
    late = pd.concat([CLICKS, pd.DataFrame({"key": ["bob"] * 7, "at": [120] * 7, "n": [1] * 7})])
    said = PLAN.run(late, keys=["ada"]).explain(key="ada", window_start=130)
    assert "Record 5 was the last to move it; the 7 records after it did not move it on." in said


@pytest.mark.parametrize("call", ["assign", "partition_times"])
def test_what_needs_all_keys_says_so(call: str) -> None:
    run = PLAN.run(CLICKS, keys=["ada"])
    with pytest.raises(InvalidArgument, match=rf"run.{call} needs the records of all keys; got a run with keys=; "):
        run.assign(CLICKS) if call == "assign" else run.partition_times()


def test_views_of_a_run_of_some_keys_choose_among_them_again() -> None:
    whole, run = PLAN.run(CLICKS), PLAN.run(CLICKS, keys=["ada", "bob"])
    for key in ("ada", "bob"):
        found, among = run.emissions(key), whole.emissions(key)
        assert found.table().equals(among.table())
        assert found.words() == among.words()
    with pytest.raises(UnknownRecord):
        run.emissions("eve")


def test_remarks_are_on_its_own_records() -> None:
    turns = pd.DataFrame({"key": ["ada", "bob"] * 20, "at": [n // 2 + 1000 * (n % 2 == 0) for n in range(40)], "n": 1})
    steady = PLAN.run(turns, keys=["bob"])  # against ada's records each of bob's steps back
    assert steady.metrics()["dropped-late"] == 20
    assert steady.remarks() == []


def test_a_page_of_some_keys_counts_their_records(tmp_path: Path) -> None:
    run = PLAN.run(CLICKS, keys=["ada"])
    from sessionkit.views.page.sample import sample

    found = sample(run.trace, None, 100, "ada")
    assert (found.rows.tolist(), found.all_records, found.is_whole) == ([0, 1, 3], 3, True)
    assert run.write_html(tmp_path / "ada.html").stat().st_size > 1000


def test_a_played_plane_names_the_records_of_other_keys() -> None:
    player = sk.play(PLAN.run(CLICKS, keys=["ada"]), "ada")
    assert [each.split(" · ")[1] for each in player.arrivals.words] == ["ada", "ada", "eve", "ada"]
