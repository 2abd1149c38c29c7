"""Why a record counts in the windows in which it counts: for every case the words, and that the numbers are right."""

# ruff: noqa: E501 - sentences are easier to compare in one piece

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import group_in_ms, table_of
from tests.unit.views.explain.numbered import numbered

MINUTE = 60_000
PLAN = group_in_ms("user", on_bad_time="drop")
BOB_MOVED = (
    "Stream time had been moved to 18 min by record 4 (key bob), of another key: stream time belongs to the partition."
)


def run_of(windows: Any, rows: list[tuple[str | None, int | None]], unit_ms: int = MINUTE) -> sk.Run:
    """The run of records (user, time in minutes, or in units of `unit_ms`)."""
    timed = [(user, None if at is None else at * unit_ms, 1) for user, at in rows]
    table = table_of(timed, user=pa.string(), at=pa.int64(), v=pa.int64())
    return PLAN.windowed_by(windows).aggregate(total=sk.sum("v")).run(table)


# ---- tumbling and hopping


@pytest.fixture(scope="module")
def hopping() -> sk.Run:
    """Windows of 10 minutes every 5, grace 3: at stream time 18 those that end by 15 are closed."""
    rows: list[tuple[str | None, int | None]] = [
        ("ada", 3),  # 0 the only window near 0
        ("ada", 12),  # 1 opens two
        ("ada", 14),  # 2 joins both
        ("ada", 16),  # 3 joins one, opens the next
        ("bob", 18),  # 4 moves stream time: close time 15
        ("ada", 13),  # 5 misses 5 to 15, joins 10 to 20
        ("ada", 2),  # 6 misses the only one
        ("ada", 6),  # 7 misses both
        ("bob", 13),  # 8 misses one, joins its own 10 to 20
        ("eve", 13),  # 9 misses one, opens 10 to 20
        (None, 30),  # 10
        ("ada", None),  # 11
        ("ada", -1),  # 12
    ]
    return run_of(sk.TimeWindows(size="10m", advance="5m", grace="3m"), rows)


LATE_FOR_ONE = (
    "It came too late for 1 window, 5 min to 15 min: stream time was 18 min, so windows that ended up to 15 min were closed "
    "(− grace 3 min); with grace 3 min 1 ms it would have counted in it."
)


WORDS_OF_HOPPING_WINDOWS = f"""
0  Record 0 (key ada), event time 3 min, counts in 1 window: 0 s to 10 min. It opened it. It moved stream time to 3
   min itself.
1  Record 1 (key ada), event time 12 min, counts in 2 windows: 5 min to 15 min and 10 min to 20 min. It opened all
   of them. It moved stream time to 12 min itself.
2  Record 2 (key ada), event time 14 min, counts in 2 windows: 5 min to 15 min and 10 min to 20 min. It moved
   stream time to 14 min itself.
3  Record 3 (key ada), event time 16 min, counts in 2 windows: 10 min to 20 min and 15 min to 25 min. It opened 15
   min to 25 min. It moved stream time to 16 min itself.
5  Record 5 (key ada), event time 13 min, counts in 1 window: 10 min to 20 min. {LATE_FOR_ONE} {BOB_MOVED}
6  Record 6 (key ada), event time 2 min, was dropped. It came too late for 1 window, 0 s to 10 min: stream time was
   18 min, so windows that ended up to 15 min were closed (− grace 3 min); with grace 8 min 1 s it would have
   counted in it. {BOB_MOVED}
7  Record 7 (key ada), event time 6 min, was dropped. It came too late for 2 windows, 0 s to 10 min and 5 min to 15
   min: stream time was 18 min, so windows that ended up to 15 min were closed (− grace 3 min); with grace 8 min 1
   s it would have counted in all of them. {BOB_MOVED}
8  Record 8 (key bob), event time 13 min, counts in 1 window: 10 min to 20 min. {LATE_FOR_ONE} Stream time had been
   moved to 18 min by record 4 (key bob), of the same key.
9  Record 9 (key eve), event time 13 min, counts in 1 window: 10 min to 20 min. It opened it. {LATE_FOR_ONE}
   {BOB_MOVED}
10  Record 10 (no key) was dropped: its key is null. It does not move stream time (Kafka drops it before it looks
    at the time).
11  Record 11 (key ada) was dropped: it has no time, and the plan says on_bad_time="drop".
12  Record 12 (key ada) was dropped: its time lies before 1970, and the plan says on_bad_time="drop".
"""


