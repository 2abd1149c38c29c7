"""The boards without a browser: what they show follows what is set, and what a browser sends cannot break them."""

import html
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.base.durations import show_duration
from sessionkit.errors import InvalidArgument, UnknownRecord
from sessionkit.widgets.board import Board
from sessionkit.widgets.controls import Length
from sessionkit.widgets.tune_board import LENGTHS, TuneBoard
from tests.kinds import group_in_ms, plan_of
from tests.unit.widgets.test_tuner import KINDS, SESSIONS, clicks, spent_in

VIEWS = ("plane", "lanes", "sent", "costs", "losses", "clock", "change", "code")


@pytest.fixture(scope="module")
def data() -> Any:
    return clicks()


def board_of(data: Any, windows: Any = SESSIONS) -> TuneBoard:
    return sk.tune(spent_in(windows), data)


def sends(board: Board, kind: str, **message: Any) -> None:
    """What a browser would send."""
    board._hear(None, {"kind": kind, "number": "1", **message}, [])


def said(board: Board, of: str = "said") -> str:
    return " ".join(board.words.get(of, []))


def picture(board: Board, name: str | None = None) -> dict[str, Any]:
    """The figure of a picture, the first one if none is named."""
    shown = board.figures[name or next(iter(board.figures))]
    found: dict[str, Any] = json.loads(shown["figure"])
    return found


def marks(board: Board, name: str) -> int:
    """How many marks of the traces whose name starts so the picture holds."""
    found = [trace for trace in picture(board)["data"] if str(trace.get("name", "")).startswith(name)]
    return sum(len(trace["x"]) for trace in found)


def count(board: Board, name: str) -> dict[str, Any]:
    (found,) = [each for each in board.counts if each["name"] == name]
    return dict(found)


