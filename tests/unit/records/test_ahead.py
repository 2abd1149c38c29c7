"""Records whose time lies far ahead of their arrival: what is dropped, what is said, and where the rule is refused."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt

DAY = "2024-07-01 "
CLICKS = pd.DataFrame(
    {
        "user": ["ana", "bo", "ana", "bo", "ana"],
        "at": pd.to_datetime([DAY + t for t in ("10:00", "10:01", "13:05", "10:02", "10:04")], utc=True),
        "got": pd.to_datetime([DAY + t for t in ("10:00", "10:01", "10:03", "10:03", "10:04")], utc=True),
    }
)
GUARD: dict[str, Any] = {"arrival": "got", "max_ahead": "5m", "ahead": "drop"}
WINDOWS = sk.SessionWindows(inactivity_gap="5m", grace="1m")
PLAN = sk.group_by_key("user", timestamp="at", **GUARD).windowed_by(WINDOWS).count()
WITHOUT = sk.group_by_key("user", timestamp="at").windowed_by(WINDOWS).count()
NOT_KAFKAS = (
    "neither Kafka Streams nor what is like it .* got max_ahead='5m'; .* a TimestampExtractor that gives -1 for"
)
KINDS = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=7, grace_ms=3),
    "tumbling": sk.TimeWindows(size_ms=10, grace_ms=2),
    "hopping": sk.TimeWindows(size_ms=12, advance_ms=5, grace_ms=0),
    "sliding": sk.SlidingWindows(time_difference_ms=9, grace_ms=2),
}


def test_one_clock_in_the_future_closes_nothing_and_is_dropped_with_a_reason_of_its_own() -> None:
    run = PLAN.run(CLICKS)
    run.trace.check()
    assert run.dropped()[["offset", "reason"]].values.tolist() == [[2, "ahead"]]
    assert run.dropped()["missing_grace_ms"].isna().all()
    assert set(WITHOUT.run(CLICKS).dropped()["reason"]) == {"late"}
    m = run.metrics()
    assert (m["dropped-ahead"], m["records-dropped"], m["dropped-late"], m["process-total"]) == (1, 1, 0, 5)
    assert "dropped-ahead" not in WITHOUT.run(CLICKS).metrics()
    assert "ahead of its arrival than max_ahead= allows. It does not move stream" in str(run.explain(offset=2))
    remark = "1 of 5 records has no time that is at most 5 min ahead of its arrival ('at', 'got') and is in no window."
    assert run.remarks() == [remark]


def test_a_record_may_be_as_far_ahead_as_is_said_and_no_further() -> None:
    rows = pd.DataFrame({"user": "a", "at": [15, 16], "got": [10, 10]})
    plan = sk.group_by_key("user", timestamp="at", unit="ms", **GUARD | {"max_ahead": "5ms"})
    assert plan.windowed_by(WINDOWS).count().run(rows).trace.records()["reason"].to_pylist() == [None, "ahead"]
    exact = sk.group_by_key("user", timestamp="at", unit="ms", **GUARD | {"max_ahead": "0ms"})
    assert exact.windowed_by(WINDOWS).count().run(rows[:1]).trace.records()["reason"].to_pylist() == ["ahead"]


def _mixed(seed: int, count: int = 300) -> tuple[pd.DataFrame, Any]:
    """Records of two partitions, some of them far ahead of their arrival; and which of them are by more than 20 ms."""
    rng = np.random.default_rng(seed)
    got = np.sort(rng.integers(0, 400, count))
    at = np.maximum(0, got - rng.integers(0, 12, count))
    is_far = rng.random(count) < 0.1
    at[is_far] = got[is_far] + rng.integers(0, 90, int(is_far.sum()))
    keys, values = rng.choice(["a", "b", None], count, p=[0.6, 0.3, 0.1]), rng.integers(0, 9, count)
    rows = pd.DataFrame({"k": keys, "at": at, "got": got, "p": rng.integers(0, 2, count), "n": values})
    rows["o"] = rows.groupby("p").cumcount()
    return rows, at - got > 20


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_dropping_them_is_as_if_they_had_never_come(seed: int, kind: str, strategy: Any) -> None:
    rows, ahead = _mixed(seed)

    def plan(**guard: Any) -> sk.Plan:
        grouped = sk.group_by_key("k", timestamp="at", unit="ms", partition="p", offset="o", **guard)
        return grouped.windowed_by(KINDS[kind]).emit(strategy).aggregate(n=sk.count(), s=sk.sum("n"))

    guarded = plan(**GUARD | {"max_ahead": "20ms"})
    run, rest = guarded.run(rows), plan().run(rows[~ahead])
    run.trace.check()
    for view in ("table", "changelog"):
        pd.testing.assert_frame_equal(getattr(run, view)(), getattr(rest, view)())
    assert run.trace.counts().get("ahead", 0) == int(ahead.sum()) > 0
    unlimited = plan(**GUARD | {"max_ahead": "1h"}).run(rows)
    pd.testing.assert_frame_equal(unlimited.changelog(), plan().run(rows).changelog())
    half = sk.open_store("memory", "half", of=guarded._complete_windows.holds)
    parts = [guarded.run(part, store=half) for part in (rows[:140], rows[140:])]
    assert sum(len(part.dropped()) for part in parts) == len(run.dropped())
    changes = pd.concat([part.changelog() for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(changes, run.changelog())


def test_what_is_written_in_steps_is_that_of_a_run(tmp_path: Path) -> None:
    written = PLAN.write(CLICKS, table=tmp_path / "table", dropped=tmp_path / "dropped")
    assert pd.read_parquet(tmp_path / "dropped")["reason"].tolist() == ["ahead"]
    assert len(pd.read_parquet(tmp_path / "table")) == len(PLAN.run(CLICKS).table())
    assert any("at most 5 min ahead of its arrival" in remark for remark in written.remarks())


def test_a_record_without_a_time_never_takes_that_of_one_that_is_ahead() -> None:
    rows = pd.DataFrame({"user": "a", "at": pd.array([1, 90, None], "Int64"), "got": [1, 2, 3]})
    guard = GUARD | {"max_ahead": "5ms", "on_bad_time": "partition_time"}
    run = sk.group_by_key("user", timestamp="at", unit="ms", **guard).windowed_by(WINDOWS).count().run(rows)
    assert run.trace.batch.timestamp_ms.tolist() == [1, 90, 1]
    assert run.trace.records()["reason"].to_pylist() == [None, "ahead", None]


def test_idle_partitions_and_the_guard_go_by_one_clock() -> None:
    rows = CLICKS.assign(shard=[0, 1, 0, 1, 0])
    plan = sk.group_by_key("user", timestamp="at", partition="shard", idle_after="10m", **GUARD)
    run = plan.windowed_by(WINDOWS).count().run(rows)
    run.trace.check()
    assert run.trace.counts()["ahead"] == 1


def test_a_missing_arrival_is_refused() -> None:
    with pytest.raises(InvalidData, match="column 'got' lacks arrivals"):
        PLAN.run(CLICKS.assign(got=CLICKS["got"].where(CLICKS.index != 1)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ahead": None}, 'what becomes of .*; got no ahead=; ahead="drop" .*; ahead="keep"'),
        ({"max_ahead": None}, 'ahead= needs a limit; got ahead=.drop.; max_ahead="5m" as well'),
        ({"arrival": None}, "max_ahead= needs a clock that a replay reads again; got max_ahead='5m'; arrival="),
        ({"max_ahead": None, "ahead": None}, 'and max_ahead= alone; got .got.; idle_after="10m" or max_ahead="5m"'),
        ({"ahead": "close"}, "ahead must be a known choice; got 'close'"),
        ({"max_ahead": 5}, "max_ahead needs a unit"),
    ],
)
def test_what_is_said_by_halves_is_refused_with_the_other_half(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        sk.group_by_key("user", timestamp="at", **GUARD | given)


KEEP = GUARD | {"ahead": "keep"}


def _sessions_by_hand(rows: pd.DataFrame, ahead: Any, gap: int, grace: int) -> tuple[list[Any], list[int]]:
    """Each session (partition, key, start, end, records) and the late rows, as Kafka's processor has it."""
    stream: dict[int, int] = {}
    sessions: list[list[Any]] = []
    late = []
    for row, (key, at, partition) in enumerate(zip(rows["k"], rows["at"], rows["p"], strict=True)):
        if pd.isna(key):  # None, and NaN in a frame of pandas 3
            continue
        if not ahead[row]:
            stream[partition] = max(stream.get(partition, -1), at)
        close = stream.get(partition, -1) - gap - grace
        mine = (partition, key)
        met = [s for s in sessions if s[0] == mine and s[1] <= at + gap and s[2] >= max(at - gap, close)]
        whole = [mine, min([at, *(s[1] for s in met)]), max([at, *(s[2] for s in met)]), 1 + sum(s[3] for s in met)]
        if whole[2] < close:
            late.append(row)
            continue
        sessions = [s for s in sessions if s not in met] + [whole]
    return sorted([*s[0], *s[1:]] for s in sessions), late


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("seed", range(8))
def test_those_that_are_kept_count_and_move_no_stream_time(seed: int, strategy: Any) -> None:
    rows, ahead = _mixed(seed)
    grouped = sk.group_by_key("k", timestamp="at", unit="ms", partition="p", offset="o", **KEEP | {"max_ahead": "20ms"})
    plan = grouped.windowed_by(KINDS["sessions"]).emit(strategy).aggregate(n=sk.count())
    run = plan.run(rows)
    run.trace.check()
    sessions, late = _sessions_by_hand(rows, ahead, 7, 3)
    shown = [list(row) for row in zip(run.table()["partition"], run.table()["k"], run.table()["n"], strict=True)]
    assert sorted(shown) == sorted([p, k, n] for p, k, _, _, n in sessions)
    assert np.flatnonzero(run.trace.decision == LATE).tolist() == late
    assert "ahead" not in run.trace.counts() and ahead.sum() > 10


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_any_cut_and_any_way_of_running_gives_what_one_run_keeps(
    seed: int, kind: str, strategy: Any, tmp_path: Path
) -> None:
    rows, ahead = _mixed(seed)
    guard = KEEP | {"max_ahead": "20ms"}
    grouped = sk.group_by_key("k", timestamp="at", unit="ms", partition="p", offset="o", **guard)
    plan = grouped.windowed_by(KINDS[kind]).emit(strategy).aggregate(n=sk.count(), s=sk.sum("n"))
    run = plan.run(rows)
    run.trace.check()
    stair = [-1, -1]
    for row, (at, partition, key) in enumerate(zip(rows["at"], rows["p"], rows["k"], strict=True)):
        stair[partition] = stair[partition] if ahead[row] or pd.isna(key) else max(stair[partition], at)
        assert run.trace.stream_time_ms[row] == stair[partition]
    store = sk.open_store("memory", "half", of=plan._complete_windows.holds)
    parts = [plan.run(part, store=store) for part in (rows[:140], rows[140:])]
    changes = pd.concat([part.changelog() for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(changes, run.changelog())
    of_a = run.changelog().query("k == 'a'").reset_index(drop=True)
    pd.testing.assert_frame_equal(plan.run(rows, keys=["a"]).changelog(), of_a)
    untraced = plan.run(rows, trace=False)
    pd.testing.assert_frame_equal(untraced.table(), run.table())
    assert untraced.remarks()[0] == run.remarks()[0]
    written = plan.write(rows, table=tmp_path / "table", changelog=tmp_path / "changelog")
    changed = pd.read_parquet(tmp_path / "changelog").sort_values(["partition", "offset"], kind="stable")
    assert (
        changed["what"].astype(str).tolist()
        == run.changelog().sort_values(["partition", "offset"], kind="stable")["what"].astype(str).tolist()
    )
    assert any("they count and move no stream time" in remark for remark in written.remarks())


def test_a_kept_one_is_explained_and_closes_nothing() -> None:
    run = sk.group_by_key("user", timestamp="at", **KEEP).windowed_by(WINDOWS).count().run(CLICKS)
    run.trace.check()
    assert run.table()["count"].tolist() == [2, 1, 2] and len(run.dropped()) == 0
    said = 'it moves no stream time, as ahead="keep" says (a rule of sessionkit\'s own, which Kafka does not have).'
    assert said in str(run.explain(offset=2)) and said not in str(run.explain(offset=3))
    remark = "Some times are more than 5 min ahead of their arrival ('at', 'got'): they count and move no stream time, "
    assert run.remarks() == [remark + 'by ahead="keep".']
    none = {name: value for name, value in run.metrics().items() if name.startswith("record-lateness")}
    assert all(value >= 0 for value in none.values())


def test_one_ahead_that_comes_first_begins_no_stream_time() -> None:
    rows = CLICKS.iloc[[2, 0, 1, 3, 4]]
    run = sk.group_by_key("user", timestamp="at", **KEEP).windowed_by(WINDOWS).count().run(rows)
    run.trace.check()
    assert run.trace.stream_time_ms[0] == -1 and len(run.dropped()) == 0
    assert "it moves no stream time" in str(run.explain(offset=0))


def test_idle_partitions_follow_no_record_that_is_kept_ahead() -> None:
    rows = CLICKS.assign(shard=[0, 1, 0, 1, 0])
    grouped = sk.group_by_key("user", timestamp="at", partition="shard", idle_after="30s", **KEEP)
    run = grouped.windowed_by(WINDOWS).count().run(rows)
    run.trace.check()
    assert run.trace.stream_time_ms.max() == CLICKS["at"][4].value // 10**6 and len(run.dropped()) == 0


def test_kafka_has_no_such_rule() -> None:
    calls = (
        partial(PLAN.run, CLICKS, deployment=sk.Deployment.plain()), partial(sk.audit, PLAN, CLICKS),
        PLAN.to_java, PLAN.to_ksql, PLAN.to_flink_sql, PLAN.to_spark,
    )  # fmt: skip
    for call in calls:
        with pytest.raises(NotBuilt, match=NOT_KAFKAS):
            call()


def test_the_advice_on_records_far_ahead_names_the_guard_where_their_arrival_is_known() -> None:
    count = 200
    rows = pd.DataFrame({"user": "a", "shard": 0, "at": np.arange(count) * 60_000, "got": np.arange(count) * 60_000})
    rows.loc[50, "at"] += 43_200_000
    places: dict[str, Any] = {"timestamp": "at", "unit": "ms", "partition": "shard"}
    for more, is_named in (({"arrival": "got", "idle_after": "1d"}, True), ({}, False)):
        run = sk.group_by_key("user", **places, **more).windowed_by(WINDOWS).count().run(rows)
        assert any('arrival="got", max_ahead="5m", ahead="drop"' in remark for remark in run.remarks()) == is_named


def test_a_plan_with_the_guard_is_code_that_rebuilds_it() -> None:
    code = 'sk.group_by_key("user", timestamp="at", arrival="got", max_ahead="5m", ahead="drop")'
    assert repr(sk.group_by_key("user", timestamp="at", **GUARD | {"max_ahead": "300 s"})) == code
