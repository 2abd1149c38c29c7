"""Charts of tumbling, hopping and sliding windows: what is drawn is counted against the trace."""

import json
import random
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.errors import InvalidArgument, UnknownRecord
from sessionkit.views.drawing.palettes import PALETTES
from sessionkit.views.scenes.key_rows import MOST_ROWS
from sessionkit.views.scenes.window_history import depth, every_nth, places
from tests.headings import heading
from tests.kinds import flights_by_route, group_in_ms
from tests.unit.views.charts.test_charts import (
    HOSTILE,
    MINUTE,
    TOY,
    _unit,
    assert_apart,
    assert_harmless,
    boxes,
    labels,
    named,
    pieces,
    points,
    run_of,
)

TUMBLING = sk.TimeWindows(size="20m", grace="5m")
HOPPING = sk.TimeWindows(size="20m", advance="10m", grace="5m")
SLIDING = sk.SlidingWindows(time_difference="10m", grace="5m")
TRAILING = sk.SlidingWindows(time_difference="10m", grace="5m", trailing_only=True)
KINDS = {"tumbling": TUMBLING, "hopping": HOPPING, "sliding": SLIDING, "trailing": TRAILING}
of_each_kind = pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)


def shuffled(seed: int, partitions: int = 1, count: int = 60) -> list[tuple[str, int, int]]:
    rnd = random.Random(seed)
    return [(rnd.choice("abc"), max(0, i + rnd.randint(-30, 6)), rnd.randrange(partitions)) for i in range(count)]


def all_named(figure: go.Figure, start: str) -> list[Any]:
    return [each for each in figure.data if each.name.startswith(start)]


def rows_of(run: sk.Run, key: str, partition: int) -> Any:
    """(records, windows) of a key in a partition, as masks."""
    trace = run.trace
    code = trace.keys.to_pylist().index(key)
    number = int(np.flatnonzero(trace.batch.partitions == partition)[0])
    columns = trace.window_columns
    mine = (columns.key == code) & (columns.partition == number)
    mine &= trace.window_columns.are_results(run.plan.windows.trailing_only)
    return (trace.batch.key == code) & (trace.batch.partition == number), mine, trace.batch.partition == number


