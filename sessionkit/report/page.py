"""The report as one self-contained page: counts, sessions, pictures, dropped records, the plan. No network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.assets import policy, read_asset
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import show_duration
from sessionkit.base.text import counted, escape_html, percent, plural
from sessionkit.engine.missing_grace import missing_grace_ms
from sessionkit.errors import shorten
from sessionkit.plan import Plan
from sessionkit.report.drops import dropped_sections
from sessionkit.report.parts import link, section, tiles
from sessionkit.report.pictures import pictures
from sessionkit.report.session_parts import session_sections
from sessionkit.report.sessions import Sessions
from sessionkit.report.written import as_arrow
from sessionkit.run import Run
from sessionkit.views.page.html import script, style
from sessionkit.windows.session import SessionWindows

TITLE_LENGTH = 120
WEIGHED_DROPS = 2_000  # more are sampled: each costs a replay of its key


@dataclass(frozen=True)
class Findings:
    """What the page is about. `local` is the run in this process, None where the records do not fit.

    Args:
        code: how a person runs the plan on the same records; without it the plan alone.
        files: the tables beside the page, by name.
        remarks: what is to be said about how the records were read.
    """

    title: str
    plan: Plan
    counts: dict[str, int]
    local: Run | None
    code: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    @property
    def run(self) -> Run:
        """The run in this process, which the caller knows to be there."""
        assert self.local is not None
        return self.local

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of the run."""
        return Sessions(self.run)

    @cached_property
    def late(self) -> npt.NDArray[np.intp]:
        """Rows of the late records, evenly thinned where there are very many."""
        return self._all_late[:: max(1, -(-len(self._all_late) // WEIGHED_DROPS))]

    @property
    def weighs_all(self) -> bool:
        """Whether there are so few late records that the missing grace of each is worked out."""
        return len(self._all_late) <= WEIGHED_DROPS

    @cached_property
    def _all_late(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.run.trace.decision == LATE)

    @cached_property
    def dropped(self) -> pa.Table:
        """The dropped records; with the grace that they lacked only where there are not very many."""
        return as_arrow(self.run.dropped(missing_grace=self.weighs_all))

    @cached_property
    def missing_ms(self) -> npt.NDArray[np.int64]:
        """The grace that each of the late records lacked."""
        if self.weighs_all:
            return self.dropped["missing_grace_ms"].drop_null().to_numpy()
        return missing_grace_ms(self.run.trace, self.windows, self.late)

    def tables(self) -> dict[str, pa.Table]:
        """The tables beside the page, by name."""
        return {
            "sessions": self.sessions.table(),
            "keys": self.sessions.key_table(),
            "days": self.sessions.day_table(),
            "dropped": self.dropped,
            "changelog": as_arrow(self.run.changelog()),
        }

    @property
    def windows(self) -> SessionWindows:
        """The windows of the plan: the page is about sessions."""
        windows = self.plan.windows
        assert isinstance(windows, SessionWindows)
        return windows

    @property
    def timezone(self) -> str:
        """The zone in which times are told."""
        return (self.plan.source.timezone or "UTC") if self.local is None else self.local.timezone


def page(findings: Findings) -> str:
    """The whole page."""
    title = escape_html(shorten(findings.title, TITLE_LENGTH))
    run = findings.local
    parts = [_lead(findings), _remarks(findings), _tiles(findings)]
    if run is None:
        parts.append("<p>The records are too many to draw: filter them, or use the Parquet files.</p>")
    elif len(run.trace):
        parts.append(session_sections(findings.sessions, findings.files))
        if len(run.trace.keys):
            parts.append(pictures(run))
        parts.append(dropped_sections(findings, run))
    parts.append(_code(findings))
    css, js = f"{read_asset('report.css')}{style()}", script()
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy([js], [css])}'
        f"<title>{title}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{css}</style></head><body><main><h1>{title}</h1>{''.join(parts)}</main>"
        f"<script>{js}</script></body></html>"
    )


def _lead(findings: Findings) -> str:
    windows, source = findings.windows, findings.plan.source
    key = " and ".join(f"<b>{escape_html(shorten(name))}</b>" for name in source.keys)
    gap, grace = show_duration(windows.inactivity_gap_ms), show_duration(windows.grace_ms)
    by_time = source.sort and source.offset is None
    order = "in the order of their times" if by_time else "in the order in which they arrive"
    return (
        f"<p class='lead'>A session holds records with the same {key}, as long as no more than <b>{gap}</b> pass "
        f"between one <b>{escape_html(shorten(source.timestamp))}</b> and the next. It waits <b>{grace}</b> for late "
        f"records; those that arrive even later are dropped. Records are processed one by one, {order}, as Kafka "
        f"Streams does. Times are in {escape_html(findings.timezone)}.</p>"
    )


def _remarks(findings: Findings) -> str:
    return "".join(f"<p class='remark'>{escape_html(remark)}</p>" for remark in findings.remarks)


def _tiles(findings: Findings) -> str:
    counts = findings.counts
    records, dropped = counts["process-total"], counts["dropped-records-total"]
    share = f"{percent(dropped / records)} of all records" if records else ""
    cells = [
        (records, "records", plural(len(findings.local.trace.keys), "key") if findings.local is not None else ""),
        (counts["windows"], "sessions", f"{counts['windows-closed']:,} final, {counts['windows-open']:,} still open"),
        (counts["windows-merged"], "merges", "times a record joined two sessions"),
    ]
    if findings.local is not None:
        cells.append((int(findings.local.trace.late_but_kept.sum()), "late but kept", "they touched an open session"))
    cells.append((dropped, "dropped", share))
    bad = ["dropped"] if dropped else []
    return tiles([(f"{number:,}", counted(name, number), words) for number, name, words in cells], "counts", bad=bad)


def _code(findings: Findings) -> str:
    code = findings.code or f"import sessionkit as sk\n\nplan = {findings.plan!r}"
    return section(
        "The plan",
        "<p>The same plan runs in a notebook and on all of the data on Spark.</p>",
        f"<pre tabindex='0'>{escape_html(code)}</pre>",
        link(findings.files.get("changelog"), "The changelog as a file: what Kafka Streams would send on"),
    )
