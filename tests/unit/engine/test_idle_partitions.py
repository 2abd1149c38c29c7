"""Idle partitions by example: what the rule does and says, and where it is refused as none of Kafka's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, StoreMismatch, UnknownRecord
from tests.deployments import run_deployed

DAY = "2024-07-01 "
CLICKS = pd.DataFrame(
    {
        "user": ["ana", "bo", "ana", "cy", "ana", "bo"],
        "at": pd.to_datetime([DAY + t for t in ("10:00", "10:01", "10:03", "10:40", "11:30", "10:02")], utc=True),
        "got": pd.to_datetime([DAY + t for t in ("10:00", "10:01", "10:03", "10:40", "11:30", "11:31")], utc=True),
        "shard": [0, 1, 0, 0, 0, 1],
    }
)
PLACES: dict[str, Any] = {"timestamp": "at", "partition": "shard", "arrival": "got"}
WINDOWS = sk.SessionWindows(inactivity_gap="5m", grace="5m")
PLAN = sk.group_by_key("user", **PLACES, idle_after="10m").windowed_by(WINDOWS).emit("on_window_close").count()
WITHOUT = (
    sk.group_by_key("user", timestamp="at", partition="shard").windowed_by(WINDOWS).emit("on_window_close").count()
)
RULE = "idle after 10 min, sessionkit's own and not Kafka's"


def plan_in_ms(idle_after_ms: int, **more: Any) -> sk.Plan:
    """Tumbling windows of 10 ms without grace, over the columns k, at, got and p in milliseconds."""
    places: dict[str, Any] = {"timestamp": "at", "partition": "p", "arrival": "got", "unit": "ms"}
    grouped = sk.group_by_key("k", **places | {"idle_after": f"{idle_after_ms}ms"} | more)
    return grouped.windowed_by(sk.TimeWindows(size_ms=10, grace_ms=0)).count()


def rows(*each: tuple[int, int, int | None]) -> pd.DataFrame:
    """Records of one key: (partition, arrival, time)."""
    p, got, at = zip(*each, strict=True)
    return pd.DataFrame({"k": "a", "p": p, "got": got, "at": pd.array(at, "Int64")})


def stream_times(*each: tuple[int, int, int | None], idle_after_ms: int = 10, **more: Any) -> dict[int, int]:
    """The stream time of each partition after these records."""
    trace = plan_in_ms(idle_after_ms, **more).run(rows(*each)).trace
    return dict(zip(trace.batch.partitions.tolist(), trace.last_stream_time_ms.tolist(), strict=True))


# ---- what it does


def test_the_windows_of_an_idle_partition_close() -> None:
    run = PLAN.run(CLICKS[:5])
    assert run.changelog()[["partition", "user", "count"]].values.tolist() == [
        [0, "ana", 2],
        [0, "cy", 1],
        [1, "bo", 1],
    ]
    assert run.table()["status"].tolist() == ["closed", "open", "closed", "closed"]
    assert WITHOUT.run(CLICKS[:5]).table()["status"].tolist() == ["closed", "open", "closed", "open"]
    assert run.metrics()["process-total"] == len(run.trace.records()) == 5


def test_what_comes_later_to_an_idle_partition_may_be_late() -> None:
    assert PLAN.run(CLICKS).dropped()[["user", "reason"]].values.tolist() == [["bo", "late"]]
    assert not len(WITHOUT.run(CLICKS).dropped())


@pytest.mark.parametrize(("arrived", "moved_to"), [(19, 0), (20, 50)])
def test_a_partition_is_idle_from_the_full_length_on(arrived: int, moved_to: int) -> None:
    assert stream_times((1, 10, 0), (0, arrived, 50)) == {0: 50, 1: moved_to}


def test_it_moves_to_the_smallest_of_those_that_are_not_idle() -> None:
    assert stream_times((2, 0, 5), (3, 0, 7), (0, 20, 50), (1, 20, 40)) == {0: 50, 1: 40, 2: 50, 3: 50}
    # 2 and 3 went to 50 with the record of partition 0 alone; the 40 after it moves nothing back
    assert stream_times((2, 0, 5), (1, 20, 40), (0, 21, 50)) == {0: 50, 1: 40, 2: 40}


def test_nothing_moves_where_all_are_idle() -> None:
    assert stream_times((0, 0, 90), (1, 1, 5), (1, 30, 6)) == {0: 90, 1: 6}


def test_a_partition_that_speaks_again_is_moved_before_its_record_counts() -> None:
    run = plan_in_ms(10).run(rows((1, 0, 5), (0, 9, 50), (1, 10, 6)))  # nothing arrived between 9 and 10
    assert run.trace.records()["reason"].to_pylist() == [None, None, "late"]
    run = plan_in_ms(11).run(rows((1, 0, 5), (0, 9, 50), (1, 10, 6)))
    assert run.trace.records()["reason"].to_pylist() == [None, None, None]


def test_any_record_is_one_by_the_clock_also_one_that_is_dropped() -> None:
    silent, spoken = ((1, 0, 5), (0, 20, 50)), ((1, 0, 5), (1, 15, None), (0, 20, 50))
    assert stream_times(*silent)[1] == 50
    assert stream_times(*spoken, on_bad_time="drop")[1] == 5


def test_a_partition_without_a_stream_time_holds_no_other_one_back() -> None:
    assert stream_times((1, 0, 5), (2, 19, None), (0, 20, 50), on_bad_time="drop") == {0: 50, 1: 50, 2: -1}


def test_arrivals_that_step_back_within_a_partition_stand_still() -> None:
    stepped, still = (0, 2, 50), (0, 12, 50)
    for third in (stepped, still):
        assert stream_times((1, 0, 5), (0, 12, 40), third) == {0: 50, 1: 50}


def test_the_clock_tells_the_order_of_partitions_that_lie_one_after_the_other() -> None:
    by_partition = ((0, 0, 1), (0, 30, 60), (1, 1, 5), (1, 29, 8))
    assert stream_times(*by_partition) == {0: 60, 1: 8}
    assert stream_times(*by_partition[:3]) == {0: 60, 1: 60}


def test_partitions_by_key_follow_each_other_too() -> None:
    data = pd.DataFrame({"k": ["a", "c", "c"], "got": [0, 1, 40], "at": [0, 5, 90]})
    trace = plan_in_ms(10, partition=None, partitions=4).run(data).trace
    assert sorted(trace.last_stream_time_ms.tolist()) == [-1, -1, 90, 90]


def test_a_length_of_any_size_is_taken() -> None:
    assert stream_times((1, 0, 5), (0, 2**62, 50), idle_after_ms=10**15) == {0: 50, 1: 50}
    assert stream_times((1, 0, 5), (0, 10**14, 50), idle_after_ms=10**15) == {0: 50, 1: 5}


# ---- with a store


def test_a_run_without_a_record_of_a_partition_moves_it_on_and_closes_its_windows() -> None:
    with sk.open_store("memory", "clicks") as store:
        PLAN.run(CLICKS[:2], store=store, retention="1d")
        run = PLAN.run(CLICKS[4:5], store=store, retention="1d")
        assert run.changelog()[["partition", "user"]].values.tolist() == [[0, "ana"], [1, "bo"]]
        arrived_ms = int(CLICKS["got"][1].timestamp() * 1000)
        assert store.snapshot(1).last_arrival_ms == arrived_ms
        assert store.snapshot(1).stream_time_ms == store.snapshot(0).stream_time_ms
        later = PLAN.run(CLICKS[5:].assign(at=CLICKS["got"][5:]), store=store, retention="1d")
        words = later.explain(key="bo", window_start="2024-07-01 10:01", partition=1)
        assert "by the record at offset 0 (partition 1), or the rule for idle partitions after it" in words


def test_records_that_belong_before_what_was_read_are_refused() -> None:
    with sk.open_store("memory", "s", of="windows") as store:
        plan = plan_in_ms(10)
        plan.run(rows((0, 100, 5)), store=store)
        with pytest.raises(InvalidData, match=r"99 ms in row 1 \(partition 1\) after 100 ms; runs over one"):
            plan.run(rows((0, 100, 5), (1, 99, 5)), store=store)
        assert store.snapshot(0).position == 0
        plan.run(
            rows((1, 100, 5), (0, 1, 6)), store=store
        )  # in a partition the clock stands still, and so it does here
        assert store.snapshot(0).last_arrival_ms == 100


@pytest.mark.parametrize("other", [plan_in_ms(20), plan_in_ms(10, arrival=None, idle_after=None)])
def test_a_store_keeps_to_one_rule(other: sk.Plan) -> None:
    with sk.open_store("memory", "s", of="windows") as store:
        plan_in_ms(10).run(rows((0, 1, 1)), store=store)
        with pytest.raises(StoreMismatch, match="idle_after '10ms', not"):
            other.run(rows((0, 2, 2)), store=store)


# ---- what is said


def test_the_run_says_that_the_rule_is_not_kafkas() -> None:
    run = PLAN.run(CLICKS)
    assert run.summary().endswith(" · gap 5 min, grace 5 min · partitions idle after 10 min (not Kafka's)")
    (remark,) = run.remarks()
    assert remark.startswith("1 partition (1) got no record for 10 min or longer and followed the others. This rule is")
    assert PLAN.run(CLICKS[:2]).remarks() == WITHOUT.run(CLICKS).remarks() == []


def test_a_late_record_is_explained_by_the_rule() -> None:
    words = PLAN.run(CLICKS).explain(offset=1, partition=1)
    said = f"Stream time had been moved to 2024-07-01 11:30:00 by the rule for idle partitions ({RULE}, in partition 1 "
    assert f"{said}after offset 0)." in words


def test_a_window_that_the_rule_closed_says_so() -> None:
    words = PLAN.run(CLICKS).explain(key="bo", window_start="2024-07-01 10:01", partition=1)
    assert f"the rule for idle partitions ({RULE}, in partition 1 after offset 0) moved it to 2024-07-01 11:30" in words
    assert "record 0 (partition 1, key bo) moved it" not in words


def test_an_open_window_waits_for_records_or_the_rule() -> None:
    words = PLAN.run(CLICKS).explain(key="ana", window_start="2024-07-01 11:30", partition=0)
    assert f"Records of its partition move stream time, and the rule for idle partitions ({RULE})." in words
    assert "for ever" not in words


def test_an_offset_names_a_record_and_never_a_tick() -> None:
    with sk.open_store("memory", "clicks") as store:
        PLAN.run(CLICKS[:2], store=store)
        run = PLAN.run(CLICKS[4:5], store=store)
        assert run.trace.batch.offset.tolist() == [1, 0]  # the second is the tick of partition 1
        with pytest.raises(UnknownRecord, match="this record is not in the run"):
            run.explain(offset=0, partition=1)


def test_the_plan_is_code_that_builds_it() -> None:
    code = 'sk.group_by_key("user", timestamp="at", partition="shard", arrival="got", idle_after="10m")'
    assert repr(PLAN).splitlines()[1].strip() == code
    assert eval(repr(PLAN), {"sk": sk}) == PLAN  # noqa: S307


def test_pictures_name_the_rule_and_not_a_record() -> None:
    run, said = PLAN.run(CLICKS), "as the partition was idle after offset 0, a rule that Kafka does not have"
    for figure in (run.lanes(), run.plane("bo", partition=1)):
        told = [text for each in figure.data for text in np.atleast_1d(each.text if each.text is not None else "")]
        told += [text for each in figure.data for text in np.atleast_1d(each.hovertext if each.hovertext else "")]
        assert any(said in str(text) for text in told)
    silent = PLAN.emit("on_window_update").run(CLICKS).emissions("bo").figure()
    assert any(said in str(text) for each in silent.data for text in np.atleast_1d(each.hovertext or ""))


def test_a_plane_says_which_rows_are_no_records_and_counts_those_that_it_leaves_out() -> None:
    data = rows((1, 0, 5), (1, 1, 4), (0, 9, 50), (1, 12, 90), (0, 13, 95)).assign(k=["a", "b", "x", "a", "x"])
    whole = plan_in_ms(10).run(data).plane("a", partition=1).layout.title.text
    some = plan_in_ms(10).run(data, keys=["a"]).plane("a", partition=1).layout.title.text
    said = "1 row is no record: the partition was idle and followed the others"
    assert said in whole and said in some
    assert "without" not in whole
    assert "without 1 record of other keys" in some


# ---- other views count records alone


def test_a_row_that_only_moves_stream_time_is_no_record_anywhere() -> None:
    run = PLAN.run(CLICKS)
    assert len(run.trace) == 7
    assert run.assign(CLICKS)["session_rows"].tolist() == [2, 1, 2, 1, 1, pd.NA]
    assert run.partition_times().table()["records"].tolist() == [4, 2]
    assert run.drop_calendar().record_count == 6
    assert run.compare(WITHOUT.run(CLICKS)).words()
    sweep = sk.sweep(PLAN, CLICKS, grace=["5m", "2h"]).table()
    assert sweep["dropped"].tolist() == [1, 0]


def test_a_buffer_that_counts_bytes_meets_the_same_stream_time() -> None:
    plan = plan_in_ms(10)
    data = rows((1, 0, 5), (0, 9, 50), (1, 10, 6), (0, 11, 90))
    records = plan.suppress("until_window_closes").run(data).changelog()
    with_bytes = plan.suppress("until_window_closes", max_bytes=10**6).run(data)
    assert with_bytes.changelog().equals(records)
    assert with_bytes.metrics()["dropped-late"] == plan.run(data).metrics()["dropped-late"] == 1


# ---- where there is no such rule


def on_spark() -> Any:
    """A DataFrame of Spark, as far as `plan.run` tells what it is; there is nothing in it."""
    from pyspark.sql import DataFrame

    made = type("Elsewhere", (DataFrame,), {"__module__": "pyspark.sql.dataframe", "isStreaming": False})
    return object.__new__(made)


REFUSED: dict[str, Callable[[], Any]] = {
    "Kafka Streams moves stream time by records alone": lambda: run_deployed(PLAN, CLICKS),
    "Kafka Streams moves stream time by records": lambda: sk.audit(PLAN, CLICKS),
    "Kafka Streams moves stream time": lambda: sk.audit(
        PLAN.emit("on_window_update").suppress("until_window_closes"), CLICKS
    ),
    "no other system moves the stream time of an idle partition like this": PLAN.to_java,
    "no other system moves the stream time of an idle partition like": PLAN.to_ksql,
    "no other system moves the stream time of an idle partition": PLAN.to_flink_sql,
    "no other system moves the stream time of an idle": PLAN.to_spark,
    "on Spark each partition is a task that does not see the others": lambda: PLAN.run(on_spark()),
    "write_html cannot recompute this run in the browser": lambda: PLAN.run(CLICKS).write_html("page.html"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_such_rule_refuses_it_in_words(what: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotBuilt, match=f"^{what}.*idle_after=.* a plan without i"):
        REFUSED[what]()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("given", "said"), [
    ({"idle_after": "10m", "arrival": None}, "idle_after= needs a clock that a replay reads again"),
    ({"arrival": "got"}, "arrival= is read for idle_after= and max_ahead= alone; got 'got'"),
    ({"idle_after": "10m", "partition": None}, "idle_after= needs partitions: one follows the others"),
    ({"idle_after": "10m", "sort": "timestamp"}, 'sort="timestamp" makes an order that no clock has seen'),
    ({"idle_after": "0s"}, "idle_after must be longer than nothing; got '0s'"),
    ({"idle_after": 600}, "a bare number|needs a unit|has no unit"),
    ({"idle_after": "10m", "arrival": 3}, "arrival must be text; got 3"),
])  # fmt: skip
def test_a_rule_that_cannot_be_kept_is_refused_at_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        sk.group_by_key("user", **PLACES | given)


@pytest.mark.parametrize("on_bad_time", ["refuse", "drop"])
@pytest.mark.parametrize("bad", [None, -5])
def test_a_record_without_an_arrival_is_refused(bad: int | None, on_bad_time: str) -> None:
    data = rows((0, 1, 1), (1, 2, 2)).assign(got=pd.array([1, bad], "Int64"))
    with pytest.raises(InvalidData, match=r"column 'got' lacks arrivals; got 1 \(rows 1\)"):
        plan_in_ms(10, on_bad_time=on_bad_time).run(data)


def test_arrivals_may_be_text_with_a_zone() -> None:
    texts = CLICKS.assign(got=CLICKS["got"].map(lambda time: time.tz_convert("Asia/Tokyo").isoformat()))
    assert PLAN.run(texts).trace.records().equals(PLAN.run(CLICKS).trace.records())


def test_no_records_move_nothing() -> None:
    assert len(PLAN.run(CLICKS[:0]).table()) == 0
    with sk.open_store("memory", "clicks") as store:
        PLAN.run(CLICKS[:1], store=store)
        before = store.snapshot(0)
        PLAN.run(CLICKS[:0], store=store)
        assert store.snapshot(0) == before
