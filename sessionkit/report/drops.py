"""The sections of the page about dropped records: which, by how much, and how much grace would keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.decisions import LATE, REASONS
from sessionkit.base.durations import grace_with, lacked, show_duration
from sessionkit.base.text import percent, plural
from sessionkit.errors import shorten
from sessionkit.report.parts import Bar, Cell, Number, link, numbers, section, table
from sessionkit.run import Run
from sessionkit.views.words import clock

if TYPE_CHECKING:
    from sessionkit.report.page import Findings

SHOWN_DROPS = 200
SHOWN_KEYS = 10
_MINUTE_MS = 60_000
GRACE_STEPS_MS = tuple(
    minutes * _MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 360, 720, 1_440, 2_880, 10_080)
)


def dropped_sections(findings: Findings, run: Run) -> str:
    """The grace that would keep late records, the dropped ones one by one, and the keys that lose the most."""
    if not len(run.trace.dropped_at):
        return section("Dropped records", "<p>None.</p>")
    return section("Dropped records", _grace_curve(findings), _drop_table(findings, run)) + _losers(findings, run)


def _grace_curve(findings: Findings) -> str:
    """What more grace would keep."""
    windows = findings.windows
    if not len(findings.late):
        return ""
    enough = findings.missing_ms + windows.grace_ms
    steps = [step for step in GRACE_STEPS_MS if step > windows.grace_ms]
    useful = [step for step in steps if (enough <= step).any()]
    up_to = next((i + 1 for i, step in enumerate(useful) if (enough <= step).all()), len(useful))
    kept = [(step, enough <= step) for step in useful[:up_to]]  # up to the first that keeps all
    rows: list[list[Cell]] = [
        [show_duration(step), Bar(float(mask.mean())), *numbers(int(mask.sum())), Number(percent(float(mask.mean())))]
        for step, mask in kept
    ]
    longest = show_duration(int(enough.max()))
    said = (
        f"<h3>How much grace would keep them</h3><p>Each late record is judged by itself. "
        f"{_once(findings)}All of them are kept with {longest}. More grace also makes every result wait longer.</p>"
    )
    return said + (table(["grace", "", "kept", "share"], rows) if rows else "")


def _drop_table(findings: Findings, run: Run) -> str:
    trace, at = run.trace, clock(run.trace)
    grace_ms, starts_ms, total = findings.windows.grace_ms, findings.missed_start_ms, len(trace.dropped_at)
    thinned = not findings.weighs_all
    others = [] if thinned else np.flatnonzero((trace.decision > LATE) & trace.is_record).tolist()
    places = [*enumerate(findings.late.tolist()), *((None, row) for row in others)]
    places = sorted(places, key=lambda each: each[1])[:SHOWN_DROPS]
    several = len(trace.batch.partitions) > 1
    body: list[list[Cell]] = []
    for place, row in places:
        code = int(trace.batch.key[row])
        late, missing_ms = place is not None, int(findings.missing_ms[place]) if place is not None else 0
        body.append(
            [
                *(numbers(int(trace.batch.partitions[trace.batch.partition[row]])) if several else []),
                *numbers(int(trace.batch.offset[row])),
                "no key" if code < 0 else shorten(trace.keys[code].as_py()),
                at(int(trace.batch.timestamp_ms[row])) if late else "",
                at(int(trace.stream_time_ms[row])),
                *([] if starts_ms is None else [at(int(starts_ms[place])) if late else ""]),
                lacked(missing_ms) if late else REASONS[int(trace.decision[row])].replace("_", " "),
                grace_with(grace_ms, missing_ms) if late else "",
            ]
        )
    missed = [] if starts_ms is None else ["start of the missed window"]
    names = ["offset", "key", "event time", "arrived at stream time", *missed, "missing grace", "grace that keeps it"]
    what = plural(total, "dropped record" if findings.of_sessions else "drop")
    shown = f"The first {len(places):,} of {what}" if len(places) < total else "All"
    sampled = ", one of several" if thinned else ""
    return (
        f"<h3>One by one</h3><p>{shown}{sampled}, in order of arrival. {_once(findings)}With the "
        "grace in the last column the record is kept; with a millisecond less it is not.</p>"
        + table([*(["partition"] if several else []), *names], body, scrolls=len(body) > 15)
        + link(findings.files.get("dropped"), f"{what} as a file")
    )


def _once(findings: Findings) -> str:
    return "" if findings.of_sessions else "A late record counts once for each window that it missed. "


def _losers(findings: Findings, run: Run) -> str:
    trace = run.trace
    known = trace.batch.key >= 0
    size = len(trace.keys)
    lost = np.bincount(trace.batch.key[known & (trace.late_for_some | ~trace.accepted)], minlength=size)
    total = np.bincount(trace.batch.key[known], minlength=size)
    worst = [key for key in np.argsort(-lost, kind="stable")[:SHOWN_KEYS].tolist() if lost[key]]
    if not worst:
        return ""
    rows: list[list[Cell]] = [
        [
            shorten(trace.keys[key].as_py()),
            *numbers(int(lost[key]), int(total[key])),
            Number(percent(lost[key] / total[key])),
        ]
        for key in worst
    ]
    name = "dropped" if findings.of_sessions else "missed a window"
    return section("Keys that lose the most records", table(["key", name, "records", "share"], rows))
