"""Ids of sessions that stay."""

import hashlib
from typing import Any

import pandas as pd
import polars as pl
import pytest

import sessionkit as sk
from tests.frames_with_sessions import GAP_MS, drawn

START = pd.Timestamp("2026-03-01 23:50", tz="UTC")


def frame(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"at": START + pd.to_timedelta([0, 0, 1], unit="min"), **columns})


def test_an_id_is_of_the_key_and_the_start() -> None:
    rows = frame(user=["ada", 'b"o', "ada"], n=[1, None, 1])
    found = sk.sessionize(rows, "user", "at", "30m", ids="key")
    ada, bo = '["ada","2026-03-01T23:50:00.000Z"]', '["b\\"o","2026-03-01T23:50:00.000Z"]'
    assert found["session_id"].tolist() == [ada, bo, ada]
    with pytest.warns(UserWarning, match="no key"):
        both = sk.sessionize(rows, ["user", "n"], "at", "30m", ids="key")["session_id"]
    assert both[0] == '["ada",1,"2026-03-01T23:50:00.000Z"]' and pd.isna(both[1])


def test_parts_that_begin_at_once_are_counted() -> None:
    rows = frame(user=["ada"] * 3).assign(at=START)
    found = sk.sessionize(rows, "user", "at", "30m", ids="key", max_rows=1)["session_id"]
    assert [each.partition("#")[2] for each in found] == ["", "2", "3"]
    assert found.is_unique


def test_the_hash_is_the_first_bytes_of_sha256() -> None:
    rows = frame(user=["ada", "bo", "ada"])
    texts, hashes = (sk.sessionize(rows, "user", "at", "30m", ids=ids)["session_id"] for ids in ("key", "hash"))
    assert hashes.dtype == "int64"
    for text, found in zip(texts, hashes, strict=True):
        assert int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True) == found


def test_ids_stay_when_rows_are_added_behind() -> None:
    """Of a day of random frames and the same day with another behind it."""
    rows = drawn(40).dropna()
    ended = rows[rows["frame"] < 20]
    options = {"by": ["frame", "key"], "at": "at", "gap": f"{GAP_MS}ms", "ids": "key"}
    before, after = (sk.sessionize(each, **options) for each in (ended, rows))  # type: ignore[call-overload]
    assert before["session_id"].tolist() == after["session_id"][: len(before)].tolist()
    assert after["session_id"].nunique() == sk.sessionize(rows, **{**options, "ids": "number"})["session_id"].nunique()  # type: ignore[call-overload]


def test_they_are_those_of_assign_in_any_order_and_kind_of_frame() -> None:
    rows = drawn(30).dropna()
    plan = sk.group_by_key("key", timestamp="at", sort="timestamp", partition="frame")
    run = plan.windowed_by(sk.SessionWindows(gap=f"{GAP_MS}ms", grace="1m")).count().run(rows)
    found = run.assign(rows, ids="key")["session_id"]
    expected = sk.sessionize(pl.from_pandas(rows), "key", "at", f"{GAP_MS}ms", partition="frame", ids="key")
    assert found.tolist() == expected["session_id"].to_list()
    windows = plan.windowed_by(sk.TimeWindows(size="1h", grace="1h")).count().run(rows)
    assert windows.assign(rows, ids="key")["window_id"][0].startswith('["')


@pytest.mark.parametrize("ids", ["key", "hash"])
@pytest.mark.parametrize("partition", [None, "frame"])
def test_merges_say_which_ids_a_late_record_changed(ids: Any, partition: str | None) -> None:
    """They are those that the rows had before it, and those that they have at the end."""
    rows = drawn(30).dropna().sample(frac=1, random_state=3).reset_index(drop=True)
    plan = sk.group_by_key("key", timestamp="at", partition=partition)
    run = plan.windowed_by(sk.SessionWindows(gap=f"{GAP_MS}ms", grace="1d")).count().run(rows)
    merges, now = run.merges(ids=ids), set(run.assign(rows, ids=ids)["session_id"])
    later, at_end = set(merges["later_id"]), set(merges["session_id"])
    assert len(merges) > 5
    assert at_end <= now
    assert not (later - at_end) & now
    assert merges.drop(columns=["earlier_id", "later_id", "session_id"]).equals(run.merges())


def test_the_ids_before_a_merge_are_those_of_the_rows_before_it() -> None:
    rows = frame(user=["ada"] * 3, n=[1, 1, 1]).assign(at=START + pd.to_timedelta([0, 40, 20], unit="min"))
    plan = sk.group_by_key("user", "n", sep="@", timestamp="at").windowed_by(sk.SessionWindows(gap="30m", grace="1h"))
    [merge] = plan.count().run(rows).merges(ids="key").to_dict("records")
    before = plan.count().run(rows[:2]).assign(rows[:2], ids="key")["session_id"].tolist()
    assert [merge["earlier_id"], merge["later_id"]] == before
    assert [merge["session_id"]] == plan.count().run(rows).assign(rows, ids="key")["session_id"].unique().tolist()
    with pytest.raises(sk.errors.InvalidArgument, match="ids must be"):
        plan.count().run(rows).merges(ids="uuid")  # type: ignore[arg-type]


def test_nothing_has_no_ids() -> None:
    assert sk.sessionize(frame(user=["ada"] * 3)[:0], "user", "at", "30m", ids="key")["session_id"].tolist() == []
