"""The pictures of the page that show when: bars over time as SVG, and the calendar of drops, in the page's colours."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.text import escape_html, plural
from sessionkit.report.parts import section
from sessionkit.run import Run
from sessionkit.views.drop_calendar.drop_calendar import DropCalendar
from sessionkit.views.over_time.buckets import Buckets, buckets
from sessionkit.views.words import zone_named

ROOM, WIDEST, LEAST = 870, 40, 5  # pixels: of all columns of the calendar, and of one
STEPS = 4  # colours of the calendar


def over_time(run: Run) -> str:
    """How many records and sessions there are over time, and where records were dropped."""
    found = buckets(run._outcome)
    if found is None or len(found.names) < 2:
        return ""
    rows = [(found.records, "record", "", ""), (found.windows, run._windows.noun, " that begin", "")]
    rows.append((found.dropped, "record", _lost(run.drop_calendar()), " bad"))
    bars = "".join(_bars(found, *row) for row in rows if row[0].any())
    names = dict.fromkeys((found.names[0], found.names[len(found.names) // 2], found.names[-1]))
    axis = "".join(f"<span>{escape_html(name)}</span>" for name in names)
    zone = zone_named(run.trace)
    said = (
        f"Each bar is {found.length} long{f', with times in {zone}' if zone else ''}. A record counts at its own time."
    )
    if found.outside:
        said += f" Not drawn: {plural(found.outside, 'record')} far from all others."
    return section("Over time", f"<p>{escape_html(said)}</p>", bars, f"<div class='axis'>{axis}</div>")


def _bars(found: Buckets, counts: Longs, one: str, more: str, kind: str) -> str:
    """A bar for each stretch of time that has any; each says its number on hover."""
    most, width = int(counts.max()), 100 / len(counts)
    drawn = ""
    for place in np.flatnonzero(counts).tolist():
        height, at = max(100 * int(counts[place]) / most, 2), f"x='{place * width:.3f}%' width='{0.9 * width:.3f}%'"
        title = escape_html(f"{found.names[place]}: {plural(int(counts[place]), one)}{more}")
        drawn += f"<rect class='hit' {at} height='100%'><title>{title}</title></rect>"
        drawn += f"<rect {at} y='{100 - height:.1f}%' height='{height:.1f}%'></rect>"
    first = f"{'first ' if np.count_nonzero(counts == most) > 1 else ''}{found.names[int(np.argmax(counts))]}"
    said = escape_html(f"{one.capitalize()}s{more}: at most {most:,} in {found.length} ({first})")
    return f"<h3>{said}</h3><svg class='bars{kind}' role='img' aria-label='{said}'>{drawn}</svg>"


def calendar(run: Run) -> str:
    """When records were dropped: a cell for each hour or day, darker with more; "" where none of them has a time."""
    drops = run.drop_calendar()
    cells = drops._cells
    if cells is None:
        return ""
    records, dropped = drops._counts
    tops = np.unique(np.round(dropped.max() ** (np.arange(1, STEPS + 1) / STEPS))).astype(np.int64)
    shade = np.searchsorted(tops, dropped) + 1 + STEPS - len(tops)
    worst = int(np.lexsort((dropped / np.maximum(records, 1), dropped))[-1])  # to which the page scrolls
    grid = [["<td></td>"] * cells.column_count for _ in range(cells.row_count)]
    for at in np.flatnonzero(records).tolist():
        said = f"{cells.names[at]}: {dropped[at]:,} of {plural(int(records[at]), 'record')} {drops._verb}"
        kind = f"d{shade[at]}" if dropped[at] else "none"
        grid[cells.row[at]][cells.column[at]] = (
            f"<td class='{kind}' title='{escape_html(said)}'{' id=worst' * (at == worst)}></td>"
        )
    ticks = pairwise([(-1, ""), *cells.column_ticks, (cells.column_count, "")])
    head = "".join(f"<th colspan='{behind - at}'>{name}</th>" for (at, name), (behind, _) in ticks)
    named = dict(cells.row_ticks)
    body = "".join(f"<tr><th>{named.get(row, '')}</th>{''.join(line)}</tr>" for row, line in enumerate(grid))
    words = escape_html(" ".join(drops.words()))
    keys = [
        f"{low + 1:,} to {high:,}" if low + 1 < high else f"{high:,}" for low, high in pairwise([0, *tops.tolist()])
    ]
    legend = "".join(f"<span><i class='d{n}'></i>{key}</span>" for n, key in enumerate(keys, 1 + STEPS - len(tops)))
    wide = min(max(ROOM // cells.column_count, LEAST), WIDEST)
    return (
        f"<h3>When</h3><p>{words}</p><div class='wide start' tabindex='0'><table class='calendar'>"
        f"<col><col span='{cells.column_count}' width='{wide}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"</table></div><p class='legend'>Records{_lost(drops)} in one {cells.unit}: {legend}"
        "<span><i class='none'></i>none</span></p>"
    )


def _lost(drops: DropCalendar) -> str:
    """What the records did that are counted as lost, behind "records"."""
    return " dropped" if drops._verb == "dropped" else f" that {drops._verb}"
