"""The report as one self-contained page: counts, sessions, pictures, dropped records, the plan. No network."""

from __future__ import annotations

import platform
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.advice.replay import Replay
from sessionkit.advice.suggest import gap_of
from sessionkit.base.arrays import Longs, arrow_array
from sessionkit.base.assets import read_asset, whole_page
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import ROUND_MS, grace_with, lacked, show_duration
from sessionkit.base.text import ALL, counted, escape_html, key_name, percent, plural
from sessionkit.errors import InvalidData, NotBuilt, shorten
from sessionkit.plan import Plan
from sessionkit.report.over_time import calendar, over_time
from sessionkit.report.parts import Bar, Cell, Files, Number, link, section, session_sections, table, tiles
from sessionkit.report.sessions import Sessions, are_sessions
from sessionkit.report.written import as_arrow
from sessionkit.run import Run
from sessionkit.views.dropped import dropped_table
from sessionkit.views.over_time.finding import can_replay, explaining, finding, missed
from sessionkit.views.page.html import Page, script, style
from sessionkit.views.tables import frame_of, losses
from sessionkit.views.words import clock, records_dropped
from sessionkit.windows.contract import do_overlap
from sessionkit.windows.missing_grace import missing_grace_ms

TITLE_LENGTH, MOST_OF_A_COMMAND = 120, 4_000
DROPS_OF_WINDOWS = "late records count once for each window that they missed"
WEIGHED_DROPS = 2_000  # of more, some are looked at one by one: each costs a replay of its key
MOST_PAUSES = 1_000_000  # are sorted in less than a second
LEAST_LOST, MUCH_MORE = 10, 2.0  # records, and how many times the share of the others: a key that is named first


