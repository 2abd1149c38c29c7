"""Kinds of windows beside each other: each is what a plan of its own decides, and the picture is of these."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, UnknownRecord

MINUTE = 60_000
LENGTHS: Any = {"size": "10m", "advance": "5m", "time_difference": "10m", "inactivity_gap": "5m", "grace": "5m"}
# key, minute
ROWS = [("ada", 0), ("ada", 3), ("bob", 20), ("ada", 21), ("ada", 12), ("ada", 2), ("ada", 40), ("bob", 41)]


def frame_of(rows: Any = ROWS) -> pd.DataFrame:
    return pd.DataFrame({"user": [user for user, _ in rows], "at": [minute * MINUTE for _, minute in rows]})


def kinds(rows: Any = ROWS, **more: Any) -> Any:
    return sk.kinds(frame_of(rows), "user", "at", unit="ms", **more)


def test_each_kind_is_what_a_plan_of_its_own_decides() -> None:
    found = kinds(keys=["ada"], **LENGTHS)
    grouped = sk.group_by_key("user", timestamp="at", unit="ms")
    windows = {
        "tumbling": sk.TimeWindows(size="10m", grace="5m"),
        "hopping": sk.TimeWindows(size="10m", advance="5m", grace="5m"),
        "sliding": sk.SlidingWindows(time_difference="10m", grace="5m"),
        "session": sk.SessionWindows(inactivity_gap="5m", grace="5m"),
    }
    assert list(found.runs) == list(windows)
    for row in found.table().itertuples():
        plan = grouped.windowed_by(windows[row.kind]).count()
        run, whole = plan.run(frame_of(), keys=["ada"]), plan.run(frame_of()).trace
        assert found.runs[row.kind].table().equals(run.table())
        mine = whole.batch.key == 0
        assert (row.windows, row.records) == (len(run.table()), 6)
        assert row.dropped == (~whole.accepted[mine]).sum()
        assert row.missed == (whole.late_for_some & whole.accepted & mine).sum()
        assert row.settings == windows[row.kind].in_words()
    assert found.words()[0] == "4 tumbling windows, 1 record dropped."
    assert found.words()[-1] == "Of the 6 records of key ada, all kinds keep the same 5."
    assert repr(found) == " ".join(found.words())


def test_how_many_records_fare_differently_is_said() -> None:
    rows = [("ada", 0), ("ada", 4), ("bob", 20), ("ada", 8)]  # the session is still open, the tumbling window is not
    found = kinds(rows, keys=["ada"], **{**LENGTHS, "grace": "10m"})
    assert found.table()["dropped"].tolist() == [1, 0, 0, 0]
    assert found.words()[-1] == "Of the 3 records of key ada, some kinds keep and others drop 1."


def test_lengths_that_are_not_given_are_those_of_the_gap() -> None:
    steady = [("ada", minute * 2) for minute in range(200)] + [("ada", 397)]
    found = kinds(steady)
    assert found.table()["settings"].tolist() == [
        "size 6 min, grace 6 min", "size 6 min, advance 1 min 30 s, grace 6 min", "time difference 6 min, grace 6 min",
        "gap 6 min, grace 6 min",
    ]  # fmt: skip
    other = kinds(steady, size="20m", grace="1m").table()["settings"].tolist()
    assert other[1:] == ["size 20 min, advance 5 min, grace 1 min", "time difference 20 min, grace 1 min",
                         "gap 6 min, grace 1 min"]  # fmt: skip


def test_what_cannot_be_had_says_the_way() -> None:
    with pytest.raises(InvalidArgument, match=r"no pauses to take a gap from; got 1 record .*inactivity_gap=\"30m\""):
        kinds([("ada", 1)])
    assert kinds([("ada", 1)], inactivity_gap="1m").table()["windows"].tolist() == [1, 4, 1, 1]
    with pytest.raises(UnknownRecord):
        kinds([], inactivity_gap="1m")
    with pytest.raises(UnknownRecord):
        kinds(keys=["eve"], **LENGTHS)
    with pytest.raises(InvalidArgument, match="advance"):
        kinds(**{**LENGTHS, "advance": "11m"})
    with pytest.raises(InvalidArgument, match=r'sk.kinds\(df, key="user", timestamp="at"\)'):
        sk.kinds(frame_of())  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="theme must be a known choice"):
        kinds(**LENGTHS).figure(theme="pink")


def drawn(figure: Any, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_the_picture_marks_what_became_of_each_record_in_each_kind() -> None:
    found = kinds(keys=["ada"], **LENGTHS)
    figure = found.figure()
    fates = Counter[str]({name: len(drawn(figure, name).x) for name in MARKS})
    table = found.table()
    assert fates["dropped record"] == table["dropped"].sum() > 0
    assert fates["record that missed a window"] == table["missed"].sum()
    assert fates.total() == 4 * 6
    assert [len(trace.x) for trace in figure.data if trace.name == "window"] == table["windows"].tolist()
    assert [note.text for note in figure.layout.annotations] == [
        "tumbling: size 10 min, grace 5 min", "hopping: size 10 min, advance 5 min, grace 5 min",
        "sliding: time difference 10 min, grace 5 min", "session: gap 5 min, grace 5 min",
    ]  # fmt: skip


MARKS = ("record", "record that missed a window", "dropped record")


def test_a_record_names_its_windows_of_every_kind() -> None:
    said = drawn(kinds(keys=["ada"], **LENGTHS).figure(), "record").customdata[0].split("<br>")
    assert said == [
        "Record 0 (key ada), 0 s", "tumbling: 1 window, 0 s to 10 min", "hopping: 1 window, 0 s to 10 min",
        "sliding: 1 window, 0 s to 10 min", "session: 1 window, 0 s to 3 min",
    ]  # fmt: skip
    lost = next(text for text in drawn(kinds(keys=["ada"], **LENGTHS).figure(), "dropped record").customdata)
    assert "dropped, too late" in lost


def test_several_keys_have_bands_of_their_own() -> None:
    found = kinds(keys=["bob", "ada"], **LENGTHS)
    figure = found.figure(theme="dark")
    assert found.keys == ("ada", "bob")
    assert [note.text.partition(":")[0] for note in figure.layout.annotations][:2] == [
        "ada · tumbling",
        "bob · tumbling",
    ]
    assert "key ada and key bob" in repr(found)


def test_of_many_records_the_stretch_in_which_kinds_differ_is_shown() -> None:
    rng = np.random.default_rng(5)
    minutes = np.arange(3_000) * 3
    minutes[2_000:2_050] -= rng.integers(0, 40, 50)
    figure = kinds([("ada", int(minute)) for minute in minutes], **LENGTHS).figure()
    shown = [ms for name in MARKS for ms in drawn(figure, name).x]
    assert 5_900 * MINUTE < min(shown) < max(shown) < 6_200 * MINUTE
    assert len(shown) <= 4 * 120
    assert "in the stretch with the most to see" in figure.layout.title.text


def test_markup_in_a_key_is_text() -> None:
    text = kinds([("<b>x</b>", minute) for minute in range(5)], keys=["<b>x</b>"], **LENGTHS).figure().to_json()
    assert "<b>x" not in text.replace("\\u003c", "<").replace("&lt;", "")
