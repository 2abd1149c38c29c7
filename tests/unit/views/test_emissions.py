"""What went downstream for one key: its rows of the changelog and what is pending, and a mark for each of them."""

from typing import Any

import pandas as pd
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotKept, UnknownRecord
from tests.deployments import run_by
from tests.headings import heading
from tests.interpreted import ALL
from tests.kinds import EACH_KIND, group_in_ms, plan_of
from tests.property.streams import draw

MINUTE = 60_000
of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)
CLICKS = [("ana", 2), ("bo", 4), ("ana", 7), ("bo", 13), ("ana", 9), ("ana", 24), ("ana", 17), ("cy", 46), ("ana", 20)]
SESSIONS = sk.SessionWindows(inactivity_gap="10m", grace="5m")
SOURCE: Any = {"timestamp": "time", "partition": "partition", "offset": "offset", "on_bad_time": "drop"}
MARKS = {
    "update": "update",
    "tombstone": "retraction: taken back (tombstone)",
    "final": "final result",
    "pending": "pending: nothing has closed it",
}


def run(emit: str = "on_window_update", windows: Any = SESSIONS, rows: Any = CLICKS, **options: Any) -> sk.Run:
    frame = pd.DataFrame({"key": [key for key, _ in rows], "at": [at * MINUTE for _, at in rows]})
    return run_by(plan_of(windows, emit), frame, **options)


def marks(figure: Any) -> dict[str, int]:
    drawn = {trace.name: len(trace.x) for trace in figure.data if trace.mode == "markers"}
    return {what: drawn[name] for what, name in MARKS.items()} if drawn else dict.fromkeys(MARKS, 0)


def check(done: sk.Run, *, is_cached: bool = False) -> None:
    """Every key in every partition: the rows are those of the changelog and the open windows, each has a mark."""
    changelog, table = done.changelog(), done.table()
    seen = 0
    for partition in done._outcome.batch.partitions.tolist():
        for key in done.trace.keys.to_pylist():
            found = done.emissions(key, partition=partition)
            rows = found.table()
            is_mine = pc.and_(pc.equal(changelog["key"], key), pc.equal(changelog["partition"], partition))
            mine = changelog.filter(is_mine)
            sent = rows.filter(pc.not_equal(rows["what"], "pending"))
            assert sent.select(mine.column_names).to_pylist() == mine.to_pylist()
            is_open = pc.and_(pc.equal(table["key"], key), pc.equal(table["partition"], partition))
            left = table.filter(pc.and_(is_open, pc.equal(table["status"], "open"))).drop_columns(["status"])
            pending = rows.filter(pc.equal(rows["what"], "pending"))
            assert pending.select(left.column_names).to_pylist() == left.to_pylist()
            assert rows["what"].to_pylist() == [*mine["what"].to_pylist(), *["pending"] * len(left)]
            check_lanes(found, is_cached=is_cached)
            seen += len(mine) + len(left)
    assert seen == len(changelog) + table["status"].to_pylist().count("open")


def check_lanes(found: Any, *, is_cached: bool) -> None:
    """A window has one lane: at most one answer of it stands at a time, and what is pending has its bounds.

    A record cache may send a session's new bounds before it takes the old ones back, and may never take them back.
    """
    rows, standing = found.table().to_pylist(), set()
    for row, number in zip(rows, found.lane.tolist(), strict=True):
        bounds = (row["window_start_ms"], row["window_end_ms"])
        if row["what"] == "tombstone":
            standing.discard((number, bounds))
        elif row["what"] == "update":
            standing.add((number, bounds))
            assert is_cached or len([each for each in standing if each[0] == number]) == 1
        elif row["what"] == "pending":
            assert bounds == found.lanes[number][:2]
            assert row["closes_at_ms"] is None or row["closes_at_ms"] > row["stream_time_ms"] == found._now_ms
    assert all(found.lanes[number].absorbed_by < 0 for number, _ in standing)
    assert is_cached or len(standing) == len({number for number, _ in standing})


def draw_all(done: sk.Run) -> None:
    """Of each key a picture by arrival and over stream time, with as many marks as rows if all are shown."""
    for key in done.trace.keys.to_pylist():
        found = done.emissions(key, partition=done._outcome.batch.partitions.tolist()[0])
        counts = {what: found._what.count(what) for what in MARKS}
        assert marks(found.figure(over="stream_time", most=10_000)) == counts
        part = marks(found.figure(over="arrival", most=10_000))
        assert all(part[what] <= count for what, count in counts.items())
        if len(set(found.at.tolist())) + len(found.lanes) <= 32:
            assert part == counts


@pytest.mark.thorough
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
@of_each_kind
@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_the_changelog_and_what_is_open(windows: Any, seed: int, rules: Any, emit: str) -> None:
    check(random_run(windows, seed, emit, rules=rules))