@pytest.mark.parametrize(("offset", "words"), numbered(WORDS_OF_HOPPING_WINDOWS))
def test_words_of_hopping_windows(hopping: sk.Run, offset: int, words: str) -> None:
    told = hopping.explain(offset=offset)
    assert told == words
    assert repr(told) == words
    assert told._repr_html_().startswith('<div class="mathjax_ignore tex2jax_ignore"><p>Record ')


@pytest.mark.parametrize(("advance", "said", "made"), [
    ("10m", "2 windows: 10 min to 30 min and 20 min to 40 min", "all of them"),
    ("7m", "3 windows: 7 min to 27 min, 14 min to 34 min and 21 min to 41 min", "all of them"),
    ("5m", "4 windows: 10 min to 30 min, …, 25 min to 45 min", "all of them"), ("20m", "1 window: 20 min to 40 min", "it"),
])  # fmt: skip
def test_up_to_three_windows_are_named(advance: str, said: str, made: str) -> None:
    windows = sk.TimeWindows(size="20m", advance=advance, grace="0s")
    told = run_of(windows, [("ada", 25)]).explain(offset=0)
    assert told == (
        f"Record 0 (key ada), event time 25 min, counts in {said}. It opened {made}. It moved stream time to 25 min itself."
    )
    late = run_of(windows, [("bob", 90), ("ada", 25)]).explain(offset=1)
    assert f"It came too late for {said.replace(':', ',', 1)}: stream time was 90 min" in late.replace(
        "1 h 30 min", "90 min"
    )


def test_of_many_opened_windows_the_first_and_the_last_are_named() -> None:
    """30 is in the window that 10 opened, and opens four."""
    told = run_of(sk.TimeWindows(size="25m", advance="5m", grace="0s"), [("ada", 10), ("ada", 30)]).explain(offset=1)
    assert told == (
        "Record 1 (key ada), event time 30 min, counts in 5 windows: 10 min to 35 min, …, 30 min to 55 min. "
        "It opened 15 min to 40 min, …, 30 min to 55 min. It moved stream time to 30 min itself."
    )


# ---- sliding


@pytest.fixture(scope="module")
def sliding() -> sk.Run:
    """Windows [t - 10, t] and [t + 1 ms, t + 10 min + 1 ms], grace 2."""
    rows: list[tuple[str | None, int | None]] = [
        ("ada", 20),  # 0 makes 10 to 20
        ("ada", 30),  # 1 the one after 20, and 20 to 30
        ("ada", 29),  # 2 joins both, makes 19 to 29, leaves the one after 29 behind
        ("ada", 20),  # 3 stream time 30, close time 28: misses 10 to 20, joins 19 to 29 and 20 to 30
        ("bob", 43),  # 4 close time 41
        ("ada", 29),  # 5 wholly late
        ("eve", 40),  # 6 partly late, and alone
    ]
    return run_of(sk.SlidingWindows(time_difference="10m", grace="2m"), rows)


BOB_AT_43 = (
    "Stream time had been moved to 43 min by record 4 (key bob), of another key: stream time belongs to the partition."
)
CUT = "cut out of what later records had left there; the record itself is before it."


