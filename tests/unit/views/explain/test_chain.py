"""The picture of one decision: from the record that moved stream time down to the one that met it."""

import copy
import pickle
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.kinds import each_kind, plan_of

MINUTE = 60_000
KINDS = each_kind(MINUTE)
# key, minute: 2 is ahead, 3 comes too late for it, 4 is between the close lines of the kinds
ROWS = [("ada", 0), ("bob", 3), ("bob", 100), ("ada", 4), ("ada", 96), (None, 97)]


def run_of(kind: str, **more: Any) -> sk.Run:
    frame = pd.DataFrame({"key": [key for key, _ in ROWS], "at": [minute * MINUTE for _, minute in ROWS]})
    return plan_of(KINDS[kind]).run(frame, **more)


def sentences(figure: Any) -> list[str]:
    """The sentences of the rows, from the top."""
    return [note.text for note in sorted(figure.layout.annotations, key=lambda note: -note.y)]


@pytest.mark.parametrize(
    ("kind", "line", "fate"),
    [
        ("session", "1 h 25 min, which is stream time − gap 5 min − grace 10 min", "1 h 21 min too late"),
        ("tumbling", "1 h 35 min, which is stream time − grace 5 min", "1 h 26 min too late for 1 window"),
        ("hopping", "1 h 35 min, which is stream time − grace 5 min", "up to 1 h 26 min too late for 2 windows"),
        ("sliding", "1 h 35 min, which is stream time − grace 5 min", "1 h 25 min too late for 1 window"),
    ],
)
def test_a_drop_is_traced_to_the_record_that_moved_stream_time(kind: str, line: str, fate: str) -> None:
    figure = run_of(kind).explain(offset=3).figure()
    assert sentences(figure) == [
        "Record 2 (key bob) moved stream time",
        "Stream time: 1 h 40 min, moved on by 1 h 37 min",
        f"Close line: {line}",
        f"Record 3 (key ada) came {fate}",
    ]
    marks = {each.marker.symbol: (each.x[0], each.marker.color) for each in figure.data if each.mode == "markers"}
    assert {name: x for name, (x, _) in marks.items()} == {"x": 4 * MINUTE, "diamond": 100 * MINUTE}
    assert "Why record 3 (key ada) was dropped" in figure.layout.title.text
    assert "1 record came too late for this stream time" in figure.layout.title.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_kept_has_a_chain_as_well(kind: str) -> None:
    run = run_of(kind)
    first, late = run.explain(offset=0).figure(theme="dark"), sentences(run.explain(offset=4).figure())
    assert sentences(first)[0] == "Record 0 (key ada) moved stream time itself"
    assert sentences(first)[-1] == "Record 0 (key ada) was kept"
    assert late[0] == "Record 2 (key bob) moved stream time"
    assert late[-1].startswith(("Record 4 (key ada) was kept", "Record 4 (key ada) came"))
    assert first.layout.paper_bgcolor != run.explain(offset=0).figure().layout.paper_bgcolor


def test_a_record_may_miss_some_windows_and_count_in_others() -> None:
    frame = pd.DataFrame({"key": ["a", "a"], "at": [20 * MINUTE, 10 * MINUTE]})
    figure = plan_of(KINDS["hopping"]).run(frame).explain(offset=1).figure()
    assert sentences(figure)[-1] == "Record 1 (key a) came 2 min 1 s too late for 1 window"
    assert "missed a window" in figure.layout.title.text


def test_stream_time_of_an_earlier_run() -> None:
    with sk.open_store("memory", "kept", of="sessions", retention="1h") as store:
        plan_of(KINDS["session"]).run(pd.DataFrame({"key": ["a"], "at": [100 * MINUTE]}), store=store)
        run = plan_of(KINDS["session"]).run(pd.DataFrame({"key": ["a"], "at": [MINUTE]}), store=store)
    said = sentences(run.explain(offset=1).figure())
    assert said[0] == "An earlier run moved stream time"
    assert said[1] == "Stream time: 1 h 40 min"


def test_of_some_keys_it_is_not_known_how_far_stream_time_was_moved() -> None:
    said = sentences(run_of("session", keys=["ada"]).explain(offset=3).figure())
    assert said[1] == "Stream time: 1 h 40 min"


def test_windows_and_records_without_a_place_have_no_chain() -> None:
    run = run_of("session")
    for explanation in (run.explain(key="ada", window_start=0), run.explain(offset=5)):
        with pytest.raises(InvalidArgument, match="only the decision on a record in time has a chain"):
            explanation.figure()
    with pytest.raises(InvalidArgument, match="theme must be a known choice"):
        run.explain(offset=3).figure(theme="pink")  # type: ignore[arg-type]


def test_an_explanation_is_still_text() -> None:
    explanation = run_of("session").explain(offset=3)
    for copied in (copy.deepcopy(explanation), pickle.loads(pickle.dumps(explanation))):
        assert copied == explanation == str(explanation)
        assert copied._repr_html_() == explanation._repr_html_()


def test_the_dotted_line_is_as_long_as_the_record_was_late() -> None:
    """It began at the record, which was too long where the record would have joined a session."""
    plan = sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC")
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count().run(sk.load_sample("flights"))
    dropped = run.dropped().iloc[:40]
    for offset, missing_ms in zip(dropped["offset"], dropped["missing_grace_ms"], strict=True):
        figure = run.explain(offset=offset).figure()
        (dotted,) = [each.x for each in figure.data if each.mode == "lines" and each.line.dash == "dot"]
        assert abs(dotted[1] - dotted[0] - missing_ms) <= 1, offset
