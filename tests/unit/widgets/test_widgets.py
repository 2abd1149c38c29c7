"""The widgets without a browser: what they show follows what is set, and what a browser sends cannot break them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_html
from sessionkit.errors import InvalidArgument, UnknownRecord
from sessionkit.widgets.parts import DurationSlider, Picture, Words
from sessionkit.widgets.tune_board import TuneBoard
from tests.unit.widgets.test_tuner import KINDS, SESSIONS, clicks, spent_in

VIEWS = ("plane", "lanes", "sent", "costs", "losses", "change", "code")


@pytest.fixture(scope="module")
def data() -> Any:
    return clicks()


def board_of(data: Any, windows: Any = SESSIONS) -> TuneBoard:
    return sk.tune(spent_in(windows), data)


def text_of(words: Words) -> str:
    return re.sub("<[^>]*>", " ", words.value)


def marks(picture: Picture, name: str) -> int:
    """How many marks of the traces whose name starts so a picture holds."""
    figure = json.loads(picture.figure)
    found = [trace for trace in figure["data"] if str(trace.get("name", "")).startswith(name)]
    return sum(len(trace["x"]) for trace in found)


def _all_of(widget: Any) -> list[Any]:
    return [widget, *(each for child in getattr(widget, "children", ()) for each in _all_of(child))]


class TestTune:
    @pytest.mark.parametrize(
        "kind", [kind if kind == "session" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
    )
    def test_every_view_is_drawn(self, data: Any, kind: str) -> None:
        board = board_of(data, KINDS[kind])
        for view in VIEWS:
            board._view.value = view
            assert board._refused.value == ""
            assert board._shown.children
        assert set(board.sliders) == set(board._tuner.settings)

    def test_a_slider_moves_the_pictures(self, data: Any) -> None:
        board = board_of(data)
        for view, picture in (("plane", board._plane.picture), ("lanes", board._lanes.picture)):
            board._view.value = view
            before = picture.revision, picture.figure
            board.sliders["grace"].place += 3
            assert picture.revision == before[0] + 1
            assert picture.figure != before[1]

    def test_marks_are_those_of_a_fresh_run(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        board._lanes.span.value = "all"
        for grace in ("0s", "90s", "10m"):
            board.set(grace=grace)
            run = spent_in(SESSIONS).with_windows(grace=grace).run(data)
            assert marks(board._lanes.picture, "dropped") == run.metrics()["dropped-late"]
            assert marks(board._lanes.picture, "bridge") == run.metrics()["windows-merged"]

    def test_set_moves_all_or_nothing(self, data: Any) -> None:
        board = board_of(data, KINDS["hopping"])
        before = board.plan
        with pytest.raises(InvalidArgument):
            board.set(size="1m", grace="5m")
        assert board.plan == before
        assert board.sliders["grace"].value_ms == before.windows.grace_ms
        board.set(size="2m", advance="1m")
        assert board.plan.windows == sk.TimeWindows(size="2m", advance="1m", grace="5m")

    def test_what_windows_cannot_be_is_said(self, data: Any) -> None:
        board = board_of(data, KINDS["hopping"])
        before = board.plan
        board.sliders["advance"].typed = "1h"
        assert "advance" in text_of(board._refused)
        assert board.plan == before
        board.sliders["advance"].typed = "2m"
        assert board._refused.value == ""

    def test_typed_lengths(self, data: Any) -> None:
        board = board_of(data)
        slider = board.sliders["grace"]
        slider.typed = "1m 7s"
        assert board.plan.windows.grace_ms == 67_000
        assert slider.words[slider.place] == "1 min 7 s"
        slider.place += 1
        slider.typed = "1m 7s"  # the same text again
        assert board.plan.windows.grace_ms == 67_000
        slider.typed = "soon"
        assert "a number with a unit" in slider.refused
        assert board.plan.windows.grace_ms == 67_000

    def test_a_snapshot_is_compared(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "change"
        assert "snapshot first" in text_of(board._change._words)
        board._keep.click()
        assert board.snapshot is not None
        board.set(grace="10m")
        assert "compared with the snapshot" in board._counts.value
        expected = board.snapshot.compare(board.run).words()
        assert all(sentence in text_of(board._change._words) for sentence in expected)

    def test_a_cell_of_the_grid_sets_both(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "costs"
        values = board._costs._sweep.values
        gap, grace = values["inactivity_gap"][0], values["grace"][-1]
        shown = [show_duration(ms) for ms in (gap, grace)]
        board._costs.grid._answer(None, {"kind": "click", "x": shown[0], "y": shown[1], "name": ""}, [])
        assert (board.plan.windows.inactivity_gap_ms, board.plan.windows.grace_ms) == (gap, grace)

    def test_every_picture_follows_the_theme(self, data: Any) -> None:
        board = board_of(data)
        board._keep.click()
        for theme, ground in (("light", "#ffffff"), ("dark", "#12161c"), ("light", "#ffffff")):
            board._plane.picture.theme = theme
            for view in ("plane", "lanes", "sent", "costs", "change"):
                board._view.value = view
                pictures = [each for each in _all_of(board._shown) if isinstance(each, Picture)]
                assert {json.loads(each.figure)["layout"]["paper_bgcolor"] for each in pictures} == {ground}

    def test_keys_are_found_by_letters(self, data: Any) -> None:
        board = board_of(data)
        board._letters.value = "DE"
        assert [key for _, key in board._key.options] == ["dee"]
        assert "dee" in board._plane.picture.label
        board._letters.value = "nobody"
        assert board._key.options == ()
        board._letters.value = ""
        assert len(board._key.options) == 4

    def test_code_and_exports(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "code"
        assert board._code._code.text.endswith(repr(board.plan))
        for target, write in (("Kafka Streams (Java)", sk.Plan.to_java), ("Spark", sk.Plan.to_spark)):
            board._code._target.value = target
            assert board._code._code.text == write(board.plan).code

    def test_no_records(self) -> None:
        board = board_of(clicks(0))
        for view in VIEWS:
            board._view.value = view

    def test_errors(self, data: Any) -> None:
        with pytest.raises(InvalidArgument, match="no such length"):
            sk.tune(spent_in(SESSIONS), data, advance=("1m", "2m"))
        with pytest.raises(InvalidArgument, match="ends before it starts"):
            sk.tune(spent_in(SESSIONS), data, grace=("2m", "1m"))
        with pytest.raises(InvalidArgument, match="no aggregation"):
            sk.tune(sk.group_by_key("user", timestamp="at", unit="ms", times="ms").windowed_by(SESSIONS), data)


class TestExplaining:
    def test_a_click_on_a_mark_says_why(self, data: Any) -> None:
        board = board_of(data)
        view, scene = board._plane, board._plane._scene
        row = int(scene.drops[0])
        place = float(scene.y_of(row))
        at = scene.axis.at([int(board.run.trace.batch.timestamp_ms[row])])[0]
        view.picture._answer(None, {"kind": "click", "x": at, "y": place, "name": "dropped"}, [])
        assert f"Record {row} " in text_of(view.words)
        assert "was dropped" in text_of(view.words)

    def test_a_click_on_a_closure_tells_the_life_of_the_session(self, data: Any) -> None:
        board = board_of(data)
        scene = board._plane._scene
        cap = scene.caps[0]
        at = scene.axis.at([(cap.start_ms + cap.end_ms) // 2])[0]
        board._plane._explain(at, scene.y_of(cap.at), "closure")
        assert text_of(board._plane.words).strip().startswith("Session of key")

    def test_a_click_on_a_lane(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        scene = board._lanes._scene
        window = int(scene.closed_windows[0])
        at = scene.axis.at([int(board.run.trace.window_columns.start_ms[window])])[0]
        board._lanes._explain(at, scene.height_of_windows(scene.closed_windows[:1])[0], "")
        assert text_of(board._lanes.words).strip().startswith("Session of key")

    def test_a_zoom_shows_the_part(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        view = board._lanes
        view.span.value = "all"
        low, high = (view._kept[name] for name in ("first_ms", "last_ms"))
        view.picture.zoomed = {"x": view._scene.axis.at([low + 60_000, high - 60_000]), "y": [0, 1]}
        assert (view._kept["first_ms"], view._kept["last_ms"]) == (low + 60_000, high - 60_000)

    def test_what_a_browser_sends_breaks_nothing(self, data: Any) -> None:
        board = board_of(data)
        messages = (
            None,
            "click",
            {"kind": "click"},
            {"kind": "click", "x": None, "y": 1, "name": "a"},
            {"kind": "click", "x": 1e300, "y": -1e300, "name": 5},
            {"kind": "click", "x": "not a date", "y": 0, "name": "closure"},
            {"kind": "click", "x": "2013-07-01", "y": "cell", "name": "closure"},
            {"kind": "other"},
        )
        for view, picture in (
            ("plane", board._plane.picture),
            ("lanes", board._lanes.picture),
            ("costs", board._costs.grid),
        ):
            board._view.value = view
            for message in messages:
                picture._answer(None, message, [])
        board._view.value = "lanes"
        for zoomed in ({}, {"x": [], "y": []}, {"x": ["a", "b"], "y": [0, 1]}, {"x": [None, 5], "y": [0, 1]}):
            board._lanes.picture.zoomed = zoomed
        assert board.plan == spent_in(SESSIONS)


class TestPlay:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_curtain_lifts_record_by_record(self, data: Any, kind: str) -> None:
        run = spent_in(KINDS[kind]).run(data)
        player = sk.play(run, "ana")
        player.arrivals.place = 0
        low = json.loads(player._picture.patch)["shapes"][0]["y0"]
        player.arrivals.place = 5
        assert json.loads(player._picture.patch)["shapes"][0]["y0"] == low + 5
        row = int(player._scene.rows[5])
        assert text_of(player._words).split() == escape_html(run.explain(offset=row)).split()

    def test_counts_so_far_end_with_all(self, data: Any) -> None:
        run = spent_in(SESSIONS).run(data)
        player = sk.play(run, "ana", first=0, last=len(data))
        player.arrivals.place = len(player.arrivals.words) - 1
        lost = run.dropped(missing_grace=False)
        assert f"<b>{(lost['key'] == 'ana').sum():,}</b><span>dropped" in player._counts.value

    def test_unknown_key(self, data: Any) -> None:
        with pytest.raises(UnknownRecord):
            sk.play(spent_in(SESSIONS).run(data), "nobody")


class TestBrowse:
    def test_what_a_store_holds(self, data: Any) -> None:
        store = sk.open_store("memory", "clicks-store", retention="1d")
        spent_in(SESSIONS).run(data, store=store)
        browser = sk.browse(store)
        held = store.to_pandas()
        assert f"{len(held)} session" in text_of(browser._said)
        browser._key.value = "an"
        assert browser._table.value.count("<tr>") == 1 + (held["key"] == "ana").sum()
        browser._to.value = "0"
        assert "No session" in text_of(browser._said)
        browser._to.value = "tomorrow"
        assert "to must be a time" in text_of(browser._said)
        browser._to.value = ""
        browser._key.value = ""
        spent_in(SESSIONS).run(clicks(500).iloc[400:], store=sk.open_store("memory", "other-store"))
        assert "<td>" in browser._table.value

    def test_windows_of_one_length_and_closed_stores(self, data: Any) -> None:
        store = sk.open_store("memory", "counts-store", of="windows")
        spent_in(KINDS["tumbling"]).run(data, store=store)
        browser = sk.browse(store.read_only())
        assert "window" in text_of(browser._said)
        store.close()
        browser._key.value = "ana"
        assert "closed" in text_of(browser._facts) + text_of(browser._said)

    def test_other_things_are_refused(self) -> None:
        with pytest.raises(InvalidArgument, match="browse takes a store"):
            sk.browse("clicks-store")


class TestParts:
    def test_a_slider_keeps_its_place(self) -> None:
        slider = DurationSlider("inactivity_gap", [1_000, 60_000], 5_000)
        assert (slider.name, slider.words, slider.place) == ("inactivity gap", ["1 s", "5 s", "1 min"], 1)
        slider.place = 99  # from a browser
        assert slider.value_ms == 5_000

    def test_plotly_is_sent_when_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sent: list[Any] = []
        picture = Picture()
        monkeypatch.setattr(picture, "send", lambda content, buffers: sent.append((content, buffers)))
        picture._answer(None, {"kind": "plotly"}, [])
        ((content, (script,)),) = sent
        assert content == {"kind": "plotly"}
        assert script[:2] == b"\x1f\x8b"
        assert len(script) < 2_000_000

    def test_without_the_packages_it_says_what_to_install(self) -> None:
        code = (
            "import sys\n"
            "sys.modules['anywidget'] = None\n"
            "import sessionkit as sk\n"
            "try:\n    sk.browse(None)\n"
            "except ImportError as error:\n    print(error)\n"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "pip install 'sessionkit-streams[notebook]'" in found.stdout
