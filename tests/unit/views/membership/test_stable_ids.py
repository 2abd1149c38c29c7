"""Ids of sessions that stay."""

import hashlib

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


def test_nothing_has_no_ids() -> None:
    assert sk.sessionize(frame(user=["ada"] * 3)[:0], "user", "at", "30m", ids="key")["session_id"].tolist() == []
