"""Explanations: for every decision the words, the numbers in them, and that the numbers are right."""

# ruff: noqa: E501 - sentences are easier to compare in one piece

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.errors import UnknownRecord
from sessionkit.views.words import clock, short_reason
from tests.deployments import run_by
from tests.kinds import flights_by_route
from tests.unit.views.explain.numbered import numbered

MINUTE = 60_000
PLAN = sk.group_by_key("user", timestamp="at", unit="ms", on_bad_time="drop").windowed_by(
    sk.SessionWindows(inactivity_gap="5m", grace="2m")
)
# user, minute
ROWS = [
    ("ada", 10),  # 0 opens
    ("ada", 12),  # 1 end moves
    ("ada", 11),  # 2 inside
    ("ada", 8),  # 3 start moves
    ("bob", 18),  # 4 opens, moves stream time to 18: close line 11
    ("ada", 18),  # 5 opens: [8, 12] is 6 away
    ("ada", 15),  # 6 bridge
    ("ada", 6),  # 7 older than the close line, kept
    ("bob", 40),  # 8 closes all
    ("ada", 20),  # 9 late: the session [6, 18] would have taken it
    ("eve", 30),  # 10 late: nothing near
    (None, 41),  # 11 no key
    ("ada", None),  # 12 no time
    ("ada", -1),  # 13 before 1970
]


@pytest.fixture(scope="module")
def run() -> sk.Run:
    times = pd.array([None if minute is None else minute * MINUTE for _, minute in ROWS], "Int64")
    return PLAN.count().run(pd.DataFrame({"user": [user for user, _ in ROWS], "at": times}))


WORDS = """
0  Record 0 (key ada), event time 10 min, opened a new session, as it found none of its key to join within the gap
   of 5 min. It moved stream time to 10 min itself.
1  Record 1 (key ada), event time 12 min, joined the session at 10 min: its end moved from 10 min to 12 min. It
   moved stream time to 12 min itself.
2  Record 2 (key ada), event time 11 min, joined the session 10 min to 12 min, inside its bounds. Stream time had
   been moved to 12 min by record 1 (key ada), of the same key.
3  Record 3 (key ada), event time 8 min, joined the session 10 min to 12 min: its start moved from 10 min to 8 min.
   Stream time had been moved to 12 min by record 1 (key ada), of the same key.
6  Record 6 (key ada), event time 15 min, is a bridge: it is within the gap of 5 min of two sessions, 8 min to 12
   min and at 18 min, which became one, 8 min to 18 min. Stream time had been moved to 18 min by record 4 (key
   bob), of another key: stream time belongs to the partition.
7  Record 7 (key ada), event time 6 min, joined the session 8 min to 18 min: its start moved from 8 min to 6 min.
   It was late, 5 min behind the close line: sessions that ended before 11 min were closed (18 min − gap 5 min −
   grace 2 min). But it was kept, as it touches a session that was still open. Stream time had been moved to 18 min
   by record 4 (key bob), of another key: stream time belongs to the partition.
9  Record 9 (key ada), event time 20 min, was dropped: too late. It arrived when stream time was 40 min, so
   sessions that ended before 33 min were closed (40 min − gap 5 min − grace 2 min). The session 6 min to 18 min
   would have taken it, but was closed already. It came 13 min too late: with grace 15 min instead of 2 min it
   would have been kept. Stream time had been moved to 40 min by record 8 (key bob), of another key: stream time
   belongs to the partition.
10  Record 10 (key eve), event time 30 min, was dropped: too late. It arrived when stream time was 40 min, so
    sessions that ended before 33 min were closed (40 min − gap 5 min − grace 2 min). No session of its key, open
    or closed, was within the gap of 5 min. It came 3 min too late: with grace 5 min instead of 2 min it would
    have been kept. Stream time had been moved to 40 min by record 8 (key bob), of another key: stream time
    belongs to the partition.
11  Record 11 (no key) was dropped: its key is null. It does not move stream time (Kafka drops it before it looks
    at the time).
12  Record 12 (key ada) was dropped: it has no time, and the plan says on_bad_time="drop".
13  Record 13 (key ada) was dropped: its time lies before 1970, and the plan says on_bad_time="drop".
"""