# ---- the plane ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(6))
def test_plane_is_the_trace(windows: Any, seed: int) -> None:
    rows = shuffled(seed, partitions=1 + seed % 3)
    run = run_of(rows, windows)
    trace, key, partition = run.trace, rows[0][0], rows[0][2]
    figure = run.plane(key, partition=partition)
    unit = _unit(figure)
    mine, of_key, of_partition = rows_of(run, key, partition)
    height = np.cumsum(of_partition) - 1

    born = {}
    for at, window in zip(trace.touches.record.tolist(), trace.touches.window.tolist(), strict=True):
        born.setdefault(window, height[at])
    closed = dict(zip(trace.closes.window.tolist(), height[trace.closes.at].tolist(), strict=True))
    top = height[-1] + 0.9
    columns = trace.window_columns
    expected = sorted(
        (columns.start_ms[w], columns.end_ms[w], born[w], closed.get(w, top)) for w in np.flatnonzero(of_key).tolist()
    )
    layers = [each for each in figure.data if each.name.startswith(("window, from", "windows"))]
    drawn = [piece for each in layers for piece in pieces(each, unit)]
    assert sorted((min(x), max(x), min(y), max(y)) for x, y in drawn) == expected

    caps = sorted((x[0], x[1], y[0]) for x, y in pieces(named(figure, "closed: the result"), unit))
    assert caps == sorted((start, end, at) for start, end, _, at in expected if at != top)

    decided = {"record": 0, "late, but": 0, "too late for": 0, "dropped": 0}
    late_for = np.bincount(trace.missed.record, minlength=len(trace))
    if not getattr(windows, "trailing_only", False):
        decided["record"] = int((mine & trace.accepted & ~trace.late_but_kept).sum())
        decided["late, but"] = int((mine & trace.late_but_kept & (late_for == 0)).sum())
        decided["too late for"] = int((mine & trace.accepted & (late_for > 0)).sum())
        decided["dropped"] = int((mine & (trace.decision == LATE)).sum())
        assert {name: len(named(figure, name).x) for name in decided} == decided
    assert sum(len(named(figure, name).x) for name in decided) == int(mine.sum())
    assert len(named(figure, "other keys").x) == int((of_partition & ~mine).sum())


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(4))
def test_a_tether_is_the_missing_grace(windows: Any, seed: int) -> None:
    rows = shuffled(seed)
    run = run_of(rows, windows)
    trace, key = run.trace, rows[0][0]
    figure = run.plane(key)
    mine, *_ = rows_of(run, key, 0)
    longest: dict[int, int] = {}
    for at, start in zip(trace.missed.record.tolist(), trace.missed.start_ms.tolist(), strict=True):
        short = int(trace.close_time_ms[at] - trace.last_instant_ms(np.int64(trace.ends_ms(start))))
        if mine[at]:
            longest[at] = max(short, longest.get(at, 0))
    drawn = pieces(named(figure, "missing grace"), _unit(figure))
    lines = {int(y[0]): (x[1], x[1] - x[0]) for x, y in drawn}
    if windows is TRAILING:  # a window that is no result is not missed
        assert set(lines) <= set(longest) and all(length <= longest[at] for at, (_, length) in lines.items())
        longest = {at: short for at, short in longest.items() if lines.get(at, (0, 0))[1] == short}
        assert {at for at in lines if trace.decision[at] == LATE} <= set(longest)
    else:
        assert set(lines) == set(longest)
    for at, short in longest.items():
        assert lines[at] == (trace.close_time_ms[at], short)
    enough = run.dropped()
    if longest and windows is not TRAILING:
        worst = enough[enough["key"] == key]["missing_grace_ms"].max()
        assert worst == max(longest.values())


@pytest.mark.parametrize("windows", [TUMBLING, HOPPING], ids=["tumbling", "hopping"])
def test_the_missing_grace_keeps_a_drop_and_no_less_does(windows: Any) -> None:
    run = run_of(TOY, windows)
    for at in np.flatnonzero(run.trace.decision == LATE).tolist():
        missed = np.flatnonzero(run.trace.missed.record == at)
        least = int(run.trace.missing_ms[missed].min()) + windows.grace_ms
        for grace_ms, kept in ((least, True), (least - 1, False)):
            again = run_of(TOY, run.plan.with_windows(grace_ms=grace_ms).windows)
            assert bool(again.trace.accepted[at]) is kept


@of_each_kind
@pytest.mark.parametrize("seed", range(3))
def test_with_the_missing_grace_a_record_counts_in_all_its_windows(windows: Any, seed: int) -> None:
    rows = shuffled(seed)
    run = run_of(rows, windows)
    for at in np.unique(run.trace.missed.record).tolist()[:4]:
        most = int(run.trace.missing_ms[run.trace.missed.record == at].max()) + windows.grace_ms
        again = run_of(rows, run.plan.with_windows(grace_ms=most).windows)
        assert again.trace.accepted[at] and at not in again.trace.missed.record


@of_each_kind
def test_stairs_are_the_times_of_the_trace(windows: Any) -> None:
    run = run_of(TOY, windows)
    figure = run.plane("ana")
    for name, times in (("stream time", run.trace.stream_time_ms), ("close line", run.trace.close_time_ms)):
        line = named(figure, name)
        for row, ms in enumerate(times.tolist()):
            assert [round(x * MINUTE) for x, y in zip(line.x, line.y, strict=True) if y <= row][-1] == ms
    assert "stream \N{MINUS SIGN} grace" in named(figure, "close line").name
    assert "gap" not in json.dumps(figure.to_plotly_json(), default=str).replace("gapsize", "")