class TestTune:
    @pytest.mark.parametrize(
        "kind", [kind if kind == "session" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
    )
    def test_every_view_is_drawn(self, data: Any, kind: str) -> None:
        board = board_of(data, KINDS[kind])
        for view in VIEWS:
            board._view.value = view
            assert said(board, "refused") == ""
            assert board.figures or board.table["titles"] or board.code or said(board)
            assert board.figure().layout
        assert set(board.sliders) == set(board._tuner.settings)

    def test_a_slider_moves_the_pictures(self, data: Any) -> None:
        board = board_of(data)
        for view in ("plane", "lanes"):
            board._view.value = view
            before = board.state["revision"], board.figures[view]["figure"]
            board.sliders["grace"].place += 3
            assert board.state["revision"] == before[0] + 1
            assert board.figures[view]["figure"] != before[1]

    def test_marks_are_those_of_a_fresh_run(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        board._span.value = "all"
        for grace in ("0s", "90s", "10m"):
            board.set(grace=grace)
            run = spent_in(SESSIONS).with_windows(grace=grace).run(data)
            assert marks(board, "dropped") == run.metrics()["dropped-late"]
            assert marks(board, "bridge") == run.metrics()["windows-merged"]

    def test_the_run_of_now_is_written_as_a_page(self, data: Any, tmp_path: Path) -> None:
        board = board_of(data)
        board.set(grace="45s")
        place = board.write_html(tmp_path / "page.html", hide_keys=True)
        text = place.read_text(encoding="utf-8")
        assert 'grace="45s"' in html.unescape(text) and '"grace":45000' in text
        assert "the keys are only numbered" in text

    def test_set_moves_all_or_nothing(self, data: Any) -> None:
        board = board_of(data, KINDS["hopping"])
        before = board.plan
        with pytest.raises(InvalidArgument):
            board.set(size="1m", grace="5m")
        assert board.plan == before
        assert board.sliders["grace"].value_ms == before.windows.grace_ms
        board.set(size="2m", advance="1m")
        assert board.plan.windows == sk.TimeWindows(size="2m", advance="1m", grace="5m")

    def test_what_is_sent_of_a_key_in_several_partitions_is_that_of_most_of_its_records(self, data: Any) -> None:
        rows = [{"user": "a", "at": at, "partition": int(at == 50_000)} for at in (0, 10_000, 50_000)]
        plan = sk.group_by_key("user", timestamp="at", unit="ms", partition="partition")
        board = sk.tune(plan.windowed_by(sk.SessionWindows(inactivity_gap="1m", grace="0s")).count(), rows)
        board._key.value, board._view.value = "a", "sent"
        assert board.words["said"] == board.run.emissions("a", partition=0).words()
        assert len(board.figure().data) > 0

    def test_what_windows_cannot_be_is_said(self, data: Any) -> None:
        board = board_of(data, KINDS["hopping"])
        before = board.plan
        sends(board, "set", name="advance", value="1h")
        assert "advance" in said(board, "refused")
        assert board.plan == before
        sends(board, "set", name="advance", value="2m")
        assert said(board, "refused") == ""

    def test_typed_lengths(self, data: Any) -> None:
        board = board_of(data)
        slider = board.sliders["grace"]
        sends(board, "set", name="grace", value="1m 7s")
        assert board.plan.windows.grace_ms == 67_000
        assert slider.words[slider.place] == "1 min 7 s"
        slider.place += 1
        assert board.plan.windows.grace_ms > 67_000
        sends(board, "set", name="grace", value="1m 7s")  # the same text again
        assert board.plan.windows.grace_ms == 67_000
        sends(board, "set", name="grace", value="soon")
        (shown,) = [spec for spec in board.controls if spec["name"] == "grace"]
        assert "a number with a unit" in shown["refused"]
        assert board.plan.windows.grace_ms == 67_000

    def test_a_snapshot_is_compared(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "change"
        assert "snapshot first" in said(board)
        board._keep.take(None)
        assert board.snapshot is not None
        board.set(grace="10m")
        assert "compared with the snapshot" in count(board, "dropped")["words"]
        expected = board.snapshot.compare(board.run).words()
        assert board.words["said"] == expected

    def test_a_cell_of_the_grid_sets_both(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "costs"
        values = board._costs._values
        gap, grace = values["inactivity_gap"][0], values["grace"][-1]
        shown = [show_duration(ms) for ms in (gap, grace)]
        sends(board, "click", picture="grid", x=shown[0], y=shown[1], name="")
        assert (board.plan.windows.inactivity_gap_ms, board.plan.windows.grace_ms) == (gap, grace)

    def test_keys_go_from_drop_to_drop(self, data: Any) -> None:
        board = board_of(data)
        scene = board._plane.scene
        assert scene is not None
        drops, chosen = scene.drops.tolist(), list[Any]()
        for key in (*["drop after"] * len(drops), "up", "drop before"):
            sends(board, "key", picture="plane", key=key)
            chosen.append(board._chosen.record)
        assert len(drops) > 2
        assert (chosen[:-2], chosen[-1]) == (drops, drops[-1])

    def test_who_moved_the_clock_stands_beside_the_chain_of_the_chosen_record(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "clock"
        assert [*board.figures] == ["clock"]
        assert said(board) == " ".join(board.run.clock().words())
        board.offset = int(board.run.dropped()["offset"].iloc[0])
        assert [*board.figures] == ["clock", "why"]
        assert f"Why record {board.offset}" in picture(board, "why")["layout"]["title"]["text"]

    def test_the_grid_is_walked_by_keys(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "costs"
        before, values = board._tuner.settings, board._costs._values
        for key, name, step in (("right", "inactivity_gap", 1), ("up", "grace", 1), ("left", "inactivity_gap", -1)):
            now = board._tuner.settings
            expected = board._costs._values[name][board._costs._values[name].index(now[name]) + step]
            sends(board, "key", picture="grid", key=key)
            assert board._tuner.settings == {**now, name: expected}
        sends(board, "key", picture="grid", key="down")
        assert board._tuner.settings == before
        assert board._costs._values == values

    def test_every_picture_follows_the_page(self, data: Any) -> None:
        board = board_of(data)
        board._keep.take(None)
        for theme, ground in (("light", "#ffffff"), ("dark", "#12161c"), ("light", "#ffffff")):
            sends(board, "look", theme=theme, width=900, height=400)
            for view in ("plane", "lanes", "sent", "costs", "change"):
                board._view.value = view
                assert {picture(board, name)["layout"]["paper_bgcolor"] for name in board.figures} == {ground}
        for view in ("plane", "lanes"):
            board._view.value = view
            layout = picture(board)["layout"]
            assert (layout["width"], layout["height"] <= 400, "title" in layout) == (900, True, False)
            assert board.figure().layout.title.text

    def test_what_is_selected_is_so_in_every_view(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        scene = board._lanes.scene
        last = len(scene.board.lanes) - 1
        sends(board, "click", picture="lanes", x=0.0, y=0, name="")  # the lane at the bottom
        key = board._lanes.keys(scene)[last]
        assert board._key.value == key
        assert board.state["selection"]["key"] == key
        assert any("▸" in name for name in picture(board)["layout"]["yaxis"]["ticktext"])
        sends(board, "click", picture="lanes", x="name", y=last, name="")
        assert board._view.value == "plane"
        assert repr(board._lanes.keys(scene)[0])[1:-1] in board.figures["plane"]["label"]
        board._view.value = "losses"
        sends(board, "row", row=1)
        assert (board._view.value, board._key.value) == ("plane", board.state["selection"]["key"])
        board._key.value = key
        board._view.value = "lanes"
        names = picture(board)["layout"]["yaxis"]["ticktext"]
        assert [key in name for name in names if "▸" in name] == [True]

    def test_keys_go_from_lane_to_lane_and_from_record_to_record(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        order = board._lanes.keys(board._lanes.scene)
        board._key.value = order[0]
        for expected in (*order[1:], order[0]):
            sends(board, "key", picture="lanes", key="down")
            assert board._key.value == expected
        sends(board, "key", picture="lanes", key="enter")
        assert [*board.figures] == ["plane"]
        seen = []
        for _ in range(3):
            sends(board, "key", picture="plane", key="up")
            seen.append(board.state["selection"]["record"])
            assert f"Record {seen[-1]} " in said(board)
            assert marks(board, "chosen") == 1
        assert seen == sorted(set(seen))
        sends(board, "key", picture="plane", key="down")
        assert board.state["selection"]["record"] == seen[1]

    def test_what_is_said_of_a_record_follows_the_sliders(self, data: Any) -> None:
        board = board_of(data)
        board.set(grace="0s")
        row = int(board._plane.scene.drops[0])
        at = board._plane.scene.axis.at([int(board.run.trace.batch.timestamp_ms[row])])[0]
        sends(board, "click", picture="plane", x=at, y=board._plane.scene.y_of(row), name="dropped")
        assert "was dropped" in said(board)
        board.set(grace="5h")
        assert f"Record {row} " in said(board)
        assert "was dropped" not in said(board)

    def test_keys_are_found_by_letters(self, data: Any) -> None:
        board = board_of(data)
        board._letters.value = "DE"
        assert [key for _, key in board._key.options] == ["dee"]
        assert "dee" in board.figures["plane"]["label"]
        board._letters.value = "nobody"
        assert board._key.options == []
        board._letters.value = ""
        assert len(board._key.options) == 4

    def test_code_and_exports(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "code"
        assert board.code["text"].endswith(repr(board.plan))
        for target, write in (("Kafka Streams (Java)", sk.Plan.to_java), ("Spark", sk.Plan.to_spark)):
            board._target.value = target
            assert board.code["text"] == write(board.plan).code

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
            sk.tune(group_in_ms("user").windowed_by(SESSIONS), data)


class TestExplaining:
    def test_a_click_on_a_mark_says_why(self, data: Any) -> None:
        board = board_of(data)
        scene = board._plane.scene
        row = int(scene.drops[0])
        at = scene.axis.at([int(board.run.trace.batch.timestamp_ms[row])])[0]
        sends(board, "click", picture="plane", x=at, y=float(scene.y_of(row)), name="dropped")
        assert board.words["said"][0] == str(board.run.explain(offset=row))
        assert "was dropped" in said(board)

    def test_a_click_on_a_closure_tells_the_life_of_the_session(self, data: Any) -> None:
        board = board_of(data)
        scene = board._plane.scene
        cap = scene.caps[0]
        at = scene.axis.at([(cap.start_ms + cap.end_ms) // 2])[0]
        sends(board, "click", picture="plane", x=at, y=scene.y_of(cap.at), name="closure")
        assert said(board).startswith("Session of key")

    def test_a_click_on_a_lane(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        scene = board._lanes.scene
        window = scene.board.windows[board.run.trace.closed_by[scene.board.windows] >= 0][0]
        at = scene.axis.at([int(board.run.trace.window_columns.start_ms[window])])[0]
        sends(board, "click", picture="lanes", x=at, y=scene.board.heights([window])[0], name="")
        assert said(board).startswith("Session of key")

    def test_a_click_on_a_drop_in_the_lanes(self, data: Any) -> None:
        board = board_of(data)
        board.set(grace="0s")
        board._view.value = "lanes"
        scene = board._lanes.scene
        row = int(scene.drops[0])
        at = scene.axis.at([int(board.run.trace.batch.timestamp_ms[row])])[0]
        y = float(scene.height_of(scene.drops[:1])[0]) + scene.above
        sends(board, "click", picture="lanes", x=at, y=y, name="dropped (+ the grace it lacked)")
        assert board.words["said"][0] == str(board.run.explain(offset=row))

    def test_a_zoom_shows_the_part(self, data: Any) -> None:
        board = board_of(data)
        board._view.value = "lanes"
        board._span.value = "all"
        low, high = (board._lanes.options[name] for name in ("start", "end"))
        shown = board._lanes.scene.axis.at([low + 60_000, high - 60_000])
        sends(board, "zoom", picture="lanes", x=shown, y=[0, 1])
        now = board._lanes.options
        assert (now["start"], now["end"]) == (low + 60_000, high - 60_000)

    @pytest.mark.thorough
    def test_what_a_browser_sends_breaks_nothing(self, data: Any) -> None:
        board = board_of(data)
        odd: tuple[Any, ...] = (
            None, "click", 7, [], {}, 1e300, -1e300, "not a date", "2013-07-01", "closure", True, float("nan"),
        )  # fmt: skip
        for message in odd:
            board._hear(None, message, [])
        for view, name in (("plane", "plane"), ("lanes", "lanes"), ("costs", "grid"), ("losses", "")):
            board._view.value = view
            for x, y in itertools.pairwise([*odd, *odd[::2], *odd[::3]]):
                sends(board, "click", picture=name, x=x, y=y, name=x)
            for each in odd:
                sends(board, "click", picture=each, x=1, y=1)
                sends(board, "key", picture=name, key=each)
                sends(board, "zoom", picture=name, x=[each, each], y=[0, 1])
                sends(board, "row", row=each)
                sends(board, "look", theme=each, width=each, height=each)
                sends(board, each)
                for control in board._controls:
                    if control != "keep":
                        sends(board, "set", name=control, value=each if not isinstance(each, bool | int) else None)
        assert board.plan == spent_in(SESSIONS)

    def test_what_was_sent_is_answered(self, data: Any) -> None:
        board = board_of(data)
        board._hear(None, {"kind": "set", "name": "grace", "value": 0, "number": "seven"}, [])
        assert board.state["answered"] == "seven"
        assert board.state["values"]["grace"] == 0


class TestPlay:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_curtain_lifts_record_by_record(self, data: Any, kind: str) -> None:
        run = spent_in(KINDS[kind]).run(data)
        player = sk.play(run, "ana")
        player.arrivals.place = 0
        drawn = player.figures["plane"]["figure"]
        low = json.loads(player.overlays["plane"])["shapes"][0]["y0"]
        player.arrivals.place = 5
        assert json.loads(player.overlays["plane"])["shapes"][0]["y0"] == low + 5
        assert player.figures["plane"]["figure"] == drawn
        row = int(player._scene.rows[5])
        assert player.words["said"] == [str(run.explain(offset=row))]

    @pytest.mark.thorough
    def test_keys_and_clicks_step_too(self, data: Any) -> None:
        player = sk.play(spent_in(SESSIONS).run(data), "ana")
        sends(player, "click", picture="plane", x=0, y=4.2, name="")
        assert player.arrivals.place == 4
        sends(player, "key", picture="plane", key="up")
        sends(player, "key", picture="plane", key="down")
        sends(player, "key", picture="plane", key="down")
        assert player.arrivals.place == 3
        assert player.figure().frames

    def test_counts_so_far_end_with_all(self, data: Any) -> None:
        run = spent_in(SESSIONS).run(data)
        player = sk.play(run, "ana", from_offset=0, until_offset=len(data))
        player.arrivals.place = len(player.arrivals.words) - 1
        lost = run.dropped(missing_grace=False)
        assert count(player, "dropped")["shown"] == f"{(lost['key'] == 'ana').sum():,}"

    def test_unknown_key(self, data: Any) -> None:
        with pytest.raises(UnknownRecord):
            sk.play(spent_in(SESSIONS).run(data), "nobody")


class TestBrowse:
    def test_what_a_store_holds(self, data: Any) -> None:
        store = sk.open_store("memory", "clicks-store", retention="1m")
        spent_in(SESSIONS).run(data, store=store)
        browser = sk.browse(store)
        held = store.to_pandas()
        assert f"{len(held)} session" in said(browser)
        browser._key.value = "an"
        assert len(browser.table["rows"]) == (held["key"] == "ana").sum()
        browser._to.value = "0"
        assert "No session" in said(browser)
        browser._to.value = "tomorrow"
        assert "to must be a time" in said(browser, "refused")
        browser._to.value = ""
        browser._key.value = ""
        assert said(browser, "refused") == ""
        assert len(browser.table["rows"]) == len(held)
        sends(browser, "row", row=0)
        assert {row[0] for row in browser.table["rows"]} == {str(held["key"].iloc[0])}
        assert browser.figure().data

    def test_it_says_what_has_gone_and_what_the_results_are_called(self, data: Any) -> None:
        for named, titles in (
            ({"spent": sk.sum("price")}, ["spent"]),
            ({"n": sk.count(), "x": sk.max("price")}, ["n", "x"]),
        ):
            store = sk.open_store("memory", "clicks-store")
            plan_of(SESSIONS, named=named, key="user").run(data, store=store)
            browser = sk.browse(store.read_only())
            assert f"Records up to offset {len(data) - 1} of partition 0 went through it." in said(browser)
            assert "A session that is closed is gone from it at once" in said(browser)
            assert browser.table["titles"][-len(titles) :] == titles
        empty = sk.browse(sk.open_store("memory", "empty-store"))
        assert "No session" in said(empty)

    def test_windows_of_one_length_and_closed_stores(self, data: Any) -> None:
        store = sk.open_store("memory", "counts-store", of="windows")
        spent_in(KINDS["tumbling"]).run(data, store=store)
        browser = sk.browse(store.read_only())
        assert "window" in said(browser)
        store.close()
        browser._key.value = "ana"
        assert "closed" in said(browser, "refused")

    def test_other_things_are_refused(self) -> None:
        with pytest.raises(InvalidArgument, match="browse takes a store"):
            sk.browse("clicks-store")


class TestParts:
    @pytest.mark.parametrize("kind", ["tune", "play", "browse"])
    def test_where_no_script_runs_it_shows_a_picture_if_plotly_makes_some(
        self, data: Any, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import plotly.io as pio
        from plotly.io.base_renderers import PngRenderer

        plan = spent_in(SESSIONS)
        store = sk.open_store("memory", "pictured")
        run = plan.run(data, store=store)
        board = {"tune": lambda: sk.tune(plan, data), "play": lambda: sk.play(run), "browse": lambda: sk.browse(store)}
        shown: Board = board[kind]()
        drawn: list[Any] = []
        monkeypatch.setattr(
            PngRenderer, "to_mimebundle", lambda _, figure: drawn.append(figure) or {"image/png": "a picture"}
        )
        for renderer, pictures in (("plotly_mimetype", 0), ("plotly_mimetype+png", 1)):
            monkeypatch.setattr(pio.renderers, "default", renderer)
            bundle = shown._repr_mimebundle_()
            data_of = bundle[0] if isinstance(bundle, tuple) else bundle
            assert ("image/png" in data_of) == bool(pictures)
            assert len(drawn) == pictures
        assert not drawn[0]["layout"].get("sliders")  # nothing can be moved in it

    def test_a_slider_keeps_its_place(self) -> None:
        slider = Length("inactivity_gap", [1_000, 60_000], 5_000)
        assert (slider.label, slider.words, slider.place) == ("inactivity gap", ["1 s", "5 s", "1 min"], 1)
        slider.place = 99  # from a browser
        assert slider.value_ms == 5_000

    def test_plotly_is_sent_when_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sent: list[Any] = []
        board = Board("a board", [])
        monkeypatch.setattr(board, "send", lambda content, buffers: sent.append((content, buffers)))
        board._hear(None, {"kind": "plotly"}, [])
        ((content, (script,)),) = sent
        assert content == {"kind": "plotly"}
        assert script[:2] == b"\x1f\x8b"
        assert len(script) < 2_000_000

    def test_the_whole_picture_is_sent_when_it_is_to_be_saved(self, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sent: list[Any] = []
        board = board_of(data)
        monkeypatch.setattr(board, "send", sent.append)
        sends(board, "whole", format="svg")
        assert sent[0]["format"] == "svg"
        assert json.loads(sent[0]["figure"])["layout"]["title"]["text"]

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


class TestTraits:
    """The settings of a board, observed, set and linked by other widgets: they were no traits."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_they_are_what_is_set(self, data: Any, kind: str) -> None:
        board = board_of(data, KINDS[kind])
        shown = {trait: getattr(board, trait) for trait in LENGTHS}
        settings = board._tuner.settings
        assert shown == {trait: settings.get(name) for trait, name in LENGTHS.items()}
        assert (board.key, board.offset) == (board._key.value, None)
        with pytest.raises(InvalidArgument):
            setattr(board, next(trait for trait, ms in shown.items() if ms is None), "1m")

    def test_they_are_set_and_observed(self, data: Any) -> None:
        board, seen = board_of(data), list[tuple[str, Any]]()
        board.observe(lambda change: seen.append((change.name, change.new)), [*LENGTHS, "key", "offset"])
        board.gap = "10m"
        sends(board, "set", name="grace", value="1h")
        board.key = "cy"
        board.offset = int(data.index[data.user == "bo"][3])
        assert seen == [
            *(("gap", 600_000), ("grace", 3_600_000)),
            *(("key", "cy"), ("key", "bo"), ("offset", board.offset)),
        ]
        assert board.run.summary() == board.plan.run(data).summary()
        assert said(board).startswith(f"Record {board.offset} (key bo)")
        board.offset = None
        assert (board.key, board._chosen.record) == ("bo", None)

    @pytest.mark.parametrize(
        ("trait", "value", "error"),
        [
            *(("gap", "soon", InvalidArgument), ("gap", -1, InvalidArgument), ("gap", None, InvalidArgument)),
            *(("key", "zoe", UnknownRecord), ("offset", 10**6, UnknownRecord)),
        ],
    )
    def test_what_cannot_be_set_changes_nothing(self, data: Any, trait: str, value: Any, error: Any) -> None:
        board = board_of(data)
        before = (board.plan, board.key, getattr(board, trait))
        with pytest.raises(error):
            setattr(board, trait, value)
        assert (board.plan, board.key, getattr(board, trait)) == before

    def test_a_slider_is_linked_with_them(self, data: Any) -> None:
        ipywidgets = pytest.importorskip("ipywidgets")
        board, slider = board_of(data), ipywidgets.IntSlider(min=0, max=7_200_000, value=60_000)
        ipywidgets.link((slider, "value"), (board, "gap"))
        assert board.gap == 60_000
        board.set(inactivity_gap="20m")
        assert slider.value == 1_200_000
        out = ipywidgets.interactive_output(board.plan.with_windows, {"grace_ms": slider})
        assert ipywidgets.HBox([board, out]).children[0] is board

    def test_keys_of_several_columns_reach_the_browser_as_text(self) -> None:
        rows = {"user": ["ana", "ana"], "shop": [1, 2], "at": [0, 5]}
        plan = group_in_ms("user", "shop", sep="@").windowed_by(SESSIONS).count()
        board = sk.tune(plan, rows)
        assert json.loads(json.dumps(board.get_state(["key"])))["key"] == str(board.key)


def test_a_slider_is_moved_by_the_short_name_of_the_gap_too(data: Any) -> None:
    board = board_of(data)
    board.set(gap="7m")
    assert board.plan.windows.inactivity_gap_ms == 420_000 == board.gap