@pytest.mark.parametrize(("offset", "words"), numbered(WORDS))
def test_words(run: sk.Run, offset: int, words: str) -> None:
    told = run.explain(offset=offset)
    assert told == words
    assert repr(told) == words
    assert told._repr_html_().startswith('<div class="mathjax_ignore tex2jax_ignore"><p>Record ')


ONE_LINE = """
0  Record 0 (key ada), 10 min, opened a new session, as it found none of its key to join within the gap of 5 min
7  Record 7 (key ada), 6 min, joined the session 8 min to 18 min: its start moved from 8 min to 6 min (late, but it
9  Record 9 (key ada), 20 min, was dropped: too late
11  Record 11 (no key) was dropped
12  Record 12 (key ada) was dropped
"""


@pytest.mark.parametrize(("offset", "line"), numbered(ONE_LINE))
def test_one_line(run: sk.Run, offset: int, line: str) -> None:
    assert run.plan.windows is not None
    assert short_reason(run.trace, run.plan.windows, offset).startswith(line)


def test_a_record_far_ahead_of_all_others_is_remarked() -> None:
    """A mistyped year closes everything; nothing in the run's summary gave a hint."""
    flights = sk.load_sample("flights").head(900)
    plan = flights_by_route()
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()
    assert plan.run(flights).remarks() == []
    mistyped = flights.copy()
    mistyped.loc[400, "scheduled"] = pd.Timestamp("2031-07-01 12:50")
    found = plan.run(mistyped)
    (said,) = found.remarks()
    assert said == (
        "515 of 900 records came too late and were dropped, many because record 400 (key DL@LGA) lies 6,574 d ahead of "
        "those around it, at 2031-07-01 12:50:00 (UTC). Leave it out, or correct its time."
    )
    assert said in repr(found) and said in found._repr_html_()
    assert plan.with_windows(grace="8000d").run(mistyped).remarks() == []


@pytest.mark.parametrize(("gap", "grace"), [("1m", 0), ("1h", 0), ("1h", "30m"), ("6h", "4h")])
@pytest.mark.parametrize("partitions", [None, 4])
def test_the_flights_of_a_month_give_no_false_alarm(gap: str, grace: str, partitions: int | None) -> None:
    source = {"partition": "partition", "offset": "offset"} if partitions is None else {"partitions": partitions}
    plan = sk.group_by_key("carrier", "origin", timestamp="scheduled", timezone="UTC", sep="@", **source)
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap=gap, grace=grace)).count()
    flights = sk.load_sample("flights")
    assert plan.run(flights).remarks() == []
    departed = flights["departed"].dt.day
    for day in (1, 2, 7, 31):
        assert plan.run(flights[departed == day]).remarks() == []


def test_dates_are_said_as_dates() -> None:
    flights = sk.load_sample("flights").head(50)
    plan = flights_by_route()
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count().run(flights)
    assert clock(run.trace)(1_372_655_700_000) == "2013-07-01 05:15:00"
    assert run.explain(offset=0).startswith("Record 0 (key ")
    assert ", event time 2013-06-30 22:31:00, opened" in run.explain(offset=0)


def toy(rows: list[tuple[str, int]], **options: Any) -> sk.Run:
    frame = pd.DataFrame({"user": [user for user, _ in rows], "at": [minute * MINUTE for _, minute in rows]})
    return run_by(PLAN.count(), frame, **options)


