"""The report as one self-contained page: counts, sessions, pictures, dropped records, the plan. No network."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, Rows
from sessionkit.base.assets import read_asset, whole_page
from sessionkit.base.decisions import LATE, REASONS
from sessionkit.base.durations import MINUTE, grace_with, lacked, show_duration
from sessionkit.base.text import counted, escape_html, percent, plural
from sessionkit.errors import InvalidData, NotBuilt, shorten
from sessionkit.plan import Plan
from sessionkit.report.over_time import calendar, over_time
from sessionkit.report.parts import Bar, Cell, Files, Number, link, numbers, section, session_sections, table, tiles
from sessionkit.report.sessions import Sessions, are_sessions
from sessionkit.report.written import as_arrow
from sessionkit.run import Run
from sessionkit.views.over_time.finding import explaining, finding
from sessionkit.views.page.html import Page, script, style
from sessionkit.views.words import clock, records_dropped
from sessionkit.windows.missing_grace import missing_grace_ms

TITLE_LENGTH, MOST_OF_A_COMMAND = 120, 4_000
DROPS_OF_WINDOWS = "late records count once for each window that they missed"
WEIGHED_DROPS = 2_000  # more are sampled: each costs a replay of its key


@dataclass(frozen=True)
class Findings:
    """What the page is about."""

    title: str
    plan: Plan
    counts: dict[str, int]
    local: Run | None  # the run in this process; None where the records do not fit
    code: str | None = None  # how a person runs the plan on the same records; without it the plan alone
    files: Files = field(default_factory=dict)  # the tables beside the page, by name
    command: str | None = None  # that made the page, as it was typed
    systems: Sequence[tuple[str, str]] = ()  # what the plan ran on beside Python, and their versions
    remarks: Sequence[str] = ()  # about how the records were read

    @property
    def run(self) -> Run:
        """The run in this process, which the caller knows to be there."""
        assert self.local is not None
        return self.local

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.run)

    @cached_property
    def late(self) -> Rows:
        """Rows of the late records, of windows once for each that was missed; evenly thinned where there are many."""
        return self._all_late[:: self._step]

    @property
    def _step(self) -> int:
        return max(1, -(-len(self._all_late) // WEIGHED_DROPS))

    @property
    def weighs_all(self) -> bool:
        """Whether there are so few late records that the missing grace of each is worked out."""
        return len(self._all_late) <= WEIGHED_DROPS

    @cached_property
    def _all_late(self) -> Rows:
        trace = self.run._outcome.kept_trace
        return np.flatnonzero(trace.decision == LATE) if self.of_sessions else trace.missed.record

    @property
    def missed_start_ms(self) -> Longs | None:
        """The start of the window that each of `late` missed; None for sessions."""
        return None if self.of_sessions else self.run._outcome.kept_trace.missed.start_ms[:: self._step]

    @cached_property
    def dropped(self) -> pa.Table:
        """The dropped records; with the grace that they lacked only where there are not very many."""
        return as_arrow(self.run.dropped(missing_grace=self.weighs_all))

    @cached_property
    def missing_ms(self) -> Longs:
        """The grace that each of `late` lacked."""
        if not self.of_sessions:
            return self.run._outcome.kept_trace.missing_ms[:: self._step]
        if self.weighs_all:
            return self.dropped["missing_grace_ms"].drop_null().to_numpy()
        return missing_grace_ms(self.run._outcome.kept_trace, self.windows, self.late)

    def tables(self) -> dict[str, pa.Table]:
        """The tables beside the page, by name."""
        return {
            f"{self.windows.noun}s": self.sessions.table(),
            "keys": self.sessions.key_table(),
            "days": self.sessions.day_table(),
            "dropped": self.dropped,
            "changelog": as_arrow(self.run.changelog()),
        }

    @property
    def windows(self) -> Any:
        return self.plan._complete_windows

    @property
    def of_sessions(self) -> bool:
        """True if the page is about sessions, which grow and merge, and drop a record for good."""
        return are_sessions(self.plan)

    @property
    def timezone(self) -> str:
        """The zone in which times are told."""
        return (self.plan.source.timezone or "UTC") if self.local is None else self.local.timezone


def page(findings: Findings) -> str:
    """The whole page."""
    title = escape_html(shorten(findings.title, TITLE_LENGTH))
    run = findings.local
    cause = explaining(run) if run is not None and not run._lives else None
    said = "" if run is None or cause is None else run._late_remarks[run._late_causes.index(cause)]
    others = (remark for remark in findings.remarks if remark != said)  # the finding says that one
    remarks = (f"<p class='remark'>{escape_html(remark)}</p>" for remark in others)
    first, *ways = map(escape_html, finding(findings.counts, run))
    found = [f"<p class='finding'>{first}</p>", *(f"<p class='lead'>{way}</p>" for way in ways)]
    parts = [*found, _lead(findings), *remarks, _tiles(findings)]
    if run is None:
        parts.append("<p>The records are too many to draw: filter them, or use the Parquet files.</p>")
    elif len(run.trace):
        parts += [over_time(run), session_sections(findings.sessions, findings.files)]
        if len(run.trace.keys):
            parts.append(pictures(run))
        drops = [calendar(run), _grace_curve(findings), _drop_table(findings, run)]
        drops = drops if len(run.trace.dropped_at) else ["<p>None.</p>"]
        parts += [section("Dropped records", *drops), _losers(findings, run)]
    code = findings.code or f"import sessionkit as sk\n\nplan = {findings.plan!r}"
    said = "<p>The same plan runs in a notebook and on all of the data on Spark.</p>"
    beside = link(findings.files.get("changelog"), "The changelog as a file: what Kafka Streams would send on")
    parts.append(section("The plan", said, f"<pre tabindex='0'>{escape_html(code)}</pre>", beside))
    parts.append(_foot(findings))
    css, js = f"{read_asset('report/report.css')}{style()}", script()
    return whole_page(title, css, js, "".join(parts))


def _lead(findings: Findings) -> str:
    windows, source = findings.windows, findings.plan.source
    key = " and ".join(f"<b>{escape_html(shorten(name))}</b>" for name in source.keys)
    time, grace = f"<b>{escape_html(shorten(source.timestamp))}</b>", show_duration(windows.grace_ms)
    reach = f"<b>{show_duration(windows.reach_ms)}</b>"
    if findings.of_sessions:
        said = f"A session holds records with the same {key}, as long as no more than {reach} pass between one "
        said += f"{time} and the next."
    elif windows.advance_ms is not None:
        said = f"A window is {reach} long and holds records with the same {key}; by {time}, one begins every "
        said += f"<b>{show_duration(windows.advance_ms)}</b>."
    else:
        said = f"A window holds records with the same {key} whose {time} lie at most "
        said += f"<b>{show_duration(windows.time_difference_ms)}</b> apart: one ends with each record, and one begins "
        said += "just after it."
    by_time = source.sort and source.offset is None
    order = "in the order of their times" if by_time else "in the order in which they arrive"
    return (
        f"<p class='lead'>{said} It waits <b>{grace}</b> for late records; those that arrive even later are dropped. "
        f"Records are processed one by one, {order}, as Kafka Streams does. Times are in "
        f"{escape_html(findings.timezone)}.</p>"
    )


def _tiles(findings: Findings) -> str:
    counts = findings.counts
    records, dropped, drops = counts["process-total"], records_dropped(counts), counts["dropped-records-total"]
    share = f"{percent(dropped / records)} of all records" if records else ""
    noun = findings.windows.noun
    cells = [
        (records, "records", plural(len(findings.local.trace.keys), "key") if findings.local is not None else ""),
        (counts["windows"], f"{noun}s", f"{counts['windows-closed']:,} final, {counts['windows-open']:,} still open"),
    ]
    if findings.of_sessions:
        cells.append((counts["windows-merged"], "merges", "times a record joined two sessions"))
    if findings.of_sessions and findings.local is not None:
        cells.append((int(findings.local.trace.late_but_kept.sum()), "late but kept", "they touched an open session"))
    cells.append((dropped, "dropped", share))
    if not findings.of_sessions:
        cells.append((drops, "drops", DROPS_OF_WINDOWS))
    bad = [*(["dropped"] if dropped else []), *([counted("drops", drops)] if drops else [])]
    return tiles([(f"{number:,}", counted(name, number), words) for number, name, words in cells], "counts", bad=bad)


def _foot(findings: Findings) -> str:
    """The command that made the page, and the versions of what it ran on."""
    known = [("sessionkit", sys.modules["sessionkit"].__version__), ("Python", platform.python_version())]
    versions = ", ".join(
        f"{name} {version}" for name, version in [*known, ("Arrow", pa.__version__), *findings.systems]
    )
    command = escape_html(shorten(findings.command or "", MOST_OF_A_COMMAND))
    made = f"<p>This command made the page:</p><pre tabindex='0'>{command}</pre>" if command else ""
    return f"<footer>{made}<p>Made with {escape_html(versions)}.</p></footer>"


# ---- pictures of a report, with the sliders that move them


MOST_CARRIED = 100_000  # records, of whole keys


def pictures(run: Run) -> str:
    """The lanes of many keys and the history of one, which the reader's browser makes anew under other settings."""
    try:
        page = Page(run, None, MOST_CARRIED, hide_keys=False, call="the report")
    except (NotBuilt, InvalidData) as error:
        return section("What other settings would do", f"<p>{escape_html(error)}</p>")
    said = "".join(f"<p>{escape_html(sentence)}</p>" for sentence in [page.carries(), *page.left_out()])
    merged = ", and brackets below a bar are the sessions that it was merged from" if are_sessions(run.plan) else ""
    return section(
        "What other settings would do",
        "<p>Move a slider: every record is decided anew, in this page. In the lanes, crosses above were dropped"
        f"{merged}. In the history of one key, left of the amber "
        "line everything is closed, and the dotted piece at a red cross is the grace that the record lacked.</p>",
        said,
        page.content,
    )


# ---- the sections about dropped records


SHOWN_DROPS = 200
SHOWN_KEYS = 10
GRACE_STEPS_MS = tuple(
    minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 360, 720, 1_440, 2_880, 10_080)
)


def _grace_curve(findings: Findings) -> str:
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
                at(int(trace.stream_time_ms[row])) if trace.stream_time_ms[row] >= 0 else "before any",
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
    share = lost / np.maximum(total, 1)
    rows: list[list[Cell]] = [
        [shorten(trace.keys[key].as_py()), *numbers(int(lost[key]), int(total[key])), Number(percent(share[key]))]
        for key in worst
    ]
    name = "dropped" if findings.of_sessions else "missed a window"
    return section("Keys that lose the most records", table(["key", name, "records", "share"], rows))