WORDS_OF_SLIDING_WINDOWS = f"""
0  Record 0 (key ada), event time 20 min, counts in 1 window: 10 min to 20 min. It opened it. 2 later windows hold
   it, too, as copies: 19 min to 29 min and 20 min to 30 min. It moved stream time to 20 min itself.
1  Record 1 (key ada), event time 30 min, counts in 2 windows: 20 min to 30 min and 20 min 1 ms to 30 min 1 ms. It
   opened all of them. A later window holds it, too, as a copy: 29 min 1 ms to 39 min 1 ms. It moved stream time to
   30 min itself.
2  Record 2 (key ada), event time 29 min, counts in 3 windows: 19 min to 29 min, 20 min to 30 min and 20 min 1 ms
   to 30 min 1 ms. It opened 19 min to 29 min. It also makes the window 29 min 1 ms to 39 min 1 ms, {CUT} Stream
   time had been moved to 30 min by record 1 (key ada), of the same key.
3  Record 3 (key ada), event time 20 min, counts in 2 windows: 19 min to 29 min and 20 min to 30 min. It came too
   late for 1 window, 10 min to 20 min: stream time was 30 min, so windows that ended before 28 min were closed (−
   grace 2 min); with grace 10 min it would have counted in it. Stream time had been moved to 30 min by record 1
   (key ada), of the same key.
5  Record 5 (key ada), event time 29 min, was dropped. It came too late for 1 window, 19 min to 29 min: stream time
   was 43 min, so windows that ended before 41 min were closed (− grace 2 min); with grace 14 min it would have
   counted in it. {BOB_AT_43}
6  Record 6 (key eve), event time 40 min, was dropped. It came too late for 1 window, 30 min to 40 min: stream time
   was 43 min, so windows that ended before 41 min were closed (− grace 2 min); with grace 3 min it would have
   counted in it. {BOB_AT_43}
"""


@pytest.mark.parametrize(("offset", "words"), numbered(WORDS_OF_SLIDING_WINDOWS))
def test_words_of_sliding_windows(sliding: sk.Run, offset: int, words: str) -> None:
    assert sliding.explain(offset=offset) == words


def test_a_record_that_is_dropped_can_leave_a_window_behind() -> None:
    """d = 10, no grace: at 47, ada's 38 misses [34, 44], where her 44 is, and its own [28, 38]; the one after it is made."""
    run = run_of(sk.SlidingWindows(time_difference="10m", grace="0s"), [("ada", 44), ("bob", 47), ("ada", 38)])
    assert run.explain(offset=2) == (
        "Record 2 (key ada), event time 38 min, was dropped. "
        f"It also makes the window 38 min 1 ms to 48 min 1 ms, {CUT} "
        "It came too late for 2 windows, 28 min to 38 min and 34 min to 44 min: stream time was 47 min, so windows that ended "
        "before 47 min were closed (− grace 0 s); with grace 9 min it would have counted in all of them. "
        "Stream time had been moved to 47 min by record 1 (key bob), of another key: stream time belongs to the partition."
    )


def test_a_record_can_get_into_a_window_that_it_lies_before() -> None:
    """The first at 1 ms misses [0, 1]; so the second does not know of it, and copies [1, 2] with it: as Kafka does."""
    rows = [("b", 0), ("a", 8), ("b", 1), ("b", 2), ("b", 1)]
    run = run_of(sk.SlidingWindows(time_difference_ms=1, grace_ms=6), rows, unit_ms=1)
    assert [(row["window_start_ms"], row["total"]) for row in run.table().to_pylist()][-1] == (2, 2)
    assert run.explain(key="b", window_start=2).startswith(
        "Window of key b, 2 ms to 3 ms: 2 records. It was opened by record 4. It began as a copy of the window 1 ms to 2 ms, "
        "as that was before; the record itself is not in it. "
        "That brought record 2 (at 1 ms) along, from before its start: Kafka Streams copies a window whole."
    )
    assert (
        "A later window holds it, too, as a copy: 2 ms to 3 ms. It lies before 2 ms to 3 ms: Kafka Streams copies a window whole."
    ) in run.explain(offset=2)


