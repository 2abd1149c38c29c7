"""The pictures of the page that show when: bars over time, and the calendar of drops, as SVG in the page's colours."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.text import escape_html, plural
from sessionkit.report.parts import section
from sessionkit.run import Run
from sessionkit.views.drop_calendar.drop_calendar import DropCalendar
from sessionkit.views.over_time.buckets import buckets
from sessionkit.views.words import zone_named

ROOM, ROW, LEFT, ABOVE, APART = 900, 14, 84, 20, 84  # pixels: of the cells, a row, names of rows and columns
STEPS = 4  # colours of the calendar


def over_time(run: Run) -> str:
    """How many records and sessions there are over time, and where records were dropped."""
    found = buckets(run._outcome)
    if found is None or len(found.names) < 2:
        return ""
    rows = [(found.records, "record", "", ""), (found.windows, run._windows.noun, " that begin", "")]
    if found.dropped.any():
        rows.append((found.dropped, "record", _lost(DropCalendar(run.trace, run._windows)), " bad"))
    word = f"one {found.word}" if found.word.isalpha() else found.word
    bars = [_bars(counts, found.names, one, more, word, kind) for counts, one, more, kind in rows]
    middle = found.names[len(found.names) // 2] if len(found.names) > 4 else ""
    axis = "".join(f"<span>{escape_html(name)}</span>" for name in (found.names[0], middle, found.names[-1]))
    long = f"{'an' if found.word == 'hour' else 'a'} {found.word}" if found.word.isalpha() else f"{found.word} long"
    zone = zone_named(run.trace)
    said = [f"Each bar is {long}{f', with times in {zone}' if zone else ''}. A record counts at its own time."]
    if found.outside:
        verb = "lies far from all others and is" if found.outside == 1 else "lie far from all others and are"
        said.append(f"{plural(found.outside, 'record')} {verb} not drawn.")
    return section("Over time", f"<p>{escape_html(' '.join(said))}</p>", *bars, f"<div class='axis'>{axis}</div>")


def _bars(counts: Longs, names: list[str], one: str, more: str, word: str, kind: str) -> str:
    """A bar for each stretch of time that has any; each says its number on hover."""
    most, width = int(counts.max(initial=0)), 100 / len(names)
    drawn = []
    for place in np.flatnonzero(counts).tolist():
        height, at = max(100 * int(counts[place]) / most, 2), f"x='{place * width:.3f}%' width='{0.9 * width:.3f}%'"
        title = escape_html(f"{names[place]}: {plural(int(counts[place]), one)}{more}")
        drawn.append(f"<rect class='hit' {at} height='100%'><title>{title}</title></rect>")
        drawn.append(f"<rect {at} y='{100 - height:.1f}%' height='{height:.1f}%'></rect>")
    first = names[int(np.argmax(counts))]
    said = escape_html(f"{one.capitalize()}s{more}: at most {most:,} in {word}, first {first}" if most else "")
    return f"<h3>{said}</h3><svg class='bars{kind}' role='img' aria-label='{said}'>{''.join(drawn)}</svg>"


def calendar(run: Run) -> str:
    """When records were dropped: a cell for each hour or day, darker with more; "" where none of them has a time."""
    drops = DropCalendar(run.trace, run._windows)
    cells = drops._cells
    if cells is None:
        return ""
    records, dropped = drops._counts
    tops = _tops(int(dropped.max()))
    wide, shade = min(max(ROOM // cells.column_count, 5), 40), np.searchsorted(tops, dropped) + 1 + STEPS - len(tops)
    x, y = (LEFT + cells.column * wide).tolist(), (ABOVE + cells.row * ROW).tolist()
    size = f"width='{wide - 1}' height='{ROW - 1}'"
    grey = "".join(
        f"M{x[at]} {y[at]}h{wide - 1}v{ROW - 1}h{1 - wide}z" for at in np.flatnonzero((records > 0) & (dropped == 0))
    )
    drawn = [f"<path class='none' d='{grey}'></path>"]
    for at in np.flatnonzero(dropped).tolist():
        said = f"{cells.names[at]}: {dropped[at]:,} of {plural(int(records[at]), 'record')} {drops._verb}"
        title = f"<title>{escape_html(said)}</title>"
        drawn.append(f"<rect class='drop d{shade[at]}' x='{x[at]}' y='{y[at]}' {size}>{title}</rect>")
    drawn += [
        f"<text x='{LEFT - 6}' y='{ABOVE + at * ROW + 11}' class='end'>{escape_html(name)}</text>"
        for at, name in cells.row_ticks
    ]
    free = 0
    for at, name in cells.column_ticks:
        if (place := LEFT + at * wide) >= free:
            drawn.append(f"<text x='{place}' y='{ABOVE - 6}'>{escape_html(name.replace('<br>', ' '))}</text>")
            free = place + APART
    across, down = LEFT + cells.column_count * wide + APART, ABOVE + cells.row_count * ROW
    words = escape_html(" ".join(drops.words()))
    keys = [
        f"{low:,}" if low == high else f"{low:,} to {high:,}"
        for low, high in ((a + 1, b) for a, b in pairwise([0, *tops]))
    ]
    legend = "".join(f"<span><i class='d{n}'></i>{key}</span>" for n, key in enumerate(keys, 1 + STEPS - len(tops)))
    none = "<span><i class='none'></i>none</span>" if grey else ""
    return (
        f"<h3>When</h3><p>{words}</p><div class='wide' tabindex='0'><svg class='calendar' role='img' "
        f"aria-label='{words}' width='{across}' height='{down}'>{''.join(drawn)}</svg></div>"
        f"<p class='legend'>Records{_lost(drops)} in one {cells.unit}: {legend}{none}</p>"
    )


def _lost(drops: DropCalendar) -> str:
    """What the records did that are counted as lost, behind "records"."""
    return " dropped" if drops._verb == "dropped" else f" that {drops._verb}"


def _tops(most: int) -> list[int]:
    """The largest count of each colour, in steps that grow."""
    if most <= STEPS:
        return list(range(1, most + 1))
    return sorted({int(np.ceil(most ** (step / STEPS))) for step in range(1, STEPS)} | {most})
