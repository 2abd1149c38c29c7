"""The strip below the pictures of a board: where all records lie, and a frame around what is shown."""

import json
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.widgets.tune_board import TuneBoard
from tests.kinds import EACH_KIND
from tests.unit.widgets.test_tuner import SESSIONS, clicks, spent_in
from tests.unit.widgets.test_widgets import picture, sends

MANY = 2_000


def board_of(count: int, windows: Any = SESSIONS, view: str = "lanes") -> TuneBoard:
    board = sk.tune(spent_in(windows), clicks(count))
    board._view.value = view
    return board


def strip(board: TuneBoard) -> dict[str, Any]:
    return picture(board, "strip")


def frame(board: TuneBoard) -> tuple[float, float]:
    (shape,) = json.loads(board.overlays["strip"])["shapes"]
    return shape["x0"], shape["x1"]


@pytest.mark.parametrize("kind", EACH_KIND)
def test_bars_hold_every_record_and_every_drop(kind: str) -> None:
    board = board_of(MANY, EACH_KIND[kind])
    records, dropped = (sum(bars["customdata"]) for bars in strip(board)["data"])
    assert records == MANY
    assert dropped == int(board.run.trace.late_for_some.sum())


def test_lanes_show_what_the_frame_is_moved_around() -> None:
    board = board_of(MANY)
    low, high = strip(board)["layout"]["xaxis"]["range"]
    asked = low + (high - low) / 4, low + (high - low) / 2
    sends(board, "zoom", picture="strip", x=list(asked), y=[])
    assert frame(board) == pytest.approx(asked, abs=1)
    shown = picture(board, "lanes")["layout"]["xaxis"]["range"]
    assert shown[1] - shown[0] < 0.5 * (high - low)


def test_the_plane_shows_the_records_that_the_frame_is_moved_around() -> None:
    board = board_of(MANY, view="plane")
    low, _ = strip(board)["layout"]["xaxis"]["range"]
    sends(board, "zoom", picture="strip", x=[low, low + 200], y=[])
    first, last = frame(board)
    assert low <= first < last <= low + 200


def test_of_a_wide_frame_the_plane_shows_as_many_as_can_be_told_apart() -> None:
    board = board_of(4 * MANY, view="plane")
    low, high = strip(board)["layout"]["xaxis"]["range"]
    sends(board, "zoom", picture="strip", x=[low, high], y=[])
    assert frame(board)[1] < high
    assert len(board._plane.scene.rows) <= 400  # type: ignore[union-attr]


@pytest.mark.parametrize("x", [[1], ["a", "b"], [None, 3], [5, 5], [1e30, 2e30], ["2020-01-01", []]])
def test_a_frame_that_no_browser_sends_changes_nothing(x: list[Any]) -> None:
    board = board_of(MANY)
    before = json.dumps(board.figures)
    sends(board, "zoom", picture="strip", x=x, y=[])
    assert json.dumps(board.figures) == before


def test_few_records_have_no_strip() -> None:
    for view in ("lanes", "plane"):
        assert [*board_of(100, view=view).figures] == [view]