def test_plane_of_hopping_windows_says_it_in_words() -> None:
    figure = run_of(TOY, HOPPING).plane("ana", width=1_120)
    text = heading(figure)
    assert text.startswith("Key “ana”: 12 records kept, 1 dropped size")
    assert "size 20 min · advance 10 min · grace 5 min" in text
    assert "1 of the kept came too late for some windows" in text
    cure = "grace 5 min → 12 min 1 s would keep it in one,<br>22 min 1 s in all"
    assert labels(figure, "dropped") == [f"<b>dropped</b>: too late for 2 windows<br>{cure}"]
    there = "<b>too late for 1 window</b>, counts in 1<br>grace 5 min → 8 min 1 s would keep it there too"
    assert labels(figure, "partly late") == [there]
    assert labels(figure, "late but kept") == [
        "<b>late but kept</b>: 2 min behind<br>the close line; its window is open"
    ]
    assert "still open" in labels(figure, "open")
    ends = [(ms + 1, y) for ms, y in points(named(figure, "end of a window"))]  # the last instant: 1 ms before
    assert ends == [(30 * MINUTE, 13), (40 * MINUTE, 13), (50 * MINUTE, 15)]
    assert "counts in 1 window<br>too late for 1 window" in named(figure, "too late for").hovertext[0]
    assert "<b>closed before</b> offset 13 came<br>10 min to 30 min" in named(figure, "end of a window").hovertext[0]


def test_plane_of_tumbling_windows_says_how_much_grace_is_missing() -> None:
    figure = run_of(TOY, TUMBLING).plane("ana", theme="dark", playback=True)
    assert labels(figure, "dropped") == ["<b>dropped</b> · 7 min 1 s short<br>grace 5 min → 12 min 1 s would keep it"]
    assert figure.layout.paper_bgcolor == PALETTES["dark"].background
    assert len(figure.frames) == len(TOY)
    assert len(all_named(figure, "window, from")) == 1  # side by side: no layers
    ends = sorted(round(x * MINUTE) for x in named(figure, "end of a window").x)
    assert ends == [40 * MINUTE - 1]


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_lie_apart_and_the_legend_names_what_is_there(windows: Any, theme: Any) -> None:
    for rows in (TOY, [(key, minute) for key, minute, _ in shuffled(3, count=110)]):
        figure = run_of(rows, windows).plane(rows[0][0], theme=theme, width=1_120)
        layout = figure.layout
        wide, high = layout.width - layout.margin.l - layout.margin.r, layout.height - layout.margin.t - layout.margin.b
        assert_apart(boxes(figure), wide, high)
        for each in figure.data:
            assert not each.showlegend or len(each.x) > 0
        shown = [each.name for each in figure.data if each.showlegend]
        assert len(shown) == len(set(shown))
        ranks = [each.legendrank for each in figure.data if each.showlegend]
        assert len(ranks) == len(set(ranks))


def test_of_trailing_windows_only_results_are_drawn() -> None:
    run = run_of(TOY, TRAILING)
    figure = run.plane("ana")
    times = {minute * MINUTE for key, minute in TOY if key == "ana"}
    ends = {max(x) for each in all_named(figure, "window, from") for x, _ in pieces(each)}
    assert ends and ends <= times
    board = run.lanes()
    assert len(named(board, "window").x) == len(run.table())
    assert len(run.table()) < len(run.trace.window_columns.key)


def test_many_windows_over_one_another_are_thinned_and_it_says_so() -> None:
    windows = sk.TimeWindows(size="100m", advance="1m", grace="5m")
    run = run_of(TOY, windows)
    text = heading(run.plane("ana"))
    every, count = re.findall(r"1 in (\d) of (\d+) windows is drawn", text)[0]
    assert int(count) == int((run.trace.window_columns.key == 0).sum())
    figure = run.plane("ana")
    feet = pieces(named(figure, "window: made"))
    assert 0 < len(feet) <= int(count) // int(every) + 1
    assert all(round(x[0] / MINUTE) % int(every) == 0 for x, _ in feet)
    ticks = named(figure, "end of a window")
    assert len(ticks.x) <= 8 * len(pieces(named(figure, "missing grace")))
    board = run.lanes()
    drawn, of = re.findall(r"([\d,]+) of ([\d,]+) windows are drawn, as more than 8", heading(board))[0]
    bars = pieces(named(board, "closed window")) + pieces(named(board, "open window"))
    assert len(bars) == len(named(board, "window").x) == int(drawn) < int(of.replace(",", ""))