def test_a_record_that_a_copy_brought_along_is_named_with_its_partition() -> None:
    rows = [("b", 0, 3), ("a", 8, 3), ("b", 1, 3), ("b", 2, 3), ("b", 1, 3), ("b", 1, 4)]
    keys, at, partition = zip(*rows, strict=True)
    table = pa.table({"user": keys, "at": at, "p": partition})
    plan = group_in_ms("user", partition="p").count()
    run = plan.windowed_by(sk.SlidingWindows(time_difference_ms=1, grace_ms=6)).run(table)
    told = run.explain(key="b", window_start=2, partition=3)
    assert "That brought record 2 (partition 3, at 1 ms) along, from before its start" in told


def test_a_window_that_was_deleted_and_made_anew_is_no_copy() -> None:
    """Null deletes 7 to 10, which had begun as a copy; what is there at the end is of the last record alone."""
    rows = [(7, "a"), (10, "a"), (7, "gone"), (10, "b")]
    table = pa.table({"user": ["u"] * 4, "at": [at for at, _ in rows], "word": [word for _, word in rows]})
    joined = sk.aggregation(
        initializer=str,
        aggregator=lambda key, word, held: None if word == "gone" else (held or "") + word,
        merger=lambda key, older, newer: older + newer,
        value="word",
    )
    plan = group_in_ms("user").aggregate(words=joined)
    run = run_deployed(plan.windowed_by(sk.SlidingWindows(time_difference_ms=3, grace_ms=20)), table)
    assert {row["window_start_ms"]: row["words"] for row in run.table().to_pylist()}[7] == "b"
    told = run.explain(key="u", window_start=7)
    assert "7 ms to 10 ms: 1 record. " in told
    assert "copy" not in told


def test_a_window_that_is_made_twice_is_named_once() -> None:
    run = run_of(sk.SlidingWindows(time_difference_ms=5, grace=0), [("a", 8), ("a", 10), ("a", 16)], unit_ms=1)
    assert run.explain(offset=2) == (
        "Record 2 (key a), event time 16 ms, counts in 1 window: 11 ms to 16 ms. It opened it. "
        "It moved stream time to 16 ms itself."
    )


def test_a_record_without_a_value() -> None:
    table = pa.table({"user": ["ada", "ada"], "at": [5, 9], "v": pa.array([1, None])})
    plan = PLAN.aggregate(total=sk.sum("v"))
    told = plan.windowed_by(sk.SlidingWindows(time_difference_ms=5, grace=0)).run(table).explain(offset=1)
    assert told == (
        "Record 1 (key ada) was dropped: it has no value. It does not move stream time (Kafka's sliding windows skip it)."
    )
    counts = plan.windowed_by(sk.TimeWindows(size_ms=5, grace=0)).run(table).explain(offset=1)
    assert counts.startswith("Record 1 (key ada), event time 9 ms, counts in 1 window: 5 ms to 10 ms.")


# ---- where, when and who


def test_dates_are_said_as_dates() -> None:
    flights = sk.load_sample("flights").head(50)
    plan = group_in_ms("carrier", "origin", timestamp="scheduled", timezone="UTC", sep="@", offset="offset", unit=None)
    run = plan.windowed_by(sk.TimeWindows(size="1h", grace="30m")).count().run(flights)
    assert run.explain(offset=0).startswith("Record 0 (key ")
    said = ", event time 2013-06-30 22:31:00, counts in 1 window: 2013-06-30 22:00:00 to 2013-06-30 23:00:00. It opened it."
    assert said in run.explain(offset=0)


@pytest.mark.parametrize(
    "windows",
    [sk.TimeWindows(size_ms=10, grace=0), sk.SlidingWindows(time_difference_ms=10, grace=0)],
    ids=["time", "sliding"],
)
def test_a_partition_is_named_where_there_are_several(windows: Any) -> None:
    table = pa.table({"user": ["ada"] * 2, "at": [15, 16], "partition": [3, 4]})
    plan = group_in_ms("user", partition="partition").windowed_by(windows).count()
    run = plan.run(table)
    assert run.explain(offset=0, partition=4).startswith(
        "Record 0 (partition 4, key ada), event time 16 ms, counts in 1 "
    )