@pytest.mark.slow
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("options", [{}, {"rules": "kafka"}, {"rules": "kafka", "caching": "200B"}], ids=str)
@pytest.mark.parametrize("windows", [None, *EACH_KIND.values()], ids=repr)
@pytest.mark.parametrize("seed", range(2, 7 if ALL else 4))
def test_rows_and_marks_of_many_streams(windows: Any, seed: int, options: dict[str, Any], emit: str) -> None:
    done = random_run(windows, seed, emit, **options)
    check(done, is_cached="caching" in options)
    if seed % 8 == 0 and len(done._outcome.batch.partitions):
        draw_all(done)


def random_run(windows: Any, seed: int, emit: str, **options: Any) -> sk.Run:
    """A random stream; None stands for the windows that were drawn with it."""
    stream = draw(seed, most=40)
    windows = windows or stream.windows
    if not windows.is_ever_closed:  # Kafka has them no more, and nothing of them is final
        emit, options = "on_window_update", {}
    plan = plan_of(windows, emit, {"count": sk.count(), "all": sk.collect("value")}, **SOURCE)
    return run_by(plan, stream.table, **options)


@pytest.mark.slow
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@of_each_kind
def test_as_many_marks_as_rows(windows: Any, emit: str) -> None:
    draw_all(random_run(windows, 5, emit))


@of_each_kind
def test_windows_that_a_store_brought(windows: Any) -> None:
    table = draw(5, most=60).table
    half = len(table) // 2
    plan = plan_of(windows, **SOURCE)
    with sk.open_store("memory", "s", of=windows.holds) as store:
        plan.run(table.slice(0, half), store=store)
        check(plan.run(table.slice(half), store=store))


