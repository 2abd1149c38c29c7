"""The tables of a run against answers by hand: order, tombstones, finals that come twice, counters, kinds of frames."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import UnsupportedData
from tests.deployments import run_deployed
from tests.kinds import group_in_ms

WINDOWS = sk.SessionWindows(
    inactivity_gap_ms=3, grace_ms=2
)  # closed once stream time has passed the end by more than 5


def plan(**options: Any) -> sk.Plan:
    return group_in_ms("user", **options).windowed_by(WINDOWS)


def stream(*rows: tuple[str | None, int | None], **more: Any) -> pd.DataFrame:
    return pd.DataFrame({"user": [user for user, _ in rows], "at": [time for _, time in rows], **more})


def rows_of(frame: Any, *names: str) -> list[tuple[Any, ...]]:
    columns = (frame[name].tolist() for name in names)
    return list(zip(*columns, strict=True))


LOG = ("offset", "what", "key", "window_start_ms", "window_end_ms", "n", "timestamp_ms")


def log_of(run: Any) -> list[tuple[Any, ...]]:
    frame = run.changelog()
    return [tuple(_plain(value) for value in row) for row in rows_of(frame, *LOG)]


def test_windows_are_by_partition_key_bytes_and_start() -> None:
    rows = [("b", 50), ("é", 50), ("a", 90), ("a", 50), ("", 50), ("B", 50), ("a", 70)]
    data = stream(*rows, partition=[5, 5, 5, 0, 0, 5, 5])
    table = plan(partition="partition").with_windows(grace_ms=100).count().run(data).table()
    assert rows_of(table, "partition", "key", "window_start_ms") == [
        (0, "", 50), (0, "a", 50), (5, "B", 50), (5, "a", 70), (5, "a", 90), (5, "b", 50), (5, "é", 50),
    ]  # fmt: skip
    assert table.columns.tolist() == ["key", "window_start_ms", "window_end_ms", "count", "status", "partition"]


def test_updates_with_tombstones() -> None:
    run = (
        plan()
        .aggregate(n=sk.count())
        .run(stream(("a", 10), ("a", 10), ("a", 12), ("a", 11), ("a", 16), ("a", 14), ("b", 99), ("a", 16)))
    )
    assert log_of(run) == [
        (0, "update", "a", 10, 10, 1, 10),
        (1, "update", "a", 10, 10, 2, 10),  # at the session's one point: nothing is withdrawn
        (2, "tombstone", "a", 10, 10, None, 10),
        (2, "update", "a", 10, 12, 3, 12),
        (3, "tombstone", "a", 10, 12, None, 12),  # inside: withdrawn and sent again with the same bounds
        (3, "update", "a", 10, 12, 4, 12),
        (4, "update", "a", 16, 16, 1, 16),
        (5, "tombstone", "a", 10, 12, None, 12),  # a bridge withdraws both, the older first
        (5, "tombstone", "a", 16, 16, None, 16),
        (5, "update", "a", 10, 16, 6, 16),
        (6, "update", "b", 99, 99, 1, 99),
    ]
    assert run.dropped()["offset"].tolist() == [7]


def test_finals_go_out_with_the_record_that_closes_them() -> None:
    data = stream(("b", 10), ("a", 10), ("a", 9), ("é", 8), ("c", 15), ("c", 16), ("c", 99), ("a", 98))
    run = plan().aggregate(n=sk.count()).emit("on_window_close").run(data)
    assert log_of(run) == [
        (4, "final", "é", 8, 8, 1, 8),  # 15 - 5 = 10: what ended before 10
        (5, "final", "a", 9, 10, 2, 10),
        (5, "final", "b", 10, 10, 1, 10),
        (6, "final", "c", 15, 16, 2, 16),
    ]
    assert run.metrics()["window-aggregate-final-emit-total"] == 4
    assert rows_of(run.table(), "key", "status") == [
        ("a", "closed"), ("a", "open"), ("b", "closed"), ("c", "closed"), ("c", "open"), ("é", "closed"),
    ]  # fmt: skip


def test_a_session_that_is_touched_after_it_closed_is_final_twice() -> None:
    data = stream(("a", 10), ("b", 16), ("a", 13), ("b", 90), v=[1, 2, 4, 8])
    named = {"n": sk.count(), "v": sk.sum("v"), "all": sk.collect("v"), "own": sk.reduce(lambda a, b: a * 10 + b, "v")}
    run = plan().aggregate(**named).emit("on_window_close").run(data, retention="20ms")
    finals = run.changelog()
    assert rows_of(finals, "offset", "key", "window_end_ms", "n", "v", "own") == [
        (1, "a", 10, 1, 1, 1), (3, "a", 13, 2, 5, 14), (3, "b", 16, 1, 2, 2),
    ]  # fmt: skip
    assert [list(values) for values in finals["all"]] == [[1], [1, 4], [2]]


def test_a_merge_of_two_closed_sessions() -> None:
    data = stream(("a", 10), ("a", 14), ("b", 20), ("a", 12), ("b", 90), v=[1, 2, 4, 8, 16])
    run = plan().aggregate(n=sk.sum("v")).emit("on_window_close").run(data, retention="20ms")
    assert log_of(run) == [
        (2, "final", "a", 10, 10, 1, 10),
        (2, "final", "a", 14, 14, 2, 14),
        (4, "final", "b", 20, 20, 4, 20),
    ]
    assert run.dropped()["offset"].tolist() == [3]  # the merged end, 14, lies before the close line, 15


def test_updates_and_finals_from_a_store() -> None:
    with sk.open_store("memory", "clicks") as store:
        steps = plan().aggregate(n=sk.count())
        steps.run(stream(("a", 10), ("b", 12)), store=store)
        second = steps.run(stream(("a", 11)), store=store)
        assert log_of(second) == [(2, "tombstone", "a", 10, 10, None, 10), (2, "update", "a", 10, 11, 2, 11)]
        third = steps.emit("on_window_close").run(stream(("b", 99)), store=store)
        assert log_of(third) == [(3, "final", "a", 10, 11, 2, 11), (3, "final", "b", 12, 12, 1, 12)]
        fourth = steps.emit("on_window_close").run(stream(("b", 199)), store=store)
        assert rows_of(fourth.table(), "key", "window_start_ms", "status") == [("b", 99, "closed"), ("b", 199, "open")]


def test_metrics() -> None:
    data = stream(("a", 10), (None, 11), ("a", None), ("a", -5), ("a", 14), ("a", 12), ("b", 99), ("a", 9))
    run = plan(on_bad_time="drop").count().run(data.astype({"at": "Int64"}))
    assert run.metrics() == {
        "dropped-records-total": 4, "records-dropped": 4, "window-aggregate-final-emit-total": 0, "process-total": 8,
        "dropped-late": 1, "dropped-null-key": 1, "dropped-bad-time": 1, "dropped-negative-time": 1,
        "dropped-expired": 0, "replayed-records": 0, "windows": 2, "windows-open": 1, "windows-closed": 1,
        "windows-merged": 1,
    }  # fmt: skip


def test_dropped_records() -> None:
    data = stream((None, 11), ("a", -5), ("b", 99), ("a", 9), offset=[3, 5, 6, 9])
    dropped = plan(on_bad_time="drop", offset="offset").count().run(data).dropped()
    names = ("partition", "offset", "key", "timestamp_ms", "stream_time_ms", "reason")
    assert rows_of(dropped, *names) == [
        (0, 3, None, 11, -1, "null_key"),
        (0, 5, "a", -5, -1, "negative_time"),
        (0, 9, "a", 9, 99, "late"),
    ]
    assert dropped.columns.tolist() == [*names, "missing_grace_ms", "enough_grace_ms"]
    assert [None if pd.isna(ms) else int(ms) for ms in dropped["missing_grace_ms"]] == [None, None, 85]


def test_a_stream_time_before_any_is_missing() -> None:
    """It was a millisecond before 1970."""
    grouped = sk.group_by_key("user", timestamp="at", unit="ms", on_bad_time="drop")
    data = pd.DataFrame({"user": [None, "a", "b"], "at": [11, -5, 99]})
    plan = grouped.windowed_by(sk.SessionWindows(inactivity_gap_ms=5, grace_ms=0)).count()
    dropped = plan.run(data, frame="arrow").dropped().to_pylist()
    assert [row["stream_time"] for row in dropped] == [None, None]
    assert dropped[1]["timestamp"].timestamp() == -0.005  # as it came


def test_kafka_s_rules_forward_what_the_store_then_refuses() -> None:
    data = stream(("a", 10), ("b", 15), ("a", 10))  # 10 = 15 - 5: accepted, and at once expired
    run = run_deployed(plan().aggregate(n=sk.count()), data)
    assert log_of(run)[-1] == (2, "update", "a", 10, 10, 1, 10)
    assert (run.metrics()["dropped-expired"], run.metrics()["dropped-records-total"]) == (1, 1)
    ours = plan().aggregate(n=sk.count()).run(data)
    assert log_of(ours)[-1] == (2, "update", "a", 10, 10, 2, 10)
    assert ours.metrics()["dropped-records-total"] == 0


def test_kafka_s_memory_store_emits_nothing_on_close_with_the_default_retention() -> None:
    data = stream(("a", 10), ("b", 16), ("b", 99))
    run = plan().count().emit("on_window_close")
    assert len(run_deployed(run, data).changelog()) == 0
    assert len(run_deployed(run, data, retention="200ms").changelog()) == len(run.run(data).changelog()) == 2


# ---- results of Python functions


def own(function: Any) -> sk.Plan:
    return plan().aggregate(result=sk.reduce(function, "v"))


@pytest.mark.parametrize("result", [{"a": 1}, (1, "two"), {1, 2}, [1, None], 1.5, b"x", None])
def test_pandas_holds_any_object(result: Any) -> None:
    table = own(lambda older, newer: result).run(stream(("a", 1), ("a", 2), v=["x", "y"])).table()
    assert table["result"].tolist() == [result]
    changelog = own(lambda older, newer: result).run(stream(("a", 1), ("a", 2), v=["x", "y"])).changelog()
    assert changelog["result"].tolist() == ["x", None, result]


def test_missing_text_is_none_with_each_pandas() -> None:
    """By default pandas 3 has strings of its own, in which NaN stands for what is missing."""
    data = stream(("a", 1), (None, 2), ("a", 3), v=["x", None, "z"])
    run = plan().aggregate(first=sk.first("v"), last=sk.last("v")).run(data)
    assert run.dropped()["key"].tolist() == [None]
    assert run.changelog(old_values=True)["old_last"].tolist()[0] is None
    assert {str(run.table()[name].dtype) for name in ("key", "first", "last")} == {"object"}


def test_other_frames_get_one_arrow_column() -> None:
    data = pa.Table.from_pandas(stream(("a", 1), ("a", 2), ("b", 2), v=["x", "y", "z"]))
    for records in (data, pl.from_arrow(data)):
        table = own(lambda older, newer: older + newer).run(records).table()
        assert list(table["result"].to_numpy()) == ["xy", "z"]
        for odd in ({1, "x"}, object(), 2**70, "\ud800"):
            with pytest.raises(
                UnsupportedData, match="the results of 'result' do not fit into one Arrow column"
            ) as caught:
                own(lambda older, newer, odd=odd: odd).run(records).table()
            assert "give a pandas frame, whose columns hold any object" in str(caught.value)


def test_views_do_not_share_what_they_show() -> None:
    run = plan().count().run(stream(("a", 1)))
    table = run.table()
    table.loc[0, "count"] = 99
    assert run.table()["count"].tolist() == [1]


def test_every_frame_shows_the_same_rows() -> None:
    data = stream(("a", 10), (None, 11), ("a", 14), ("b", 99), ("a", 9), v=[1.5, 2.5, None, 4.5, 5.5])
    steps = plan().aggregate(n=sk.count(), mean=sk.mean("v"), all=sk.collect("v"), last=sk.last("v"))
    pandas, arrow = steps.run(data), steps.run(pa.Table.from_pandas(data))
    polars = steps.run(pl.from_pandas(data))
    for view in ("table", "changelog", "dropped"):
        ours = getattr(arrow, view)().to_pylist()
        assert getattr(polars, view)().to_dicts() == ours
        theirs = getattr(pandas, view)().astype(object)
        plain = [{name: _plain(value) for name, value in row.items()} for row in theirs.to_dict("records")]
        assert plain == ours


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    return None if value is None or value != value else value
