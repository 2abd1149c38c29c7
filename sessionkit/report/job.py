"""The report of a file as a folder: the page and its tables, made in this process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from sessionkit.aggregations import built_ins as agg
from sessionkit.base.result_folders import Results
from sessionkit.base.text import percent, plural
from sessionkit.plan import Plan, group_by_key
from sessionkit.report.page import DROPS_OF_WINDOWS, Findings, page
from sessionkit.report.parts import MOST_ATTACHED, Attached
from sessionkit.report.sessions import are_sessions
from sessionkit.report.written import write_table
from sessionkit.run import Run
from sessionkit.views.words import records_dropped
from sessionkit.windows.session import SessionWindows

STEPS = 4  # that this job says


class Progress:
    """Says what is being done, a line a step, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, step: str) -> None:
        # The line in one piece: `print` writes its end by itself, and another thread's step can come between.
        sys.stdout.write(f"[{time.monotonic() - self._began:5.1f} s] {step}\n")
        sys.stdout.flush()


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a report is to be about, and where it goes."""

    plan: Plan
    records: Path | pa.Table
    out: Path
    title: str
    data: str  # the records as code: the path of the file, or a call
    remarks: Sequence[str] = ()
    command: str | None = None  # as it was typed
    wording: Callable[[str], str] = str  # of sentences that name arguments of Python
    file_format: str = "csv"  # of the tables beside the page; or "parquet"
    overwrite: bool = False  # also in a folder that has other things in it; these stay
    progress: Callable[[str], None] = field(default_factory=Progress)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables beside the page."""
        return (f"{self.plan._complete_windows.noun}s", "keys", "days", "dropped", "changelog")

    @property
    def code(self) -> str:
        """How a person runs the same plan on the same records."""
        return f"import sessionkit as sk\n\nplan = {self.plan!r}\nrun = plan.run({self.data})\nrun.table()"

    def place_for(self, names: Sequence[str]) -> Results:
        """The folder of results, into which these may be written."""
        return Results(self.out, names, alone=not self.overwrite)


def of_flights() -> Plan:
    """The plan of the demo: sessions of airline at airport."""
    return (
        group_by_key(
            "carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC", partition="partition", offset="offset"
        )
        .windowed_by(SessionWindows(inactivity_gap="1h", grace="30m"))
        .aggregate(count=agg.count(), mean_delay=agg.mean("dep_delay"))
    )


def make_report(report: Report) -> str:
    """Writes the page and its tables; what came of it, in words. Where writing fails, the folder is as it was."""
    files = {name: f"{name}.{report.file_format}" for name in report.tables}
    with report.place_for([*files.values(), "report.html"]) as results:
        report.progress("running the plan")
        run: Run = report.plan.run(report.records, frame="arrow")
        counts = run.metrics()
        remarks = list(dict.fromkeys([*report.remarks, *run._said]))
        report.progress("writing the tables")
        write_page(report, results, counts, run, files, remarks=remarks)
        results.place()
    report.progress("done")
    said = [remark for remark in remarks if remark not in report.remarks]
    tables, opened = ", ".join(str(report.out / name) for name in files.values()), report.out / "report.html"
    return "\n".join([*said, counted(report.plan, counts), tables, f"{opened}: open it in a browser"])


def write_page(
    report: Report, results: Results, counts: dict[str, int], run: Run | None, files: Mapping[str, str], **about: Any
) -> None:
    """Writes the page and, of a run in this process, the tables aside, to be placed together."""
    findings = Findings(
        report.title, report.plan, counts, run, report.code, command=report.command, wording=report.wording, **about
    )

    def write(name: str, table: pa.Table, path: Path) -> None:
        write_table(table, path)
        size, held = path.stat().st_size, sum(len(file.content or b"") for file in findings.files.values())
        content = path.read_bytes() if held + size <= MOST_ATTACHED else None
        findings.files[name] = Attached(files[name], size, content)

    if run is not None:
        tables = findings.tables()
        for name, file in files.items():
            results.write(file, partial(write, name, tables[name]))
    report.progress("drawing the report")
    text = page(findings)
    results.write("report.html", lambda path: path.write_text(text, encoding="utf-8"))


def counted(plan: Plan, counts: Mapping[str, int]) -> str:
    """A run's counts in one line."""
    records, dropped, noun = counts["process-total"], records_dropped(counts), plan._complete_windows.noun
    windows = f"{plural(records, 'record')}, {plural(counts['windows'], noun)} ({counts['windows-open']:,} still open)"
    said = f"{dropped:,} dropped" + (f" ({percent(dropped / records)})" if records else "")
    if not are_sessions(plan) and counts["dropped-late"]:
        return f"{windows}, {said}, {plural(counts['dropped-records-total'], 'drop')}: {DROPS_OF_WINDOWS}"
    return f"{windows}, {plural(counts['windows-merged'], 'merge')}, {said}"