def test_state_of_an_earlier_run() -> None:
    plan = group_in_ms("user", offset="offset")
    plan = plan.windowed_by(sk.TimeWindows(size="10m", grace="0s")).count()
    monday = pa.table({"user": ["ada", "bob"], "at": [2 * MINUTE, 14 * MINUTE], "offset": [0, 1]})
    tuesday = pa.table({"user": ["bob", "bob", "ada"], "at": [14 * MINUTE, 12 * MINUTE, MINUTE], "offset": [1, 2, 3]})
    with sk.open_store("memory", "clicks", of="windows") as store:
        plan.run(monday, store=store)
        run = plan.run(tuesday, store=store)
    assert run.explain(offset=1) == (
        "Record 1 (key bob) was skipped: the store had read up to a later offset already, so this is a replay."
    )
    out_of_the_store = "Stream time 14 min was loaded from the store, from an earlier run."
    assert run.explain(offset=2) == (
        f"Record 2 (key bob), event time 12 min, counts in 1 window: 10 min to 20 min. It was late, 2 min behind "
        f"the close line (14 min − grace 0 s), but its window was still open. {out_of_the_store}"
    )
    assert run.explain(offset=3) == (
        "Record 3 (key ada), event time 1 min, was dropped. It came too late "
        "for 1 window, 0 s to 10 min: stream time was 14 min, so windows that ended up to 14 min were closed (− grace 0 s); "
        f"with grace 4 min 1 s it would have counted in it. {out_of_the_store}"
    )


def test_a_long_or_strange_key_is_shortened_and_escaped() -> None:
    run = run_of(sk.TimeWindows(size_ms=5, grace=0), [("x" * 30_000, 5), ("a\nb", 6), ("<b>$x$", 7)], unit_ms=1)
    assert run.explain(offset=0).startswith(f"Record 0 (key {'x' * 30}…{'x' * 29}), event time 5 ms")
    assert run.explain(offset=1).startswith("Record 1 (key a\\nb), event time 6 ms")
    assert "(key &lt;b&gt;&#36;x&#36;)" in run.explain(offset=2)._repr_html_()


# ---- the numbers in the words


@pytest.mark.slow
@settings(max_examples=fewer(40))
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), min_size=1, max_size=20),
    st.sampled_from(
        [sk.TimeWindows(size_ms=9, advance_ms=4, grace_ms=2), sk.SlidingWindows(time_difference_ms=7, grace_ms=2)]
    ),
)
def test_with_the_grace_that_is_named_a_record_misses_nothing(rows: list[tuple[str, int]], windows: Any) -> None:
    """Of the windows that are named; and with 1 ms less it would have missed one."""
    run = run_of(windows, rows, unit_ms=1)
    missed = {(row["offset"], row["window_start_ms"]) for row in run.dropped().to_pylist()}
    for offset in sorted({offset for offset, _ in missed})[:3]:
        words = run.explain(offset=offset)
        enough = int(words.split("; with grace ")[1].split(" ms")[0].replace("0 s", "0"))
        mine = {each for each in missed if each[0] == offset}
        for grace, still_missed in ((enough, False), (enough - 1, True)):
            again = run_of(run.plan.with_windows(grace_ms=grace).windows, rows, unit_ms=1).dropped().to_pylist()
            left = mine & {(row["offset"], row["window_start_ms"]) for row in again}
            assert bool(left) is still_missed


def test_a_late_record_that_counts_tells_how_late_it_was() -> None:
    done = run_of(sk.TimeWindows(size="10m", grace="3m"), [("ada", 2), ("bob", 11), ("ada", 4)])
    assert done.explain(offset=2) == (
        "Record 2 (key ada), event time 4 min, counts in 1 window: 0 s to 10 min. It was late, 4 min behind the close line "
        "(11 min − grace 3 min), but its window was still open. Stream time had been moved to 11 min by record 1 (key bob), "
        "of another key: stream time belongs to the partition."
    )
    assert "late" not in done.explain(offset=1)
