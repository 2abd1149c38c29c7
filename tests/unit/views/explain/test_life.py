"""The life of a window in words: its records, its bridges, what closed it, or why it is open."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.durations import duration_ms
from sessionkit.errors import InvalidArgument, UnknownRecord
from tests.kinds import group_in_ms

MINUTE = 60_000
SESSIONS = sk.SessionWindows(inactivity_gap="5m", grace="10m")


def run(rows: list[tuple[str, int]], windows: Any = SESSIONS, **options: Any) -> sk.Run:
    keys, at = zip(*rows, strict=True)
    frame = pd.DataFrame({"key": keys, "at": [minute * MINUTE for minute in at]})
    return group_in_ms("key").windowed_by(windows).count().run(frame, **options)


def test_a_session_that_was_bridged_and_closed() -> None:
    done = run([("ada", 0), ("ada", 8), ("ada", 4), ("bob", 24)])
    assert done.explain(key="ada", window_start=0) == (
        "Session of key ada, 0 s to 8 min: 3 records. It was opened by record 0. It is 2 sessions that became one, by "
        "record 2 (at 4 min). Its longest pause is 4 min, after 0 s: a gap below that would cut it there. It closed "
        "once stream time reached 23 min 1 ms (past its end + gap 5 min + grace 10 min): record 3 (key bob) moved it "
        "to 24 min."
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_a_gap_below_the_longest_pause_cuts_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = np.maximum(np.cumsum(rng.integers(0, 4, 60)) - (rng.random(60) < 0.3) * rng.integers(0, 12, 60), 0)
    rows = list(zip(rng.choice(["ada", "bob"], 60).tolist(), at.tolist(), strict=True))
    wide = run(rows)
    table = wide.table()
    for key, start_ms in zip(table["key"], table["window_start_ms"], strict=True):
        found = re.search(
            r"Its longest pause is (\d+) min, after ([^:]+):", wide.explain(key=key, window_start=start_ms)
        )
        if found is None:
            continue
        pause_ms, after_ms = int(found[1]) * MINUTE, duration_ms(found[2], "time")
        cut = run(rows, sk.SessionWindows(inactivity_gap_ms=pause_ms - 1, grace="10m")).table().query("key == @key")
        across = (cut["window_start_ms"] <= after_ms) & (cut["window_end_ms"] >= after_ms + pause_ms)
        assert not across.any()


def test_why_a_session_is_open() -> None:
    done = run([("ada", 0), ("bob", 7), ("bob", 6), ("bob", 5)])
    assert done.explain(key="ada", window_start=0) == (
        "Session of key ada, 0 s: 1 record. It was opened by record 0. It is still open: stream time is 7 min; it "
        "closes when stream time reaches 15 min 1 ms (past its end + gap 5 min + grace 10 min), 8 min from now. "
        "Record 1 was the last to move it; the 2 records after it did not move it on. Only records of its partition "
        "move stream time: without one the window stays open for ever."
    )


@pytest.mark.parametrize(("windows", "said"), [
    (sk.TimeWindows(size="10m", grace="5m"), "15 min (its end + grace 5 min)"),
    (sk.SlidingWindows(time_difference="10m", grace="5m"), "15 min 1 ms (past its end + grace 5 min)"),
], ids=repr)  # fmt: skip
def test_windows_of_one_length(windows: Any, said: str) -> None:
    text = run([("ada", 1), ("ada", 2), ("bob", 40)], windows).explain(key="ada", window_start=0)
    assert text.startswith("Window of key ada, 0 s to 10 min: 2 records. It was opened by record 0. ")
    assert f"It closed once stream time reached {said}" in text
    assert text.endswith("record 2 (key bob) moved it to 40 min.")


def test_the_time_said_is_the_time_it_takes() -> None:
    """At the time named it closes, one millisecond before it does not."""
    for windows in (SESSIONS, sk.TimeWindows(size="10m", grace="5m")):
        done = run([("ada", 1)], windows)
        start = int(done.table()["window_start_ms"][0])
        end = int(done.table()["window_end_ms"][0])
        closes = end + windows.close_lag_ms + (windows is SESSIONS)
        for at, status in ((closes - 1, "open"), (closes, "closed")):
            frame = pd.DataFrame({"key": ["ada", "bob"], "at": [MINUTE, at]})
            plan = group_in_ms("key").windowed_by(windows).count()
            table = plan.run(frame).table()
            assert table[table["key"] == "ada"]["status"].tolist() == [status]
            text = plan.run(frame).explain(key="ada", window_start=start)
            assert ("still open" in text) == (status == "open")
            assert ("1 ms from now" in text) == (status == "open")


def test_without_a_grace_none_ever_closes() -> None:
    windows = sk.SessionWindows.until(inactivity_gap="5m", retention="1h")
    text = run([("ada", 0), ("bob", 7)], windows).explain(key="ada", window_start=0)
    assert "It never closes; a session can be found until stream time is 1 h to 1 h 30 min past its end." in text


def test_a_window_that_came_out_of_a_store() -> None:
    with sk.open_store("memory", "s") as store:
        run([("ada", 0)], store=store)
        text = run([("ada", 3)], store=store).explain(key="ada", window_start=0)
    assert text.startswith("Session of key ada, 0 s to 3 min: 1 record and what it held before this run. It is still")


def test_windows_that_are_not_there() -> None:
    done = run([("ada", 0)])
    for asked, said in (({"key": "eve", "window_start": 0}, "key"), ({"key": "ada", "window_start": 1}, "window")):
        with pytest.raises(UnknownRecord, match=f"^(the run has no such|this) {said}"):
            done.explain(**asked)
    half = ({"offset": 0, "key": "ada"}, {"offset": 0, "window_start": 0}, {"window_start": 0})
    for wrong in ({}, {"key": "ada"}, {"offset": 0, "key": "ada", "window_start": 0}, *half):
        with pytest.raises(InvalidArgument, match="explain takes a record or a window"):
            done.explain(**wrong)


def test_several_partitions() -> None:
    frame = pd.DataFrame({"key": ["a", "a"], "at": [5, 5], "p": [0, 1]})
    plan = group_in_ms("key", partition="p").windowed_by(SESSIONS).count()
    with pytest.raises(UnknownRecord, match=r"several partitions hold such a window; got key 'a'; partition= one of"):
        plan.run(frame).explain(key="a", window_start=5)
    assert "1 record" in plan.run(frame).explain(key="a", window_start=5, partition=1)


def test_with_several_partitions_every_record_is_named_with_its_own() -> None:
    rows = [("a", 0, 3), ("b", 0, 4), ("a", 8, 3), ("a", 4, 3), ("a", 24, 3)]
    frame = pd.DataFrame(rows, columns=["key", "at", "p"])
    frame["at"] *= MINUTE
    plan = group_in_ms("key", partition="p").windowed_by(SESSIONS).count()
    done = plan.run(frame)
    assert done.explain(key="a", window_start=0) == (
        "Session of key a (partition 3), 0 s to 8 min: 3 records. It was opened by record 0 (partition 3). It is 2 "
        "sessions that became one, by record 2 (partition 3, at 4 min). Its longest pause is 4 min, after 0 s: a gap "
        "below that would cut it there. It closed once stream time reached 23 min 1 ms "
        "(past its end + gap 5 min + grace 10 min): record 3 (partition 3, key a) moved it to 24 min."
    )
    assert "Record 0 (partition 4) was the last to move it" in done.explain(key="b", window_start=0)


def test_records_of_rows_sorted_by_time_are_named_with_their_rows() -> None:
    """The opener, bridges and movers of stream time were named by their places in time alone, as if by their rows."""
    frame = pd.DataFrame({"key": ["b", "a", "a"], "at": [9 * MINUTE, 4 * MINUTE, MINUTE]})
    sliding = sk.SlidingWindows(time_difference="5m", grace="10m")
    done = group_in_ms("key", sort="timestamp").windowed_by(sliding).count().run(frame)
    text = done.explain(key="a", window_start=MINUTE + 1)
    assert "It was opened by record 1 in order of time (row 1 of the data). " in text
    assert "Record 2 in order of time (row 0 of the data) was the last to move it" in text