@dataclass
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
    wording: Callable[[str], str] = str  # how sentences name the arguments of Python: on a page of a command, options

    @property
    def run(self) -> Run:
        """The run in this process, which the caller knows to be there."""
        assert self.local is not None
        return self.local

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.run)

    @property
    def weighs_all(self) -> bool:
        """Whether the missing grace of each late record is worked out, and not only that of some."""
        return not self.of_sessions or self.run._outcome.missed_count <= WEIGHED_DROPS

    @cached_property
    def dropped(self) -> pa.Table:
        """The dropped records, with times in milliseconds."""
        return dropped_table(self.run.trace, self.windows, missing_grace=self.weighs_all)

    @cached_property
    def missing_ms(self) -> Longs:
        """The grace that each late record lacked, evenly thinned where there are many."""
        if self.weighs_all:
            return self.dropped["missing_grace_ms"].drop_null().to_numpy()
        late = np.flatnonzero(self.run.trace.late_for_some)
        return missing_grace_ms(self.run._outcome.kept_trace, self.windows, late[:: -(-len(late) // WEIGHED_DROPS)])

    def tables(self) -> dict[str, pa.Table]:
        """The tables beside the page, by name."""
        return {
            f"{self.windows.noun}s": self.sessions.table(),
            "keys": self.sessions.key_table(),
            "days": self.sessions.day_table(),
            "dropped": as_arrow(frame_of(self.dropped, self.run._outcome.batch)),
            "changelog": as_arrow(self.run.changelog()),
        }

    @property
    def windows(self) -> Any:
        return self.plan._complete_windows

    @property
    def of_sessions(self) -> bool:
        """True if the page is about sessions, which grow and merge, and drop a record for good."""
        return are_sessions(self.plan)


def page(findings: Findings) -> str:
    """The whole page."""
    title = escape_html(shorten(findings.title, TITLE_LENGTH))
    run = findings.local
    cause = explaining(run)
    others = (remark for remark in findings.remarks if cause is None or cause.why not in remark)  # the finding says it
    remarks = (f"<p class='remark'>{escape_html(findings.wording(remark))}</p>" for remark in others)
    more = [*_first_loser(findings), *_gap(findings)] if run is not None and len(run.trace.keys) else []
    first, *ways = (escape_html(findings.wording(said)) for said in [*finding(findings.counts, run), *more])
    found = [f"<p class='finding'>{first}</p>", *(f"<p class='lead'>{way}</p>" for way in ways)]
    parts = [*found, _lead(findings), *remarks, _tiles(findings)]
    if run is None:
        parts.append("<p>The records are too many to draw: filter them, or use the Parquet files.</p>")
    elif len(run.trace):
        parts += [over_time(run), session_sections(findings.sessions, findings.files)]
        if len(run.trace.keys):
            parts.append(pictures(run))
        drops = [calendar(run), _grace_curve(findings), _drop_table(findings, run)] if len(findings.dropped) else []
        parts += [section("Dropped records", *(drops or ["<p>None.</p>"])), _losers(run)]
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
    same = f"records with the same {key}" if key else ALL
    time, grace = f"<b>{escape_html(shorten(source.timestamp))}</b>", show_duration(windows.grace_ms)
    reach = f"<b>{show_duration(windows.reach_ms)}</b>"
    if findings.of_sessions:
        said = f"A session holds {same}, as long as no more than {reach} pass between one "
        said += f"{time} and the next."
    elif windows.advance_ms is not None:
        said = f"A window is {reach} long and holds {same}; by {time}, one begins every "
        said += f"<b>{show_duration(windows.advance_ms)}</b>."
        if offset_ms := windows.arguments()[1].get("offset_ms"):
            said += f" Windows are moved by <b>{show_duration(offset_ms)}</b>."
    elif not do_overlap(windows):
        said = f"A window holds {same}; by {time}, windows are "
        said += f"<b>{escape_html(windows.in_words())}</b>."
    else:
        said = f"A window holds {same} whose {time} lie at most "
        said += f"<b>{show_duration(windows.time_difference_ms)}</b> apart: one ends with each record, and one begins "
        said += "just after it."
    by_time = source.sort and source.offset is None
    order = "in the order of their times" if by_time else "in the order in which they arrive"
    zone = (source.timezone or "UTC") if findings.local is None else findings.local.timezone
    waits = f"It waits <b>{grace}</b> for late records; those that arrive even later are dropped."
    waits = waits if windows.grace_ms else f"With a grace of <b>{grace}</b> it waits for no late records."
    return (
        f"<p class='lead'>{said} {waits} Records are processed one by one, {order}, as Kafka Streams does. "
        f"Times are in {escape_html(zone)}.</p>"
    )


def _first_loser(findings: Findings) -> list[str]:
    """The key that loses a much larger share of its records than the others, in a sentence."""
    group = findings.sessions.by_key
    lost, total = group.dropped, group.dropped + group.records
    shares = np.where(lost >= LEAST_LOST, lost / np.maximum(total, 1), 0)
    at = int(shares.argmax())
    others = (lost.sum() - lost[at]) / max(int(total.sum() - total[at]), 1)
    if len(lost) < 2 or shares[at] <= MUCH_MORE * others:
        return []
    name = shorten(findings.run.trace.keys[int(group.code[at])].as_py())
    said = f"Key {name} loses most: {percent(shares[at])} of its {plural(int(total[at]), 'record')} were dropped"
    return [f"{said}, and {percent(others)} of the others."]


def _gap(findings: Findings) -> list[str]:
    """What the pauses between records say of the gap."""
    gap_ms, records = getattr(findings.windows, "inactivity_gap_ms", None), len(findings.run.trace)
    if gap_ms is None or records > MOST_PAUSES:
        return []
    found = gap_of(Replay(findings.run._outcome.batch), ", ".join(findings.plan.source.keys))
    return [found._judged(gap_ms, in_order=not findings.counts["dropped-late"])]


def _tiles(findings: Findings) -> str:
    counts, run, noun = findings.counts, findings.local, findings.windows.noun
    records, dropped = counts["process-total"], records_dropped(counts)
    cells = [
        (records, "records", plural(len(run.trace.keys), "key") if run is not None else ""),
        (counts["windows"], f"{noun}s", f"{counts['windows-closed']:,} final, {counts['windows-open']:,} still open"),
    ]
    if findings.of_sessions:
        cells.append((counts["windows-merged"], "merges", "times a record joined two sessions"))
    if findings.of_sessions and run is not None:
        cells.append((int(run.trace.late_but_kept.sum()), "late but kept", "they touched an open session"))
    cells.append((dropped, "dropped", f"{percent(dropped / records)} of all records" if records else ""))
    if not findings.of_sessions and counts["dropped-late"]:
        cells.append((counts["dropped-records-total"], "drops", DROPS_OF_WINDOWS))
    bad = [counted(name, number) for number, name, _ in cells if number and name in ("dropped", "drops")]
    return tiles([(f"{number:,}", counted(name, number), words) for number, name, words in cells], "counts", bad=bad)


def _foot(findings: Findings) -> str:
    """The command that made the page, and the versions of what it ran on."""
    known = [("sessionkit", sys.modules["sessionkit"].__version__), ("Python", platform.python_version())]
    known += [("Arrow", pa.__version__), *findings.systems]
    versions = escape_html(", ".join(f"{name} {version}" for name, version in known))
    command = escape_html(shorten(findings.command or "", MOST_OF_A_COMMAND))
    made = f"<p>This command made the page:</p><pre tabindex='0'>{command}</pre>" if command else ""
    return f"<footer>{made}<p>Made with {versions}.</p></footer>"


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
LEAST_STEP = 0.01  # of the late records: what a row of the table of graces keeps more than the row above it


def _grace_curve(findings: Findings) -> str:
    """How many of the late records longer graces keep, up to the first round one that keeps all."""
    run, grace_ms, late = findings.run, findings.windows.grace_ms, findings.run._outcome.missed_count
    if not late:
        return ""
    is_replayed = not findings.weighs_all and can_replay(run)
    enough = np.empty(0, np.int64) if is_replayed else np.sort(findings.missing_ms) + grace_ms
    looked_at, rows, before, step = late if is_replayed else len(enough), list[list[Cell]](), 0, 0
    for step in ROUND_MS[bisect_right(ROUND_MS, grace_ms) :]:
        kept = late - missed(run, step) if is_replayed else int(np.searchsorted(enough, step, "right"))
        if kept - before >= LEAST_STEP * looked_at or kept == looked_at:
            before, share = kept, kept / looked_at
            rows.append([show_duration(step), Bar(share), kept, Number(percent(share))])
        if kept == looked_at:
            break
    those = f"Of {late:,} late records, {looked_at:,} were looked at, evenly spread; these"
    grace = show_duration(step if is_replayed else int(enough.max()))
    said = (
        f"<h3>How much grace would keep them</h3><p>Each late record is judged by itself. {_once(findings)}"
        f"{'All of them' if looked_at == late else those} are kept with a grace of {grace}. More grace also makes "
        "every result wait longer.</p>"
    )
    return said + table(["grace", "", "kept", "share"], rows)


def _drop_table(findings: Findings, run: Run) -> str:
    at, grace_ms, total = clock(run.trace), findings.windows.grace_ms, len(findings.dropped)
    several = len(run.trace.batch.partitions) > 1
    body: list[list[Cell]] = []
    for each in _shown_drops(findings, run).to_pylist():
        missing_ms, late = each["missing_grace_ms"], each["missing_grace_ms"] is not None
        body.append(
            [
                *([each["partition"]] if several else []),
                each["offset"],
                "no key" if each["key"] is None else key_name(each["key"]),
                at(each["timestamp_ms"]) if late else "",
                at(each["stream_time_ms"]) if each["stream_time_ms"] >= 0 else "before any",
                *([] if findings.of_sessions else [at(each["window_start_ms"]) if late else ""]),
                lacked(missing_ms) if late else each["reason"].replace("_", " "),
                grace_with(grace_ms, missing_ms) if late else "",
            ]
        )
    names = [*(["partition"] if several else []), "offset", "key", "event time", "arrived at stream time"]
    names += [] if findings.of_sessions else ["start of the missed window"]
    names += ["missing grace", "grace that keeps it"]
    what = plural(total, "dropped record" if findings.of_sessions else "drop")
    return (
        f"<h3>One by one</h3><p>{f'The first {len(body):,} of {what}' if len(body) < total else 'All'}, in order of "
        f"arrival. {_once(findings)}The grace in the last column, rounded up, keeps the record.</p>"
        + table(names, body, scrolls=len(body) > 15)
        + link(findings.files.get("dropped"), f"{what} as a file")
    )


def _shown_drops(findings: Findings, run: Run) -> pa.Table:
    """The first drops, each late one with the grace that it lacked."""
    drops = findings.dropped.slice(0, SHOWN_DROPS)
    if findings.weighs_all:
        return drops
    trace, at = run._outcome.kept_trace, run.trace.dropped_at[:SHOWN_DROPS]
    late, missing_ms = trace.decision[at] == LATE, np.zeros(len(at), np.int64)
    missing_ms[late] = missing_grace_ms(trace, findings.windows, at[late])
    return drops.append_column("missing_grace_ms", arrow_array(missing_ms, ~late))


def _once(findings: Findings) -> str:
    return "" if findings.of_sessions else "A late record counts once for each window that it missed. "


def _losers(run: Run) -> str:
    rows: list[list[Cell]] = [
        [key_name(each["key"]), each["late"], each["records"], Number(percent(each["share"]))]
        for each in losses(run.trace, SHOWN_KEYS).to_pylist()
        if each["late"]
    ]
    return (
        section("Keys that lose the most records", table(["key", "dropped", "records", "share"], rows)) if rows else ""
    )
