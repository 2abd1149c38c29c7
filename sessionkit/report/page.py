"""The report as one self-contained page: counts, pictures, dropped records, the plan as code. No network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.assets import read_asset
from sessionkit.base.decisions import LATE, REASONS
from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_html, plural
from sessionkit.engine.missing_grace import missing_grace_ms
from sessionkit.errors import shorten
from sessionkit.plan import Plan
from sessionkit.run import Run
from sessionkit.views.charts.drawing.script import plotly_script
from sessionkit.views.words import clock
from sessionkit.windows.session import SessionWindows

SHOWN_DROPS = 200
SHOWN_KEYS = 10
MOST_DRAWN = 15_000  # records one by one: SVG takes a second
TITLE_LENGTH = 120
WEIGHED_DROPS = 2_000  # more are sampled: each costs a replay of its key
_MINUTE_MS = 60_000
GRACE_STEPS_MS = tuple(
    minutes * _MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 360, 720, 1_440, 2_880, 10_080)
)


@dataclass(frozen=True)
class Findings:
    """What the page is about. `local` is the run in this process, None where the records do not fit."""

    title: str
    plan: Plan
    counts: dict[str, int]
    local: Run | None

    @cached_property
    def late(self) -> npt.NDArray[np.intp]:
        """Rows of the late records, evenly thinned where there are very many."""
        assert self.local is not None
        rows = np.flatnonzero(self.local.trace.decision == LATE)
        return rows[:: max(1, -(-len(rows) // WEIGHED_DROPS))]

    @cached_property
    def missing_ms(self) -> npt.NDArray[np.int64]:
        """The grace that each of the late records lacked."""
        assert self.local is not None
        return missing_grace_ms(self.local.trace, self.windows, self.late)

    @property
    def windows(self) -> SessionWindows:
        """The windows of the plan: the page is about sessions."""
        windows = self.plan.windows
        assert isinstance(windows, SessionWindows)
        return windows


def page(findings: Findings) -> str:
    """The whole page."""
    title = escape_html(shorten(findings.title, TITLE_LENGTH))
    parts = [_lead(findings), _tiles(findings)]
    if findings.local is None:
        parts.append("<p>The records are too many to draw: filter them, or use the Parquet files.</p>")
    elif len(findings.local.trace):
        parts += [_pictures(findings), _dropped(findings, findings.local), _losers(findings.local)]
    parts.append(_code(findings.plan))
    style, script, plotly = read_asset("report.css"), read_asset("report.js"), plotly_script()
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{_policy((plotly, script), style)}'
        f"<title>{title}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{style}</style>{_empty_styles(plotly)}</head><body><main><h1>{title}</h1>{''.join(parts)}</main>"
        f"<script>{plotly}</script><script>{script}</script></body></html>"
    )


def _policy(scripts: Sequence[str], style: str) -> str:
    """What the page may do, for the browser to hold it to: run and wear what it brings along, and load nothing.

    plotly begins with an empty style, to which it adds rules, and draws density as an image that is written in place.
    """
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_digest, scripts)),
        "style-src": f"{_digest(style)} {_digest('')}",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    said = "; ".join(f"{name} {value}" for name, value in rules.items())
    return f'<meta http-equiv="Content-Security-Policy" content="{said}">'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _empty_styles(plotly: str) -> str:
    """Styles of maps, which plotly adds where they are not there; the policy would refuse them on the console."""
    names = re.findall(r'document\.getElementById\("([0-9a-f]{64})"\)', plotly)
    return "".join(f'<style id="{name}"></style>' for name in names)


def _lead(findings: Findings) -> str:
    windows, source = findings.windows, findings.plan.source
    key = " and ".join(f"<b>{escape_html(shorten(name))}</b>" for name in source.keys)
    gap, grace = show_duration(windows.inactivity_gap_ms), show_duration(windows.grace_ms)
    return (
        f"<p class='lead'>A session holds records with the same {key}, as long as no more than <b>{gap}</b> pass "
        f"between one <b>{escape_html(shorten(source.timestamp))}</b> and the next. It waits <b>{grace}</b> for late "
        "records; those that arrive even later are dropped. Records are processed one by one, in the order in which "
        f"they arrive, as Kafka Streams does. Times are in {escape_html(source.timezone or 'UTC')}.</p>"
    )


def _tiles(findings: Findings) -> str:
    counts = findings.counts
    records, dropped = counts["process-total"], counts["dropped-records-total"]
    share = f"{dropped / records:.2%} of all records" if records else ""
    tiles = [
        (records, "records", plural(len(findings.local.trace.keys), "key") if findings.local is not None else ""),
        (counts["windows"], "sessions", f"{counts['windows-closed']:,} final, {counts['windows-open']:,} still open"),
        (counts["windows-merged"], "merges", "times a record joined two sessions"),
    ]
    if findings.local is not None:
        tiles.append((int(findings.local.trace.late_but_kept.sum()), "late but kept", "they touched an open session"))
    tiles.append((dropped, "dropped", share))
    cells = "".join(
        f"<div class='tile{' bad' if name == 'dropped' and number else ''}'><b>{number:,}</b><span>{name}</span>"
        f"<small>{escape_html(words)}</small></div>"
        for number, name, words in tiles
    )
    return f"<section class='tiles' aria-label='counts'>{cells}</section>"


def _pictures(findings: Findings) -> str:
    run = findings.local
    assert run is not None
    key = run.most_eventful_key()
    label = escape_html(shorten(key))
    plane = {theme: run.plane(key, theme=theme) for theme in ("light", "dark")}
    lanes = {theme: run.lanes(theme=theme, most_drawn=MOST_DRAWN) for theme in ("light", "dark")}
    return (
        f"<section><h2>The key with the most to see: {label}</h2><p>Across: when a record happened. Upward: "
        "when it arrived. "
        "A session is a body that grows; left of the amber line everything is closed. The dotted piece at a "
        "red cross is "
        f"the grace that the record lacked.</p>{_figure('plane', f'History of key {label}', plane)}</section>"
        "<section><h2>Many keys side by side</h2><p>A lane for each key, those with the most drops first. "
        "Crosses above a lane "
        "were dropped, brackets below a bar are the sessions that it was merged from.</p>"
        f"{_figure('lanes', 'Sessions of many keys', lanes)}</section>"
    )


def _figure(name: str, label: str, themes: dict[str, Any]) -> str:
    """A place for the figure, and its data as JSON for both themes; the script draws the one that fits."""
    data = "".join(
        f'<script type="application/json" data-figure="{name}" data-theme="{theme}">{_inert(_drawn(figure))}</script>'
        for theme, figure in themes.items()
    )
    return f"<div class='figure' id='{name}' role='img' aria-label=\"{label}\"></div>{data}"


def _drawn(figure: Any) -> str:
    """The figure as JSON, without WebGL: its shaders are compiled by code made of text, which the page may not run."""
    content = json.loads(figure.to_json())
    for trace in content["data"]:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
    return json.dumps(content, separators=(",", ":"))


def _inert(text: str) -> str:
    """JSON that cannot end the element it stands in: the three characters of markup as their escapes."""
    return str(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _dropped(findings: Findings, run: Run) -> str:
    trace = run.trace
    rows = np.flatnonzero(~trace.accepted)
    if not len(rows):
        return "<section><h2>Dropped records</h2><p>None.</p></section>"
    return f"<section><h2>Dropped records</h2>{_grace_curve(findings)}{_drop_table(findings, run)}</section>"


def _grace_curve(findings: Findings) -> str:
    """What more grace would keep."""
    windows = findings.windows
    if not len(findings.late):
        return ""
    enough = findings.missing_ms + windows.grace_ms
    steps = [step for step in GRACE_STEPS_MS if step > windows.grace_ms]
    useful = [step for step in steps if (enough <= step).any()]
    kept = [(step, enough <= step) for step in useful[: _enough_steps(useful, enough)]]
    rows = "".join(
        f"<tr><th scope='row'>{show_duration(step)}</th><td class='bar'><svg aria-hidden='true'>"
        f"<rect width='{100 * mask.mean():.1f}%' height='10' rx='3'></rect></svg></td>"
        f"<td>{int(mask.sum()):,}</td><td>{mask.mean():.1%}</td></tr>"
        for step, mask in kept
    )
    longest = show_duration(int(enough.max()))
    return (
        f"<h3>How much grace would keep them</h3><p>Each late record is judged by itself. "
        f"All of them are kept with {longest}. "
        f"More grace also makes every result wait longer.</p>"
        "<table class='curve'><thead><tr><th scope='col'>grace</th><th scope='col'></th>"
        f"<th scope='col'>kept</th><th scope='col'>share</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _enough_steps(steps: Sequence[int], enough: npt.NDArray[np.int64]) -> int:
    """How many steps to show: up to the first that keeps all."""
    return next((i + 1 for i, step in enumerate(steps) if (enough <= step).all()), len(steps))


def _drop_table(findings: Findings, run: Run) -> str:
    trace, at = run.trace, clock(run.trace)
    windows = findings.windows
    missing = dict(zip(findings.late.tolist(), findings.missing_ms.tolist(), strict=True))
    dropped = np.flatnonzero(~trace.accepted)
    thinned = len(findings.late) < int((trace.decision == LATE).sum())
    rows = (findings.late if thinned else dropped)[:SHOWN_DROPS]
    several = len(trace.batch.partitions) > 1
    body = []
    for row in rows.tolist():
        code = int(trace.batch.key[row])
        key = "no key" if code < 0 else shorten(trace.keys[code].as_py())
        late = row in missing
        enough = show_duration(windows.grace_ms + missing[row]) if late else ""
        cells = [
            *([str(trace.batch.partitions[trace.batch.partition[row]])] if several else []),
            f"{trace.batch.offset[row]:,}",
            key,
            at(int(trace.batch.timestamp_ms[row])) if late else "",
            at(int(trace.stream_time_ms[row])),
            show_duration(missing[row]) if late else REASONS[int(trace.decision[row])].replace("_", " "),
            enough,
        ]
        body.append("<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in cells) + "</tr>")
    names = [
        *(["partition"] if several else []),
        "offset",
        "key",
        "event time",
        "arrived at stream time",
        "missing grace",
    ]
    head = "".join(f"<th scope='col'>{name}</th>" for name in [*names, "grace that keeps it"])
    shown = (
        f"The first {len(rows):,} of {plural(len(dropped), 'dropped record')}" if len(rows) < len(dropped) else "All"
    )
    sampled = ", one of several" if thinned else ""
    return (
        f"<h3>One by one</h3><p>{shown}{sampled}, in order of arrival. With the grace in the last column the "
        f"record is kept; with a millisecond less it is not.</p>"
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _losers(run: Run) -> str:
    trace = run.trace
    known = trace.batch.key >= 0
    size = len(trace.keys)
    lost = np.bincount(trace.batch.key[known & ~trace.accepted], minlength=size)
    total = np.bincount(trace.batch.key[known], minlength=size)
    worst = [key for key in np.argsort(-lost, kind="stable")[:SHOWN_KEYS].tolist() if lost[key]]
    if not worst:
        return ""
    rows = "".join(
        f"<tr><td>{escape_html(shorten(trace.keys[key].as_py()))}</td><td>{lost[key]:,}</td><td>{total[key]:,}</td>"
        f"<td>{lost[key] / total[key]:.1%}</td></tr>"
        for key in worst
    )
    return (
        "<section><h2>Keys that lose the most records</h2>"
        "<table><thead><tr><th scope='col'>key</th><th scope='col'>dropped</th>"
        f"<th scope='col'>records</th><th scope='col'>share</th></tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _code(plan: Plan) -> str:
    lines = f"import sessionkit as sk\n\nplan = {plan!r}"
    return (
        "<section><h2>The plan</h2><p>The same plan runs in a notebook and on all of the data on Spark.</p>"
        f"<pre tabindex='0'>{escape_html(lines)}</pre></section>"
    )