def test_plane_of_one_record_and_of_none() -> None:
    for windows in KINDS.values():
        figure = run_of([("ana", 5)], windows).plane("ana")
        assert labels(figure, "open") == ([] if windows is TRAILING else ["still open"])  # it ends with no record yet
        assert len(named(figure, "record").x) == 1
        assert not pieces(named(figure, "closed: the result"))
        with pytest.raises(UnknownRecord, match="has no key"):
            run_of([], windows).plane()
        empty = run_of([], windows).lanes()
        assert "the run holds no records" in heading(empty)
        with pytest.raises(UnknownRecord, match="not in the run"):
            run_of([("ana", 5)], windows).plane("dora")


def test_plane_of_a_part_and_of_windows_from_a_store() -> None:
    figure = run_of(TOY, HOPPING).plane("ana", from_offset=8, until_offset=16)
    assert "shown: offsets 8 to 16 of 0 to 21" in heading(figure)
    assert "what starts at the lower edge began earlier" in heading(figure)
    assert "goes on ↑" in labels(figure, "open")
    with sk.open_store("memory", "charts", of="windows") as store:
        run_of([("ana", 2), ("bo", 8)], TUMBLING, store=store)
        again = run_of([("bo", 9), ("ana", 12), ("bo", 40)], TUMBLING, store=store)
        figure = again.plane("ana")
        ((x, y),) = pieces(named(figure, "window, from"))
        assert min(y) < -1 and (min(x), max(x)) == (0, 20 * MINUTE)
        assert labels(figure, "closed") == ["<b>closed</b> · 1 record of this run"]
        assert any("1 record of this run" in text for text in named(again.lanes(), "window").hovertext)


# ---- the lanes ----------------------------------------------------------------------------------------------------


@of_each_kind
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lanes_are_the_table(windows: Any, theme: Any) -> None:
    run = run_of(TOY, windows)
    trace, table, figure = run.trace, run.table(), run.lanes(theme=theme)
    assert figure.layout.paper_bgcolor == PALETTES[theme].background
    assert len(pieces(named(figure, "closed window"))) == int((table["status"] == "closed").sum())
    assert len(pieces(named(figure, "open window"))) == int((table["status"] == "open").sum())
    said = sorted(int(re.findall(r"<br>(\d+) record", text)[0]) for text in named(figure, "window").hovertext)
    assert said == sorted(table["count"].tolist())
    drops = points(named(figure, "dropped"))
    assert sorted(ms for ms, _ in drops) == sorted(trace.batch.timestamp_ms[trace.decision == LATE].tolist())
    assert all(0.2 < y - round(y - 0.2) < 0.5 for _, y in drops)  # above the bars of its lane
    assert [x for x, _ in pieces(named(figure, "close line"))] == [[77 * MINUTE] * 2]
    assert [x for x, _ in pieces(named(figure, "stream time"))] == [[82 * MINUTE] * 2]
    for each in figure.data:
        assert not each.showlegend or len(each.x) > 0


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(3))
def test_bars_never_overlap(windows: Any, seed: int) -> None:
    figure = run_of(shuffled(seed), windows).lanes()
    unit = _unit(figure)
    found = pieces(named(figure, "closed window"), unit) + pieces(named(figure, "open window"), unit)
    bars = [(min(x), max(x), min(y), max(y)) for x, y in found]
    for number, a in enumerate(bars):
        for b in bars[number + 1 :]:
            apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 1e-9 or b[3] <= a[2] + 1e-9
            assert apart, (a, b)
    assert all(round(low) == round(high) for _, _, low, high in bars)  # each in its lane