def test_a_record_that_opens_tells_what_had_been_near() -> None:
    """It said "none was left to join" of a key's first record, too, though there never was one near."""
    rows = [("ada", 10), ("bob", 18), ("ada", 15), ("ada", 30)]
    found = toy(rows)
    assert "near" not in found.explain(offset=0) and "would have" not in found.explain(offset=0)
    assert "would have" not in found.explain(offset=3)
    assert (
        "opened a new session, as it found none of its key to join within the gap of 5 min. The session at 10 min would "
        "have taken it, but was closed already: what ended before 11 min was; with grace 3 min instead of 2 min it would "
        "have been open. Stream time had been moved" in found.explain(offset=2)
    )
    still_open = [("ada", 10), ("bob", 17), ("ada", 15)]
    assert "joined the session at 10 min" in toy(still_open).explain(offset=2)
    by_kafka = toy(still_open, rules="kafka")
    assert "The session at 10 min would have taken it, but the store had forgotten it." in by_kafka.explain(offset=2)


def test_a_partition_is_named_where_there_are_several() -> None:
    table = pd.DataFrame({"user": ["ada"] * 2, "at": [5, 6], "partition": [3, 4]})
    plan = sk.group_by_key("user", timestamp="at", unit="ms", partition="partition")
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1)).count().run(table)
    assert run.explain(offset=0, partition=4).startswith("Record 0 (partition 4, key ada), event time 6 ms, opened")
    with pytest.raises(UnknownRecord, match="an offset needs its partition as well"):
        run.explain(offset=0)
    with pytest.raises(UnknownRecord, match="this record is not in the run"):
        run.explain(offset=7, partition=4)


def test_state_of_an_earlier_run() -> None:
    plan = sk.group_by_key("user", timestamp="at", unit="ms", offset="offset").windowed_by(
        sk.SessionWindows(inactivity_gap="5m", grace="2m")
    )
    plan = plan.count()
    with sk.open_store("memory", "clicks") as store:
        plan.run(
            pd.DataFrame({"user": ["ada", "bob"], "at": [10 * MINUTE, 14 * MINUTE], "offset": [0, 1]}), store=store
        )
        run = plan.run(
            pd.DataFrame(
                {"user": ["bob", "ada", "ada"], "at": [14 * MINUTE, 12 * MINUTE, MINUTE], "offset": [1, 2, 3]}
            ),
            store=store,
        )
    assert run.explain(offset=1) == (
        "Record 1 (key bob) was skipped: the store had read up to a later offset already, so this is a replay."
    )
    assert run.explain(offset=2) == (
        "Record 2 (key ada), event time 12 min, joined the session at 10 min: its end moved from 10 min to 12 min. "
        "Stream time 14 min was loaded from the store, from an earlier run."
    )
    said = str(run.explain(offset=3))
    assert "No session of its key, open or closed, was within the gap of 5 min. It came 6 min too late" in said
    assert run.trace.bounds_before(int(run.trace.window[1]), 1) == (10 * MINUTE, 10 * MINUTE)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=40),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_what_is_said_to_be_missing_is_exactly_enough(rows: list[tuple[str, int]], gap: int, grace: int) -> None:
    """With the grace that an explanation names the record is kept, with 1 ms less it is dropped."""
    table = pd.DataFrame({"user": [key for key, _ in rows], "at": [time for _, time in rows]})
    plan = (
        sk.group_by_key("user", timestamp="at", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap_ms=gap, grace_ms=grace))
        .count()
    )
    run = plan.run(table)
    assert all(run.explain(offset=i) for i in range(len(rows)))
    dropped = run.dropped()
    for offset, enough in list(zip(dropped["offset"], dropped["enough_grace_ms"], strict=True))[:4]:
        for other, is_dropped in ((int(enough), False), (int(enough) - 1, True)):
            trace = plan.with_windows(grace_ms=other).run(table).trace
            assert bool(trace.decision[offset] == LATE) is is_dropped
    assert np.array_equal(dropped["offset"], np.flatnonzero(run.trace.decision == LATE))


def test_an_empty_key_has_a_name() -> None:
    frame = pd.DataFrame({"user": ["", "ada"], "at": [20 * MINUTE, 0]})
    assert "record 0 (key (empty))" in PLAN.count().run(frame).explain(offset=1)
