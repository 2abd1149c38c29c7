"""Rules of sessions: what each does on a few rows, and what is refused. All of them: tests/property."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, NotBuilt, UnsupportedData


def frame(minutes: list[int], **columns: Any) -> pd.DataFrame:
    at = pd.Timestamp("2026-03-01 23:50", tz="UTC") + pd.to_timedelta(minutes, unit="min")
    return pd.DataFrame({"user": "ada", "at": at, **columns})


def cut(rows: pd.DataFrame, gap: Any = "30m", **rules: Any) -> tuple[list[Any], list[Any]]:
    """(session of each row, what ended it)."""
    found = sk.sessionize(rows, "user", "at", gap, **rules)
    ended = found["session_ended_by"].astype(object)
    return found["session_id"].tolist(), ended.where(ended.notna(), None).tolist()


def test_a_session_is_at_most_so_long() -> None:
    """A row exactly so far from the start belongs to it, as with the gap."""
    assert cut(frame([0, 12, 13, 25, 26]), max_length="12m") == (
        [0, 0, 1, 1, 2],
        ["length", "length", "length", "length", None],
    )


def test_a_session_has_at_most_so_many_rows() -> None:
    assert cut(frame([0, 1, 2, 60]), max_rows=2) == ([0, 0, 1, 2], ["rows", "rows", "gap", None])


def test_another_value_starts_a_session_and_a_missing_one_goes_on() -> None:
    rows = frame([0, 1, 2, 3, 4], campaign=[None, "spring", None, "spring", "summer"])
    assert cut(rows, new_when="campaign") == ([0, 0, 0, 0, 1], ["value:campaign"] * 4 + [None])
    floats = frame([0, 1, 2], level=[1.0, float("nan"), 2.0])
    assert cut(floats, new_when=["level"])[0] == [0, 0, 1]
    arrow = pa.table({"user": ["ada"] * 3, "at": pa.array(floats["at"]), "level": pa.array([1.0, float("nan"), 2.0])})
    found = sk.sessionize(arrow, "user", "at", "30m", new_when="level")
    assert found["session_id"].to_pylist() == [0, 0, 1]


def test_events_start_and_end_sessions() -> None:
    rows = frame([0, 1, 2, 3, 4], event=["login", "view", "logout", "view", "login"])
    assert cut(rows, starts_when=("event", "login")) == ([0, 0, 0, 0, 1], ["start"] * 4 + [None])
    assert cut(rows, ends_when=("event", "logout")) == ([0, 0, 0, 1, 1], ["end"] * 3 + [None] * 2)
    assert cut(rows, ends_when=("event", ["logout", "login"])) == ([0, 1, 1, 2, 2], ["end"] * 5)


def test_a_day_of_the_zone_starts_a_session() -> None:
    assert cut(frame([0, 9, 10, 11]), new_at="midnight") == ([0, 0, 1, 1], ["midnight"] * 2 + [None] * 2)
    assert cut(frame([0, 4, 5, 11]), new_at="00:55", timezone="Europe/Berlin")[1] == ["00:55"] * 2 + [None] * 2


def test_the_first_rule_that_applies_is_told() -> None:
    rows = frame([0, 11, 50], event=["view", "login", "logout"], campaign=["a", "b", "c"])
    rules = {"starts_when": ("event", "login"), "ends_when": ("event", "logout"), "new_at": "midnight"}
    assert cut(rows, **rules)[1] == ["start", "gap", "end"]
    assert cut(rows, **rules, new_when="campaign")[1] == ["value:campaign", "gap", "end"]
    assert cut(rows, **rules, new_when="campaign", max_rows=1, max_length="5m")[1] == ["length", "gap", "end"]


def test_the_pause_counts_from_the_latest_end() -> None:
    rows = frame([0, 20, 50, 61])
    rows["to"] = [rows["at"][0] + pd.Timedelta("40m"), rows["at"][1], pd.NaT, rows["at"][3] + pd.Timedelta("1m")]
    found = sk.sessionize(rows, "user", "at", "10m", until="to")
    assert found["session_id"].tolist() == [0, 0, 0, 1]
    assert found["session_end"][0] == rows["at"][2] and found["session_end"][3] == rows["to"][3]
    assert "session_ended_by" not in found


def test_a_part_reaches_as_far_as_its_session() -> None:
    """The event of an hour keeps the session together, though the row between them is in the part of a new day."""
    rows = frame([0, 15, 55])
    rows["to"] = [rows["at"][0] + pd.Timedelta("1h"), pd.NaT, pd.NaT]
    assert cut(rows, "5m", until="to", new_at="midnight") == ([0, 1, 1], ["midnight", None, None])


@pytest.mark.parametrize("column", [
    pd.to_timedelta(["10m", "1h", "10m"]), ["10m", "1h", "10m"], pd.Categorical(["10m", "1h", "10m"]),
])  # fmt: skip
def test_each_row_may_have_a_gap(column: Any) -> None:
    rows = frame([0, 11, 70], pause=column)
    for gap in ("pause", ("column", "pause")):
        assert sk.sessionize(rows, "user", "at", gap)["session_id"].tolist() == [0, 1, 1]


def test_each_key_may_have_a_gap() -> None:
    rows = frame([0, 5, 0, 5]).assign(user=["ada", "ada", "bo", "bo"])
    assert sk.sessionize(rows, "user", "at", {"ada": "1m", None: "5m"})["session_id"].tolist() == [0, 1, 2, 2]
    with pytest.warns(UserWarning, match=r"gap=\{…\} names keys that no row has: 'cy'\."):
        sk.sessionize(rows, "user", "at", {"cy": "1m", None: "5m"})
    with pytest.raises(InvalidData, match=r"gap=\{…\} lacks a key of the data; got 'bo' in row 2"):
        sk.sessionize(rows, "user", "at", {"ada": "1m"})


def test_an_event_that_no_row_is_is_told() -> None:
    with pytest.warns(UserWarning, match="ends_when applies to no row: none has 'Logout' in column 'event', whose"):
        cut(frame([0, 1], event=["login", "logout"]), ends_when=("event", "Logout"))


def test_columns_of_rules_stay_as_they_are() -> None:
    rows = frame([3, 1, 2], event=["a", None, "b"])
    found = sk.sessionize(rows, "user", "at", "30m", starts_when=("event", "b"), prefix="my_")
    pd.testing.assert_frame_equal(found[[*rows]], rows)
    assert found["my_session_id"].tolist() == [1, 0, 1]


def test_rows_that_are_in_no_session() -> None:
    rows = frame([0, 1, 2]).assign(user=["ada", None, "ada"])
    with pytest.warns(UserWarning, match="1 of 3 records has no key"):
        ids, ended = cut(rows, max_rows=1)
    assert ids == [0, pd.NA, 1] and ended == ["rows", None, None]
    assert cut(rows[:0], max_rows=1) == ([], [])


@pytest.mark.parametrize(("gap", "rules", "kind", "telling"), [
    ("30 min utes", {}, InvalidArgument, "gap must be a duration; got '30 min utes'"),
    ("pausen", {}, InvalidArgument, "gap is no length and no column; got 'pausen'"),
    (30, {}, InvalidArgument, "gap needs a unit"),
    (("column",), {}, InvalidArgument, "gap must be a length or a column"),
    ({}, {}, InvalidArgument, r"gap=\{…\} must name a key"),
    ({"ada": 3}, {}, InvalidArgument, "gap of 'ada' needs a unit"),
    ("n", {}, UnsupportedData, "column 'n' must hold lengths of time; got int64"),
    ("pause", {}, InvalidData, "column 'pause' has gaps that are missing or negative; got 1, the first in row 1"),
    ("500us", {"grace": "1m"}, InvalidArgument, "with a grace, gap must be a whole number of milliseconds"),
    ("event", {}, InvalidArgument, "gap in column 'event' must be a duration; got 'login'"),
    ("5m", {"until": "before"}, InvalidData, "column 'before' has ends before column 'at'; got 1, the first in row 1"),
    ("5m", {"until": 5}, InvalidArgument, "until must be the name of a column"),
    ("5m", {"until": "event"}, InvalidData, "column 'event' has texts that are no times"),
    ("5m", {"max_rows": 0}, InvalidArgument, "max_rows must be a number of rows; got 0"),
    ("5m", {"max_rows": True}, InvalidArgument, "max_rows must be a number of rows; got True"),
    ("5m", {"max_length": 5}, InvalidArgument, "max_length needs a unit"),
    ("5m", {"new_when": 5}, InvalidArgument, "new_when must be columns; got 5"),
    ("5m", {"new_when": "none"}, MissingColumn, "column 'none' is not in the data"),
    ("5m", {"starts_when": "event"}, InvalidArgument, "starts_when must be a column and a value; got 'event'"),
    ("5m", {"starts_when": ("event", None)}, InvalidArgument, "starts_when must be a column and a value"),
    ("5m", {"ends_when": ("n", "x")}, InvalidArgument, "column 'n' of int64 has no such value"),
    ("5m", {"new_at": "25:00"}, InvalidArgument, "new_at must be a time of day; got '25:00'"),
    ("5m", {"max_rows": 5, "grace": "1m"}, NotBuilt, "with a grace, sessions are those of Kafka"),
    ("5m", {"ids": "text"}, InvalidArgument, "ids must be a known choice; got 'text'"),
])  # fmt: skip
def test_what_cannot_be_is_said(gap: Any, rules: dict[str, Any], kind: type[Exception], telling: str) -> None:
    rows = frame([0, 1], event=["login", "view"], n=[1, 2], pause=["1m", None])
    rows["before"] = [rows["at"][0], rows["at"][0]]
    with pytest.raises(kind, match=telling):
        sk.sessionize(rows, "user", "at", gap, **rules)


def test_gaps_of_keys_are_of_one_column() -> None:
    with pytest.raises(InvalidArgument, match=r"gap=\{…\} takes the values of one column of by="):
        sk.sessionize(frame([0]), ["user", "at"], "at", {"ada": "1m"})


def test_times_before_1970_count() -> None:
    """A diary; the clocks of Berlin were two hours ahead in the summer of 1943."""
    texts = ["1943-06-28 21:55", "1943-06-28 22:05", "1969-12-31 23:59", "1970-01-01 00:01"]
    rows = pd.DataFrame({"user": "ada", "at": pd.to_datetime(texts, utc=True)})
    assert cut(rows, new_at="midnight", timezone="Europe/Berlin") == ([0, 1, 2, 2], ["midnight", "gap", None, None])
    seconds = pd.DataFrame({"user": "ada", "at": [-5, -3, 7, 8]})
    found = sk.sessionize(seconds, "user", "at", "2s", unit="s")
    assert found["session_id"].tolist() == [0, 0, 1, 1]
    assert found["session_start"][0] == pd.Timestamp("1969-12-31 23:59:55", tz="UTC")
    with pytest.raises(InvalidData, match="times before 1970, which Kafka refuses"):
        sk.sessionize(rows, "user", "at", "30m", "5m")


@pytest.mark.parametrize("grace", [None, "1h"])
def test_all_rows_may_be_of_one(grace: str | None) -> None:
    rows = frame([0, 5, 60]).assign(user=["ada", None, "bo"])
    found = sk.sessionize(rows, None, "at", "10m", grace, ids="key")
    assert found["session_rows"].tolist() == [2, 2, 1]
    assert found["session_id"][0] == '["2026-03-01T23:50:00.000Z"]'
    shelves = sk.sessionize(rows.assign(shelf=[1, 2, 2]), None, "at", "2h", partition="shelf")
    assert shelves["session_id"].tolist() == [0, 1, 1]


def test_a_plan_keeps_the_sessions_of_kafka() -> None:
    """And names the way: the rows that counted, and then the rule."""
    with pytest.raises(InvalidArgument, match=r"Kafka has no such rule; sk\.sessionize\(rows, …, max_length=…\) has"):
        sk.SessionWindows(gap="30m", grace="5m", max_length="12h")  # type: ignore[call-arg]
    rows = frame([0, 20, 5, 40])
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(gap="10m", grace="0s")).count()
    counted = plan.run(rows).assign(rows)
    counted = counted.loc[~counted["late"], [*rows]]
    assert sk.sessionize(counted, "user", "at", "30m", max_length="30m")["session_id"].tolist() == [0, 0, 1]


def test_the_gap_has_a_short_name() -> None:
    rows = frame([0, 5, 20, 40])
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(gap="6m", grace="1m")).count()
    assert plan == sk.group_by_key("user", timestamp="at").windowed_by(
        sk.SessionWindows(inactivity_gap="6m", grace="1m")
    ).count()  # fmt: skip
    assert len(plan.with_windows(gap="16m").run(rows).table()) == 2
    assert sk.sweep(plan, rows, gap=["6m", "16m"]).table()["windows"].tolist() == [3, 2]
    assert sk.SessionWindows.until(gap="6m", retention="1d") == sk.SessionWindows.until(
        inactivity_gap="6m", retention="1d"
    )
    assert sk.kinds(rows, "user", "at", gap="6m").words() == sk.kinds(rows, "user", "at", inactivity_gap="6m").words()


def test_an_event_that_ends_a_session_is_what_ended_it_whatever_comes_next() -> None:
    """A pause and a login that follow said "gap" and "start" of nearly every logout."""
    rows = frame([0, 5, 6, 180, 181], event=["login", "view", "logout", "login", "logout"])
    for rules in ({}, {"starts_when": ("event", "login")}, {"new_at": "midnight", "max_rows": 3}):
        assert cut(rows, ends_when=("event", "logout"), **rules)[1] == ["end"] * 5


def test_a_plan_says_that_it_rounds_finer_times_where_it_may_show() -> None:
    rows = frame([0, 1])
    rows["at"] += pd.Timedelta("3us")
    plan = sk.group_by_key("user", timestamp="at")

    def remarks(gap: str) -> list[str]:
        return plan.windowed_by(sk.SessionWindows(gap=gap, grace="0s")).count().run(rows).remarks()

    said = "Times in column 'at' are finer than a millisecond and rounded down, as Kafka's are milliseconds; "
    assert remarks("5ms") == [f"{said}sk.sessionize compares them as they are."]
    assert remarks("5m") == []


def test_finer_times_may_last_until_long_after_the_last_nanosecond() -> None:
    """Which 64 bits have: in 2262."""
    at = pa.array([1_767_225_600_000_000_001, 1_767_225_600_000_000_002], pa.timestamp("ns", "UTC"))
    until = pa.array([253_000_000_000_000_000, None], pa.timestamp("us", "UTC"))
    found = sk.sessionize(pa.table({"user": ["a", "a"], "at": at, "until": until}), "user", "at", "5us", until="until")
    assert found["session_id"].to_pylist() == [0, 0]
    assert found["session_end"].cast(pa.int64()).to_pylist() == [253_000_000_000_000_000] * 2


def test_lengths_may_be_finer_than_times_which_no_pause_tells() -> None:
    rows = frame([0, 0, 1])
    assert cut(rows, "900us", max_rows=9)[0] == [0, 0, 1]
    rows["pause"] = pd.to_timedelta([60_000_000_999, 5, 0], unit="ns")
    assert cut(rows, "pause", max_rows=9)[0] == [0, 0, 0]
    assert cut(rows, {"ada": "59999999us"}, max_rows=9)[0] == [0, 0, 1]