def test_by_hand() -> None:
    """2, then 7 and 9, are one session; 24 is another, until 17 bridges them; 46 closes it without a word."""
    found = run().emissions("ana")
    rows = found.table()
    shown = zip(rows["offset"], rows["what"], rows["window_start_ms"], rows["window_end_ms"], strict=True)
    assert [(offset, what, start // MINUTE, end // MINUTE) for offset, what, start, end in shown] == [
        *[(0, "update", 2, 2), (2, "tombstone", 2, 2), (2, "update", 2, 7)],
        *[(4, "tombstone", 2, 7), (4, "update", 2, 9), (5, "update", 24, 24)],
        *[(6, "tombstone", 2, 9), (6, "tombstone", 24, 24), (6, "update", 2, 24)],
    ]
    assert (rows["closes_at_ms"] == rows["window_end_ms"] + 15 * MINUTE + 1).all()
    assert found.lane.tolist() == [0, 0, 0, 0, 0, 1, 0, 1, 0]
    assert [lane[2:] for lane in found.lanes] == [(-1, (7,), False), (0, (), False)]
    assert repr(found) == (
        "What went downstream for key ana: 5 updates and 4 retractions went downstream. With on_window_close it would "
        "have been 1 final result. Nothing is pending."
    )


@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_session_that_nothing_will_close(emit: str, theme: Any) -> None:
    found = run(emit).emissions("cy")
    (row,) = found.table().query("what == 'pending'").to_dict("records")
    assert (row["window_end_ms"], row["stream_time_ms"]) == (46 * MINUTE, 46 * MINUTE)
    assert row["closes_at_ms"] == 61 * MINUTE + 1
    waits = "Stream time is 46 min; it closes after 1 h 1 min, 15 min from now, and only records of its partition"
    assert waits in repr(found)
    figure = found.figure(theme=theme)
    assert marks(figure)["pending"] == 1
    assert waits in heading(figure)
    assert "closes after 1 h 1 min<br>15 min to go" in [note.text for note in figure.layout.annotations]
    (hover,) = next(trace for trace in figure.data if trace.name == MARKS["pending"]).hovertext
    assert hover.endswith("waits for stream time: it is 46 min,<br>this closes after 1 h 1 min, 15 min from now")
    last = run(emit, rows=[*CLICKS, ("bo", 62)]).emissions("cy")
    assert "pending" not in last._what and last.lanes[0].closed_at == (9,)


def test_a_window_of_one_length_closes_at_its_end() -> None:
    windows = sk.TimeWindows(size="10m", grace="5m")
    found = run("on_window_close", windows, [("ana", 1), ("ana", 12)]).emissions("ana")
    assert "2 windows are pending: nothing has closed them. Stream time is 12 min" in repr(found)
    assert "the next one closes at 15 min, 3 min from now" in repr(found)
    assert found.table()["closes_at_ms"].tolist() == [15 * MINUTE, 25 * MINUTE]
    assert "would have been 2 updates." in repr(found)


def test_any_later_time_closes_it() -> None:
    found = run(rows=[("ana", 0), ("bo", 15)]).emissions("ana")
    assert "it closes after 15 min, which is now" in repr(found)
    notes = [note.text for note in found.figure().layout.annotations]
    assert "closes after 15 min<br>any later time closes it" in notes


def test_what_closes_much_later_stands_at_the_edge() -> None:
    found = run("on_window_close", sk.SessionWindows(inactivity_gap="1m", grace="9h"), [("ana", 0)]).emissions("ana")
    figure = found.figure()
    assert "→ closes after the end of the chart" in heading(figure)
    assert "→ closes after 9 h 1 min<br>9 h 1 min to go" in [n.text for n in figure.layout.annotations]
    assert figure.layout.xaxis.range[1] < 9 * 60 * MINUTE


def test_what_is_never_closed_is_pending_for_ever() -> None:
    found = run(windows=sk.SessionWindows.until(inactivity_gap="5m", retention="1h")).emissions("cy")
    assert "1 session is pending for ever" in repr(found)
    assert found.table()["closes_at_ms"].isna().all()
    assert "never closes" in [note.text for note in found.figure().layout.annotations]


def test_a_result_that_a_store_forgot_is_missed() -> None:
    """Kafka's in-memory store forgets a session before its final result is looked for."""
    found = run("on_window_close", rules="kafka").emissions("ana")
    assert "Nothing went downstream. 2 sessions closed, but no result went out" in repr(found)
    names = [trace.name for trace in found.figure().data if trace.showlegend is not False]
    assert "closed, but nothing went out" in names
    assert len(found.table()) == 0


def test_a_part_is_chosen_and_said() -> None:
    found = run(windows=sk.TimeWindows(size="1m", grace="0s"), rows=[("ana", i) for i in range(50)]).emissions("ana")
    assert marks(found.figure()) == {"update": 12, "tombstone": 0, "final": 0, "pending": 1}
    assert "shown: 12 of 50 windows, those that end last (13 of 51 rows of .table())" in heading(found.figure())
    assert marks(found.figure(most=3))["update"] == 3
    assert marks(found.figure(most=100))["update"] == 32
    assert "of many updates the last" in heading(found.figure(most=100))
    assert marks(found.figure(from_offset=10, until_offset=14)) == {
        "update": 5,
        "tombstone": 0,
        "final": 0,
        "pending": 0,
    }
    assert marks(found.figure(over="stream_time", most=100))["update"] == 50
    with pytest.raises(UnknownRecord, match="nothing went downstream between these offsets; got 60 to None"):
        found.figure(from_offset=60)
    with pytest.raises(InvalidArgument, match="over must be a known choice"):
        found.figure(over="time")
    with pytest.raises(InvalidArgument, match="most must be 1 or more windows; got 0"):
        found.figure(most=0)
    with pytest.raises(InvalidArgument, match="theme"):
        found.figure(theme="pink")


def test_late_records_hide_no_mark_without_a_word() -> None:
    rows = [("ana", 10), ("ana", 8), ("ana", 6)]
    found = run(rows=rows).emissions("ana")
    assert "hidden" not in heading(found.figure())
    assert "3 marks are hidden by others of the same moment" in heading(found.figure(over="stream_time"))


@pytest.mark.parametrize("payload", ["<b>x</b>", "<a href='javascript:alert(1)'>x</a>", "$x$", "a<br>b"])
def test_markup_stays_text(payload: str) -> None:
    frame = pd.DataFrame({"key": [payload] * 3, "at": [0, 1, 2], "page": [payload] * 3})
    plan = group_in_ms("key").windowed_by(SESSIONS)
    for emit in ("on_window_update", "on_window_close"):
        found = plan.emit(emit).aggregate(**{payload: sk.last("page"), "n": sk.count()}).run(frame).emissions(payload)
        for over in ("arrival", "stream_time"):
            assert payload not in found.figure(over=over).to_json().replace("\\u003c", "<").replace("\\u003e", ">")


def test_nothing_to_show() -> None:
    done = run(rows=[("ana", 60), ("bo", 1), ("ana", 61)])
    found = done.emissions("bo")
    assert len(found.table()) == 0
    assert "Nothing went downstream." in repr(found)
    assert len(found.figure().data) == 0


def test_what_has_no_emissions() -> None:
    assert run().emissions().key == "ana"
    with pytest.raises(UnknownRecord, match="this key is not in the run; got 'eve'"):
        run().emissions("eve")
    frame = pd.DataFrame({"key": ["ana", "ana"], "at": [0, 1], "p": [3, 5]})
    plan = plan_of(SESSIONS, partition="p")
    with pytest.raises(UnknownRecord, match=r"several partitions hold this key; got 'ana'; partition= one of \[3, 5\]"):
        plan.run(frame).emissions("ana")
    assert plan.run(frame).emissions()._title.endswith("for key ana in partition 3")
    assert len(plan.run(frame).emissions("ana", partition=5).table()) == 2
    with pytest.raises(InvalidArgument, match="there is no such partition"):
        plan.run(frame).emissions("ana", partition=4)
    with pytest.raises(NotKept):
        plan.run(frame, trace=False).emissions("ana", partition=5)