def test_lanes_options_are_those_of_sessions() -> None:
    run = run_of(TOY, HOPPING)

    def names(**options: Any) -> list[str]:
        return [text[3:-4] for text in run.lanes(**options).layout.yaxis.ticktext]

    assert names(sort="key") == ["ana", "bo", "cy"]
    assert names(keys=["cy", "ana"]) == ["cy", "ana"]
    assert names(most=1) == ["ana"]
    assert "2 more keys not shown" in heading(run.lanes(most=1))
    part = run.lanes(start=0, end=35 * MINUTE)
    assert len(named(part, "dropped").x) == 1
    assert "the close line has passed all of it" in heading(part)
    with pytest.raises(InvalidArgument, match="sort must be a known choice"):
        run.lanes(sort="size")  # type: ignore[arg-type]


def test_lanes_of_several_partitions_have_no_common_clock() -> None:
    run = run_of([("ana", minute, minute % 2) for minute in range(0, 60, 3)], TUMBLING)
    figure = run.lanes()
    assert "2 partitions, each with a stream time of its own" in heading(figure)
    assert not named(figure, "close line").x
    assert list(figure.layout.yaxis.ticktext) == ["<b>ana · 0</b>", "<b>ana · 1</b>"]
    plane = run.plane("ana", partition=1)
    assert "partition 1 only: the key is also in 0" in heading(plane)


# ---- sorting windows into places ----------------------------------------------------------------------------------


def test_places_keep_windows_of_one_length_apart() -> None:
    starts, sliding = [0, 3, 5, 12, 14, 26], sk.SlidingWindows(time_difference_ms=10, grace=0)
    assert depth(starts, sliding.ends_ms) == 3 and depth([], sliding.ends_ms) == 1
    assert places(starts, sliding) == [0, 1, 2, 0, 1, 0]
    hopping = sk.TimeWindows(size_ms=10, advance_ms=4, grace=0)
    assert places([0, 4, 8, 12], hopping) == [0, 1, 2, 0]
    assert every_nth(np.array([0, 4, 8, 12]), 2, hopping).tolist() == [0, 2]
    assert every_nth(np.array([9, 0, 5]), 2, SLIDING).tolist() == [0, 1]


# ---- what is in the data stays text -------------------------------------------------------------------------------


@pytest.mark.slow
@of_each_kind
def test_hostile_keys_are_text(windows: Any) -> None:
    run = run_of([(key, minute) for minute in [*range(0, 60, 7), 3] for key in HOSTILE], windows)
    for figure in (*(run.plane(key, playback=True, clock=key) for key in HOSTILE[:3]), run.lanes(clock=HOSTILE[0])):
        assert_harmless(figure)


# ---- real data ----------------------------------------------------------------------------------------------------


def test_flights() -> None:
    plan = flights_by_route(group_in_ms)
    run = plan.windowed_by(sk.TimeWindows(size="1h", grace="10m")).count().run(sk.load_sample("flights"))
    figure = run.plane()
    assert "shown: offsets" in heading(figure)
    assert min(len(named(figure, name).x) for name in ("record", "dropped", "late, but")) > 0
    assert len(pieces(named(figure, "missing grace"), 1)) == len(named(figure, "dropped").x) <= MOST_ROWS
    board = run.lanes(width=1_120)
    assert heading(board).startswith("33 keys · 8,830 windows · 5,348 dropped ")
    assert len(named(board, "sizes").text) == len(named(board, "window").x)  # each bar has its number


def test_a_dropped_record_of_trailing_windows_is_never_called_kept() -> None:
    """Near the epoch its first window ends with no record of its own: it missed none that is a result."""
    rows = [("ada", 0, 0), ("ada", 40, 0), ("ada", 1, 0)]
    run = run_of(rows, TRAILING)
    assert run.metrics()["records-dropped"] == 1
    figure = run.plane("ada", partition=0)
    assert labels(figure, "dropped") == ["<b>dropped</b>: too late"]
    assert "late but kept" not in figure.to_json()
