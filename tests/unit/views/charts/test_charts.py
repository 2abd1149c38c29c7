"""Charts: everything drawn is counted against the trace; nothing overlaps; nothing in the data runs."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.errors import InvalidArgument, UnknownRecord
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.drawing.measured_text import flow, text_size, text_width
from sessionkit.views.drawing.palettes import PALETTES
from sessionkit.views.lanes.lanes import draw_lanes, lane_scene
from sessionkit.views.plane.plane import draw_plane, plane_scene
from sessionkit.views.scenes.key_rows import MOST_ROWS
from sessionkit.views.scenes.session_scene import SessionHistory
from sessionkit.windows.missing_grace import missing_grace_ms
from tests.headings import heading
from tests.interpreted import fewer
from tests.kinds import flights_by_route
from tests.optional import Browser

# of one width, so that places can be worked out in pixels


def plane(*asked: Any, playback: bool = False, width: int | None = 1_120, **options: Any) -> go.Figure:
    return draw_plane(plane_scene(*asked, width=width, **options), playback=playback)


def lanes(*asked: Any, **options: Any) -> go.Figure:
    return draw_lanes(lane_scene(*asked, width=1_120, **options))


MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TOY = [
    ("ana", 2), ("bo", 4), ("ana", 7), ("ana", 11), ("bo", 13), ("ana", 24), ("ana", 17), ("bo", 27), ("ana", 30),
    ("cy", 36), ("ana", 45), ("cy", 47), ("ana", 52), ("ana", 27), ("bo", 58), ("ana", 41), ("ana", 57), ("cy", 66),
    ("bo", 42), ("ana", 63), ("cy", 79), ("ana", 82),
]  # fmt: skip
WINDOWS = sk.SessionWindows(inactivity_gap="10m", grace="5m")
HOSTILE = [
    "<img src=x onerror=alert(1)>", "%{x}", r"$\href{javascript:alert(1)}{x}$", '"><script>alert(1)</script>',
    "</script><b>", "line\nbreak\x00 end",
]  # fmt: skip


def run_of(rows: list[tuple[Any, ...]], windows: Any, **options: Any) -> sk.Run:
    """The run of rows of (key, minute) or (key, minute, partition)."""
    names = ["key", "minute", "partition"][: len(rows[0]) if rows else 2]
    data = pd.DataFrame(rows, columns=names).astype({"key": "string", "minute": "int64"})
    data["at"] = data["minute"] * MINUTE
    partition = "partition" if "partition" in names else None
    plan = sk.group_by_key("key", timestamp="at", unit="ms", partition=partition).windowed_by(windows).count()
    if getattr(windows, "trailing_only", False):
        plan = plan.emit("on_window_close")
    made: sk.Run = plan.run(data, **options)
    return made


def run(rows: list[tuple[Any, ...]], windows: sk.SessionWindows = WINDOWS, **options: Any) -> SessionTrace:
    trace: SessionTrace = run_of(rows, windows, **options).trace
    return trace


@pytest.fixture(scope="module")
def toy() -> SessionTrace:
    return run(TOY)


@pytest.fixture(scope="module")
def flights() -> sk.Run:
    plan = flights_by_route()
    windows = sk.SessionWindows(inactivity_gap="1h", grace="30m")
    return plan.windowed_by(windows).count().run(sk.load_sample("flights"))


def named(figure: go.Figure, start: str) -> Any:
    """The one trace whose name starts so."""
    (found,) = [each for each in figure.data if each.name.startswith(start)]
    return found


def pieces(drawn: Any, unit_ms: int = MINUTE) -> list[tuple[list[float], list[float]]]:
    """The lines or polygons of one trace, with x in ms."""
    found: list[tuple[list[float], list[float]]] = [([], [])]
    for x, y in zip(drawn.x, drawn.y, strict=True):
        if y is None:
            found.append(([], []))
        else:
            found[-1][0].append(round(x * unit_ms))
            found[-1][1].append(y)
    return [piece for piece in found if piece[0]]


def points(drawn: Any, unit_ms: int = MINUTE) -> list[tuple[int, float]]:
    return [(round(x * unit_ms), y) for x, y in zip(drawn.x, drawn.y, strict=True)]


def stair_at(drawn: Any, row: int, unit_ms: int = MINUTE) -> float:
    """Where a stair stands once the record of this row has arrived."""
    at_row = [round(x * unit_ms) for x, y in zip(drawn.x, drawn.y, strict=True) if y <= row]
    return at_row[-1]


def boxes(figure: go.Figure) -> list[tuple[float, float, float, float]]:
    """The labels of a plane as boxes in pixels of the plot."""
    layout = figure.layout
    wide = layout.width - layout.margin.l - layout.margin.r
    high = layout.height - layout.margin.t - layout.margin.b
    (left, right), (low, top) = layout.xaxis.range, layout.yaxis.range
    found = []
    for note in layout.annotations:
        dx, dy = (note.ax, note.ay) if note.showarrow else (note.xshift, -note.yshift)
        x = (note.x - left) / (right - left) * wide + dx
        y = (top - note.y) / (top - low) * high + dy
        width, height = text_size(note.text, note.font.size)
        found.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    return found


def assert_apart(found: list[tuple[float, float, float, float]], wide: float, high: float) -> None:
    for a, b in itertools.combinations(found, 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)
    for left, top, right, bottom in found:
        assert left >= 0 and top >= 0 and right <= wide and bottom <= high


def labels(figure: go.Figure, kind: str) -> list[str]:
    return [note.text for note in figure.layout.annotations if note.name == kind]


# ---- the palettes -------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("theme", "least"), [("light", 3.4), ("dark", 5.3)])
def test_status_colours_stand_out_from_the_background(theme: str, least: float) -> None:
    colours = PALETTES[theme]
    for colour in (colours.record, colours.bridge, colours.saved, colours.drop, colours.line):
        assert contrast(colour, colours.background) >= least - 0.05
    for text in (colours.ink, colours.mute):
        assert contrast(text, colours.background) >= 4.5


# ---- the plane ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plane_draws_every_record_once_by_what_it_did(toy: SessionTrace, theme: Any) -> None:
    figure = plane(toy, WINDOWS, "ana", theme=theme)
    mine = np.flatnonzero(toy.batch.key == 0)
    drawn = {
        "record": toy.accepted & ~toy.late_but_kept & (toy.decision != MERGED),
        "late, saved": toy.late_but_kept,
        "bridge": toy.decision == MERGED,
        "dropped": toy.decision == LATE,
    }
    for name, mask in drawn.items():
        rows = mine[mask[mine]]
        assert points(named(figure, name)) == [(toy.batch.timestamp_ms[row], float(row)) for row in rows]
    others = np.flatnonzero(toy.batch.key != 0)
    assert points(named(figure, "other keys")) == [(toy.batch.timestamp_ms[row], float(row)) for row in others]
    symbols = [named(figure, name).marker.symbol for name in drawn]
    assert len(set(symbols)) == 4  # status is told by shape too
    assert figure.layout.paper_bgcolor == PALETTES[theme].background


def test_plane_lines_are_the_trace_at_every_record(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana")
    for row in range(len(toy)):
        assert stair_at(named(figure, "stream time"), row) == toy.stream_time_ms[row]
        assert stair_at(named(figure, "close line"), row) == toy.close_time_ms[row]
    turns = int((np.diff(toy.stream_time_ms) > 0).sum())
    assert len(named(figure, "close line").x) == 2 + 2 * turns


def test_plane_bodies_grow_as_the_trace_says_and_end_where_it_says(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana")
    bodies = pieces(named(figure, "session"))
    mine = np.flatnonzero(toy.window_columns.key == 0)
    assert len(bodies) == len(mine) == len(pieces(named(figure, "reach")))
    closed_at = dict(zip(toy.closes.window.tolist(), toy.closes.at.tolist(), strict=True))
    merged_at = dict(zip(toy.merges.absorbed.tolist(), toy.merges.at.tolist(), strict=True))
    for window, (x, y), (wide, _) in zip(mine.tolist(), bodies, pieces(named(figure, "reach")), strict=True):
        rows = np.flatnonzero(toy.window == window)
        assert min(y) == rows[0]
        assert max(y) == closed_at.get(window, merged_at.get(window, len(toy) - 0.1))
        assert (min(x), max(x)) == (toy.bounds_after[0][rows[-1]], toy.bounds_after[1][rows[-1]])
        assert (min(wide), max(wide)) == (min(x) - 10 * MINUTE, max(x) + 10 * MINUTE)
        for row in rows:  # just above each record, the body is as wide as the trace says
            at_row = [ms for ms, height in zip(x, y, strict=True) if height == row]
            assert {toy.bounds_after[0][row], toy.bounds_after[1][row]} <= set(at_row)


def test_plane_caps_bars_and_tethers(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana")
    caps = [(x, y[0]) for x, y in pieces(named(figure, "closed: the result"))]
    assert caps == [([2 * MINUTE, 30 * MINUTE], 11), ([41 * MINUTE, 63 * MINUTE], 20)]
    assert pieces(named(figure, "merge")) == [([2 * MINUTE, 24 * MINUTE], [6, 6])]  # its width then, not in the end
    (drop,) = np.flatnonzero((toy.decision == LATE) & (toy.batch.key == 0))
    missing = int(missing_grace_ms(toy, WINDOWS, np.array([drop]))[0])
    line = int(toy.close_time_ms[drop])
    assert pieces(named(figure, "missing grace")) == [([line - missing, line], [13, 13])]
    assert pieces(named(figure, "to the end")) == [([27 * MINUTE, line - missing], [13, 13])]
    assert missing == 7 * MINUTE


def test_plane_says_it_in_words(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana", clock="UTC")
    assert heading(figure).startswith("Key “ana”: 12 records kept, 1 dropped gap")
    assert "gap 10 min · grace 5 min" in heading(figure)
    assert labels(figure, "dropped") == ["<b>dropped</b> · 7 min short<br>grace 5 min → 12 min would keep it"]
    assert sorted(labels(figure, "closed")) == [
        "<b>closed</b> · 5 records · 22 min",
        "<b>closed</b> · 6 records · 28 min",
    ]
    assert labels(figure, "open") == ["still open"]
    assert labels(figure, "bridge") == ["<b>bridge</b>: two sessions become one"]
    assert "2 min behind<br>the close line" in labels(figure, "late but kept")[0]
    assert figure.layout.xaxis.title.text == "event time, minutes"
    hover = named(figure, "dropped").hovertext[0]
    assert "dropped" in hover and "grace 5 min → 12 min would keep it" in hover
    ranks = [each.legendrank for each in figure.data if each.showlegend]
    order = sorted((each for each in figure.data if each.showlegend), key=lambda each: each.legendrank)
    starts = ["record", "bridge", "late, saved", "dropped", "session", "closed:", "reach", "close line", "stream time"]
    assert [each.name.startswith(start) for each, start in zip(order, starts, strict=False)] == [True] * 9
    assert len(set(ranks)) == len(ranks)


streams = st.lists(
    st.tuples(st.sampled_from(["ana", "bo", "cy"]), st.integers(0, 180), st.integers(0, 1)), min_size=1, max_size=60
)


@pytest.mark.slow
@settings(max_examples=fewer(60), deadline=None)
@given(rows=streams, gap=st.integers(0, 12), grace=st.integers(0, 12), longer=st.sampled_from([0, 0, 40]))
def test_plane_and_lanes_of_any_stream(rows: list[tuple[str, int, int]], gap: int, grace: int, longer: int) -> None:
    windows = sk.SessionWindows(inactivity_gap_ms=gap * MINUTE, grace_ms=grace * MINUTE)
    trace = run(rows, windows, retention=f"{(gap + grace + longer) * MINUTE}ms")
    key = rows[0][0]
    partition = rows[0][2]
    figure = plane(trace, windows, key, partition=partition)
    code = trace.keys.to_pylist().index(key)
    mine = (trace.batch.key == code) & (trace.batch.partitions[trace.batch.partition] == partition)
    kept = int((mine & trace.accepted).sum())
    names = ("record", "late, saved", "bridge")
    assert sum(len(named(figure, name).x) for name in names) == kept
    dropped = len(named(figure, "dropped").x) + len(named(figure, "◂ dropped").x)
    assert dropped == int((mine & (trace.decision == LATE)).sum())
    tethers = pieces(named(figure, "missing grace"), _unit(figure))
    crowded = np.array([y for _, heights in pieces(named(figure, "many dropped"), _unit(figure)) for y in heights])
    drops = np.flatnonzero(mine & (trace.decision == LATE))
    rows = np.flatnonzero(trace.batch.partition == trace.batch.partition[drops[0]]) if len(drops) else drops
    drops = drops[~np.isin(np.searchsorted(rows, drops), crowded)]  # a row of the plane is one of the partition
    assert [x[1] - x[0] for x, _ in tethers] == missing_grace_ms(trace, windows, drops).tolist()
    assert [x[1] for x, _ in tethers] == trace.close_time_ms[drops].tolist()
    columns = trace.window_columns
    of_mine = (columns.key == code) & (trace.batch.partitions[columns.partition] == partition)
    assert len(pieces(named(figure, "closed: the result"))) == int(of_mine[trace.closes.window].sum())
    reopened = np.unique(trace.reopenings.at[of_mine[trace.reopenings.window]])
    assert len(named(figure, "re-opened").x) == len(reopened)
    assert len(figure.data) == 19
    wide = figure.layout.width - figure.layout.margin.l - figure.layout.margin.r
    assert_apart(boxes(figure), wide, figure.layout.height - figure.layout.margin.t - figure.layout.margin.b)
    assert all(len(labels(figure, kind)) <= 3 for kind in ("dropped", "bridge", "closed", "open", "late but kept"))

    board = lanes(trace, windows)
    alive = columns.merged_into < 0
    (bars,) = [each for each in board.data if each.name == "session"]
    held = [int(re.findall(r"<br>(\d+) record", text)[0]) for text in bars.hovertext]
    assert sum(held) == int(trace.accepted.sum())  # records sum up through every merge
    assert len(pieces(named(board, "closed session"))) == int((alive & (trace.closed_by >= 0)).sum())
    assert len(pieces(named(board, "open session"))) == int((alive & (trace.closed_by < 0)).sum())
    assert len(named(board, "dropped").x) == int((trace.decision == LATE).sum())
    assert len(named(board, "bridge").x) == int((trace.decision == MERGED).sum())
    parts = len(np.union1d(trace.merges.into, trace.merges.absorbed))
    assert len(pieces(named(board, "sessions before"))) == parts
    assert len(board.data) == 15


def _unit(figure: go.Figure) -> int:
    word = figure.layout.xaxis.title.text.split(", ")[1]
    return {"ms": 1, "seconds": 1_000, "minutes": MINUTE, "hours": HOUR, "days": DAY}[word]


def test_plane_of_a_reopened_session_goes_on_above_its_cap() -> None:
    rows = [("ana", 2), ("ana", 7), ("bo", 30), ("ana", 15), ("bo", 34), ("ana", 22), ("bo", 60)]
    trace = run(rows, retention="60m")
    figure = plane(trace, WINDOWS, "ana")
    assert len(trace.reopenings.at) == 2
    assert points(named(figure, "re-opened")) == [(15 * MINUTE, 3), (22 * MINUTE, 5)]
    assert [y[0] for _, y in pieces(named(figure, "closed: the result"))] == [2, 4, 6]
    assert [(min(y), max(y)) for _, y in pieces(named(figure, "session"))] == [(0, 2), (3, 4), (5, 6)]
    assert len(pieces(named(figure, "closed but still retained"))) == 4  # two edges from each cap to the record
    sizes = labels(figure, "closed")
    assert "<b>closed</b> · 2 records · 5 min" in sizes and "<b>closed</b> · 4 records · 20 min" in sizes
    assert labels(figure, "reopened")


def test_plane_of_sessions_from_a_store() -> None:
    with sk.open_store("memory", "charts") as store:
        run([("ana", 2), ("ana", 7), ("bo", 8)], store=store)
        trace = run([("bo", 9), ("ana", 12), ("bo", 40)], store=store)
        figure = plane(trace, WINDOWS, "ana")
        (x, y) = pieces(named(figure, "session"))[0]
        assert min(y) < -1 and (min(x), max(x)) == (2 * MINUTE, 12 * MINUTE)  # from below the first row of this run
        assert "began earlier" in heading(figure)
        assert labels(figure, "closed") == ["<b>closed</b> · 1 record of this run · 10 min"]
        assert len(pieces(named(lanes(trace, WINDOWS), "closed session"))) == 2
        silent = plane(run([("bo", 41)], store=store), WINDOWS, "bo")
        assert len(pieces(named(silent, "session"))) == 1


def test_plane_of_a_key_whose_only_session_came_from_a_store() -> None:
    with sk.open_store("memory", "charts", retention="2h") as store:
        run([("ana", 2), ("bo", 8)], store=store, retention="2h")
        trace = run([("bo", 9), ("bo", 40)], store=store, retention="2h")
        figure = plane(trace, WINDOWS, "ana")
    assert len(pieces(named(figure, "session"))) == 1
    assert "0 records kept" in heading(figure)


def test_plane_of_one_of_several_partitions() -> None:
    rows = [("ana", minute, minute % 3) for minute in range(0, 40, 2)] + [
        ("bo", 100, 2),
        ("ana", 41, 1),
        ("ana", 42, 1),
    ]
    trace = run(rows)
    usual = plane(trace, WINDOWS, "ana")
    assert "partition 1 only: the key is also in 0, 2" in heading(usual)
    other = plane(trace, WINDOWS, "ana", partition=2)
    mine = np.flatnonzero(trace.batch.partitions[trace.batch.partition] == 2)
    assert stair_at(named(other, "stream time"), len(mine) - 1) == trace.stream_time_ms[mine[-1]]
    assert "the key is also in 0, 1" in heading(other)
    with pytest.raises(InvalidArgument, match=r"no such partition.*got 7"):
        plane(trace, WINDOWS, "ana", partition=7)
    empty = plane(trace, WINDOWS, "bo", partition=0)
    assert "0 records kept" in heading(empty)


def test_plane_of_one_record() -> None:
    figure = plane(run([("ana", 5)]), WINDOWS, "ana")
    assert points(named(figure, "record"), 1_000 * 60) == [(5 * MINUTE, 0)] or _unit(figure) == MINUTE
    assert labels(figure, "open") == ["still open"]


def test_plane_refuses_what_is_not_there(toy: SessionTrace) -> None:
    with pytest.raises(UnknownRecord, match=r"not in the run; got 'dora'.*3 keys, such as 'ana', 'bo', 'cy'"):
        plane(toy, WINDOWS, "dora")
    with pytest.raises(UnknownRecord, match="not in the run"):
        plane(toy, WINDOWS, 5)
    with pytest.raises(UnknownRecord, match="holds no records"):
        plane(run([]), WINDOWS, "ana")
    with pytest.raises(UnknownRecord, match=r"from_offset=90, until_offset=None; offsets 0 to 21"):
        plane(toy, WINDOWS, "ana", from_offset=90)
    with pytest.raises(InvalidArgument, match=r"theme must be a known choice; got 'blue'"):
        plane(toy, WINDOWS, "ana", theme="blue")  # type: ignore[arg-type]


def test_plane_of_a_part_keeps_the_rest_out(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana", from_offset=8, until_offset=16)
    assert "shown: offsets 8 to 16 of 0 to 21" in heading(figure)
    assert len(named(figure, "dropped").x) == 1 and len(named(figure, "bridge").x) == 0
    assert "goes on" in labels(figure, "open")[0]
    assert figure.layout.yaxis.ticktext[0] == "8"
    assert stair_at(named(figure, "close line"), 0) == toy.close_time_ms[8]


def test_plane_leaves_unusable_records_out_and_says_so() -> None:
    data = pd.DataFrame({"key": ["ana", "ana", None, "ana"], "at": [MINUTE, None, MINUTE, 2 * MINUTE]})
    data["at"] = pd.to_datetime(data["at"], unit="ms", utc=True)
    plan = sk.group_by_key("key", timestamp="at", on_bad_time="drop").windowed_by(WINDOWS).count()
    figure = plane(plan.run(data).trace, WINDOWS, "ana")
    assert len(named(figure, "record").x) == 2 and len(named(figure, "dropped").x) == 0
    assert len(named(figure, "other keys").x) == 0
    assert "1 of the dropped records are not drawn: they have no usable time" in heading(figure)
    figure = lanes(plan.run(data).trace, WINDOWS)
    assert "2 of the dropped records are not drawn: they have no key or no usable time" in heading(figure)
    assert "nothing was dropped" not in heading(figure)
    assert "none of their records was dropped: the lanes show 1 session" in heading(figure)
    first = pd.DataFrame({"key": [None, "ana"], "at": [MINUTE, MINUTE]}).astype({"key": "string", "at": "int64"})
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(WINDOWS).count()
    late_start = plane(plan.run(first).trace, WINDOWS, "ana")
    assert min(named(late_start, "stream time").y) == 1  # no stream time before the first record with a key


def test_plane_of_a_long_history_shows_a_telling_part(flights: sk.Run) -> None:
    trace, windows = flights.trace, sk.SessionWindows(inactivity_gap="1h", grace="30m")
    figure = plane(trace, windows, "EV@EWR", clock="New York")
    text = heading(figure)
    first, last = (int(number.replace(",", "")) for number in re.findall(r"offsets ([\d,]+) to ([\d,]+) of 0", text)[0])
    left_out = int(re.findall(r"without ([\d,]+) records of other keys", text)[0].replace(",", ""))
    shown = last - first + 1 - left_out
    assert 40 <= shown <= MOST_ROWS + 6
    assert figure.layout.xaxis.type == "date" and figure.layout.xaxis.title.text == "event time, New York"
    assert min(len(named(figure, name).x) for name in ("dropped", "bridge", "late, saved", "record")) > 0
    history = SessionHistory(trace, trace.keys.to_pylist().index("EV@EWR"), 0)
    rows = history.choose()
    assert len(rows) == shown
    for place, row in enumerate(rows.tolist()):
        assert stair_at(named(figure, "close line"), place, 1) == trace.close_time_ms[row]
    own = history.own[(history.own >= rows[0]) & (history.own <= rows[-1])]
    assert np.isin(own, rows).all()  # nothing of the key itself is left out
    assert figure.layout.xaxis.minallowed == figure.layout.xaxis.range[0]


@pytest.mark.slow
def test_plane_of_every_key_of_the_flights(flights: sk.Run) -> None:
    trace, windows = flights.trace, sk.SessionWindows(inactivity_gap="1h", grace="30m")
    for key in trace.keys.to_pylist():
        figure = plane(trace, windows, key)
        layout = figure.layout
        wide, high = layout.width - layout.margin.l - layout.margin.r, layout.height - layout.margin.t - layout.margin.b
        assert_apart(boxes(figure), wide, high)
        assert len(named(figure, "session").x) > 0


@pytest.mark.slow
def test_plane_from_and_up_to_an_offset(flights: sk.Run) -> None:
    trace, windows = flights.trace, sk.SessionWindows(inactivity_gap="1h", grace="30m")
    after = plane(trace, windows, "UA@EWR", from_offset=20_000)
    assert "shown: offsets 20,0" in heading(after)
    before = plane(trace, windows, "UA@EWR", until_offset=20_000)
    assert re.search(r"shown: offsets [\d,]+ to (19,9|20,0)\d\d of", heading(before))
    whole = plane(trace, windows, "UA@EWR", from_offset=0, until_offset=28_490)
    assert {each.type for each in whole.data} == {"scatter", "scattergl"}
    assert len(whole.data) == len(after.data)


# ---- playback -----------------------------------------------------------------------------------------------------


def test_playback_is_a_curtain_with_a_frame_for_each_record(toy: SessionTrace) -> None:
    still, figure = plane(toy, WINDOWS, "ana"), plane(toy, WINDOWS, "ana", playback=True)
    assert [each.to_plotly_json() for each in figure.data] == [each.to_plotly_json() for each in still.data]
    assert len(figure.frames) == len(toy) == len(figure.layout.sliders[0].steps)
    edges = [frame.layout.shapes[0].y0 for frame in figure.frames]
    assert edges == sorted(edges)
    assert all(row < edge < row + 1 for row, edge in enumerate(edges[:-1]))
    assert edges[-1] == figure.layout.yaxis.range[1]  # at the end nothing is hidden
    seen = [sum(note.visible is not False for note in frame.layout.annotations) for frame in figure.frames]
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == len(still.layout.annotations)
    assert all(frame.data is None or not frame.data for frame in figure.frames)


@pytest.mark.slow
def test_playback_of_many_rows_takes_larger_steps(flights: sk.Run) -> None:
    windows = sk.SessionWindows(inactivity_gap="1h", grace="30m")
    figure = plane(flights.trace, windows, "UA@EWR", from_offset=0, until_offset=3_000, playback=True)
    assert len(figure.frames) <= 242
    assert figure.frames[-1].layout.shapes[0].y0 == figure.layout.yaxis.range[1]


# ---- the lanes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lanes_of_the_toy(toy: SessionTrace, theme: Any) -> None:
    figure = lanes(toy, WINDOWS, theme=theme)
    assert heading(figure).startswith("3 keys · 10 sessions · 1 merge · 2 dropped ")
    assert list(figure.layout.yaxis.ticktext) == ["<b>ana</b>", "<b>bo</b>", "<b>cy</b>"]
    assert len(pieces(named(figure, "closed session"))) == 8
    assert len(pieces(named(figure, "open session"))) == 2
    reach = pieces(named(figure, "reach"))  # of open sessions only
    assert sorted((min(x), max(x)) for x, _ in reach) == [(69 * MINUTE, 89 * MINUTE), (72 * MINUTE, 92 * MINUTE)]
    former = pieces(named(figure, "sessions before"))
    assert (min(former[0][0]), max(former[0][0])) == (2 * MINUTE, 11 * MINUTE)
    assert len(former) == 2
    drops = points(named(figure, "dropped"))
    assert [ms for ms, _ in drops] == [27 * MINUTE, 42 * MINUTE]
    assert [round(y) for _, y in drops] == [2, 1] and all(y % 1 > 0.3 for _, y in drops)  # above their lanes
    assert [text.strip() for text in named(figure, "missing grace").text] == ["<b>+7 min</b>", "<b>+9 min</b>"]
    assert [x for x, _ in pieces(named(figure, "close line"))] == [[67 * MINUTE] * 2]
    assert [x for x, _ in pieces(named(figure, "stream time"))] == [[82 * MINUTE] * 2]
    assert sorted(named(figure, "sizes").text)[-3:-1] == ["5 records · 22 min", "6 records · 28 min"]


def test_lanes_orders_and_choices(toy: SessionTrace) -> None:
    def names(**options: Any) -> list[str]:
        ticks = lanes(toy, WINDOWS, **options).layout.yaxis.ticktext
        return [text.removeprefix("<b>").removesuffix("</b>") for text in ticks]

    assert names(sort="key") == ["ana", "bo", "cy"]
    assert names(sort="activity") == ["ana", "bo", "cy"]
    assert names(sort="merges")[0] == "ana"
    assert names(keys=["cy", "ana"]) == ["cy", "ana"]
    assert names(keys=["cy", "ana"], sort="key") == ["ana", "cy"]
    assert names(most=1) == ["ana"]
    assert "2 more keys not shown" in heading(lanes(toy, WINDOWS, most=1))
    with pytest.raises(InvalidArgument, match=r"sort must be a known choice; got 'size'"):
        lanes(toy, WINDOWS, sort="size")
    with pytest.raises(InvalidArgument, match=r"most is a number of lanes; got 0"):
        lanes(toy, WINDOWS, most=0)
    with pytest.raises(InvalidArgument, match="ends before it starts"):
        lanes(toy, WINDOWS, start=9, end=3)
    with pytest.raises(UnknownRecord, match="got 'dora'"):
        lanes(toy, WINDOWS, keys=["dora"])


def test_lanes_of_a_span(toy: SessionTrace) -> None:
    figure = lanes(toy, WINDOWS, start=0, end=40 * MINUTE)
    assert len(named(figure, "dropped").x) == 1
    assert "2 min to 40 min" in heading(figure) and "1 dropped" in heading(figure)
    assert "the close line has passed all of it" in heading(figure)
    assert not named(figure, "close line").x and not named(figure, "stream time").x
    assert all(x <= 40 for x in figure.layout.xaxis.range[:1])


def test_lanes_of_the_flights_show_the_day_with_most_to_see(flights: sk.Run) -> None:
    trace, windows = flights.trace, sk.SessionWindows(inactivity_gap="1h", grace="30m")
    figure = lanes(trace, windows, clock="New York")
    text = heading(figure)
    assert text.startswith("33 keys · 4,382 sessions · 88 merges · 955 dropped ")
    day = re.findall(r"shown: (\d{4}-\d\d-\d\d) \d\d:\d\d to (\d{4}-\d\d-\d\d)", text)[0]
    assert day[0] == day[1]
    low = int(pd.Timestamp(day[0]).value // 1_000_000)
    times, columns = trace.batch.timestamp_ms, trace.window_columns
    of_day = (times >= low) & (times < low + DAY)
    assert len(named(figure, "dropped").x) == int((of_day & (trace.decision == LATE)).sum())
    assert len(named(figure, "bridge").x) == int((of_day & (trace.decision == MERGED)).sum()) > 0
    inside = (columns.merged_into < 0) & (columns.end_ms >= low) & (columns.start_ms < low + DAY)
    assert len(pieces(named(figure, "closed session"), 1)) == int(inside.sum())
    assert len(figure.layout.yaxis.ticktext) == 33
    assert len(figure.to_json()) < 300_000


def test_lane_numbers_cover_no_bar(flights: sk.Run) -> None:
    figure = lanes(flights.trace, sk.SessionWindows(inactivity_gap="1h", grace="30m"))
    layout = figure.layout
    pixel = (layout.xaxis.range[1] - layout.xaxis.range[0]) / (layout.width - layout.margin.l - layout.margin.r)
    bars = [(min(x), max(x), (min(y) + max(y)) / 2) for x, y in pieces(named(figure, "closed session"), 1)]
    sizes = named(figure, "sizes")
    assert len(sizes.x) > 60
    for x, y, text in zip(sizes.x, sizes.y, sizes.text, strict=True):
        end = x + text_width(text, 10) * pixel  # it begins at the end of its own bar
        assert not [bar for bar in bars if abs(bar[2] - y) < 0.1 and bar[0] < end and bar[1] > x + 3 * pixel]


def test_lanes_of_several_partitions_have_no_common_clock() -> None:
    trace = run([("ana", 2, 0), ("bo", 90, 1), ("ana", 5, 1), ("cy", 7, 0)])
    figure = lanes(trace, WINDOWS, sort="key")
    assert list(figure.layout.yaxis.ticktext) == ["<b>ana · 0</b>", "<b>ana · 1</b>", "<b>bo</b>", "<b>cy</b>"]
    assert "2 partitions, each with a stream time of its own" in heading(figure)
    assert not named(figure, "close line").x
    alone = lanes(trace, WINDOWS, keys=["bo"])
    assert named(alone, "stream time").x[0] == 90


def test_lanes_of_nothing() -> None:
    figure = lanes(run([]), WINDOWS)
    assert "the run holds no records" in heading(figure)
    nulls = pd.DataFrame({"key": pd.array([None, None], "string"), "at": [1, 2]})
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(WINDOWS).count()
    assert "0 keys" in heading(lanes(plan.run(nulls).trace, WINDOWS))


# ---- times --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("latest_ms", "kind", "title"), [
    (900, "linear", "event time, ms"), (90_000, "linear", "event time, seconds"),
    (82 * MINUTE, "linear", "event time, minutes"), (20 * HOUR, "linear", "event time, hours"),
    (7 * DAY, "linear", "event time, days"), (400 * DAY, "date", "event time, UTC"),
    (2**55, "linear", "event time, ms since 1970"),
])  # fmt: skip
def test_time_axis_suits_the_times(latest_ms: int, kind: str, title: str) -> None:
    data = pd.DataFrame({"key": pd.array(["ana", "ana"], "string"), "at": [latest_ms // 2, latest_ms]})
    windows = sk.SessionWindows(inactivity_gap_ms=50, grace=0)
    trace = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(windows).count().run(data).trace
    for figure in (plane(trace, windows, "ana"), lanes(trace, windows)):
        assert figure.layout.xaxis.type == kind
        assert figure.layout.xaxis.title.text == title


# ---- words and hostile text ---------------------------------------------------------------------------------------


def test_notes_flow_into_lines_of_a_width() -> None:
    assert flow(["one", "two"], 500) == ["one · two"]
    assert flow(["one one one one", "two two two two"], 130) == ["one one one one", "two two two two"]
    assert all(text_width(line, 13) <= 200 for line in flow(["word " * 40], 200))
    assert flow([], 100) == []
    assert flow(["it takes 22 h 30 min"], 100) == ["it takes 22 h", "30 min"]  # no number without its unit


def hostile_figures() -> Iterator[go.Figure]:
    rows = [(key, minute) for minute in range(0, 60, 7) for key in HOSTILE]
    rows += [(HOSTILE[0], 3)]
    trace = run(rows)
    for key in HOSTILE:
        yield plane(trace, WINDOWS, key, playback=True, clock=key)
    yield lanes(trace, WINDOWS, clock=HOSTILE[0])


def assert_harmless(figure: go.Figure) -> None:
    """What is in the data is never part of a template, and no markup."""
    written = figure.to_json()
    for bad in ("<img", "<script", "</script", r"$\\href", "javascript:alert(1)}{x}$", "\x00"):
        assert bad not in written
    for drawn in json.loads(written)["data"]:
        assert drawn.get("hovertemplate") in (None, "%{hovertext}<extra></extra>")
        assert "texttemplate" not in drawn


@pytest.mark.slow
def test_hostile_keys_are_text() -> None:
    for figure in hostile_figures():
        assert_harmless(figure)
        page = figure.to_html(include_plotlyjs=False)
        assert "<img" not in page and page.count("<script") == page.count("</script>")


@pytest.mark.browser
def test_hostile_keys_do_nothing_in_a_browser(browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.route("http*://**", lambda route: (asked.append(route.request.url), route.abort()))
    figures = list(hostile_figures())
    parts = [figure.to_html(include_plotlyjs=number == 0, full_html=False) for number, figure in enumerate(figures)]
    page.set_content("".join(parts))
    page.wait_for_function(f"document.querySelectorAll('.scatterlayer').length >= {len(figures)}")
    assert page.locator("svg img, svg script, svg a[href^=javascript]").count() == 0
    shown = page.locator(".gtitle").first.text_content() or ""
    assert "<img src=x onerror=alert(1)>" in shown  # it is there, as text
    assert not asked
    page.close()


# Where the last point of the trace of this name is on the screen.
MIDDLE_OF = """name => {
  const place = document.querySelector('.js-plotly-plot');
  const { xaxis, yaxis } = place._fullLayout;
  const trace = place._fullData.find(each => each.name === name);
  const box = place.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(trace.x.at(-1)), box.top + yaxis._offset + yaxis.d2p(trace.y.at(-1))];
}"""


@pytest.mark.browser
def test_drawn_in_a_browser_marks_are_there_and_labels_do_not_overlap(browser: Browser, toy: SessionTrace) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.set_content(plane(toy, WINDOWS, "ana", playback=True).to_html(include_plotlyjs=True))
    expected = boxes(plane(toy, WINDOWS, "ana"))
    page.wait_for_function(f"document.querySelectorAll('.annotation-text-g rect.bg').length >= {len(expected)}")
    counted = page.evaluate("() => document.querySelectorAll('.scatterlayer .point').length")
    assert counted == len(TOY)
    page.mouse.move(*page.evaluate(MIDDLE_OF, "closure"))
    page.wait_for_function("document.querySelector('.hoverlayer')?.textContent.includes('closed by the record')")
    measured = page.evaluate(
        "() => [...document.querySelectorAll('.annotation-text-g rect.bg')].map(r => {"
        "const b = r.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]})"
    )
    assert len(measured) == len(expected) == 6
    for a, b in itertools.combinations(measured, 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
    for theirs, ours in zip(sorted(measured), sorted(expected), strict=True):
        assert theirs[2] - theirs[0] <= ours[2] - ours[0] + 2  # no wider than we reckoned with
    page.evaluate("() => { Plotly.animate(document.querySelector('.js-plotly-plot'), ['3'], {mode: 'immediate'}) }")
    page.wait_for_function("document.querySelector('.js-plotly-plot').layout.shapes[0].y0 < 4")
    assert page.evaluate("() => document.querySelectorAll('.scatterlayer .js-fill').length") >= 2  # fills are kept
    page.close()


# ---- the figures themselves -----------------------------------------------------------------------------------------


def test_plotly_finds_no_fault_with_the_figures(toy: SessionTrace, flights: sk.Run) -> None:
    """They are built without its checks, which take longer than all else."""
    playing = plane(toy, WINDOWS, "ana", theme="dark", playback=True)
    for figure in (
        playing,
        plane(toy, WINDOWS, "bo"),
        lanes(toy, WINDOWS),
        flights.lanes(most=5, width=1_120),
        lanes(run([]), WINDOWS),
    ):
        assert json.loads(go.Figure(figure.to_dict()).to_json()) == json.loads(figure.to_json())
        with pytest.raises(ValueError, match="Invalid property"):
            figure.update_layout(titel="x")


def test_a_change_to_one_trace_of_a_figure_changes_no_other(toy: SessionTrace) -> None:
    figure = lanes(toy, WINDOWS)
    before = [each.to_plotly_json() for each in figure.data]
    for each in figure.data:
        if each.line.width is not None:
            each.line.width = 77
            break
    after = [each.to_plotly_json() for each in figure.data]
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_picture_without_a_width_is_as_wide_as_its_room_and_its_labels_suit_any(toy: SessionTrace) -> None:
    figure = plane(toy, WINDOWS, "ana", width=None)
    assert figure.layout.width is None and figure.layout.autosize
    assert len(figure.layout.annotations) >= 6
    for width in (600, 700, 1_120, 1_600, 2_400):
        found = boxes(figure.update_layout(width=width))
        wide = width - figure.layout.margin.l - figure.layout.margin.r
        assert_apart(found, wide, figure.layout.height - figure.layout.margin.t - figure.layout.margin.b)
    assert plane(toy, WINDOWS, "ana", width=900).layout.width == 900
    with pytest.raises(InvalidArgument, match="a chart needs room for its labels; got 359; 360 pixels or more"):
        plane(toy, WINDOWS, "ana", width=359)


def test_times_of_a_second_are_few_enough_to_be_read() -> None:
    """A sensor that reports every 16 ms: times such as 13:58:58.200 stood in each other."""
    at = pd.to_datetime(1_480_000_000_000 + np.arange(200) * 16, unit="ms", utc=True)
    start = sk.group_by_key("sensor", timestamp="at")
    plan = start.windowed_by(sk.SessionWindows(inactivity_gap="100ms", grace="0s")).count()
    axis = plan.run(pd.DataFrame({"sensor": "ppg", "at": at})).plane().layout.xaxis
    assert axis.nticks == 6
    later = pd.to_datetime(1_480_000_000_000 + np.arange(200) * 16_000, unit="ms", utc=True)
    assert plan.run(pd.DataFrame({"sensor": "ppg", "at": later})).plane().layout.xaxis.nticks is None
