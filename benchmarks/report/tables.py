"""Tables in Markdown. Text is escaped here, and nowhere else."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.model import OURS, Case, Topic
from benchmarks.report.figures import Figures, figures
from benchmarks.running.kept import Kept

FIRST_TOPICS = ("sessions", "first", "windows", "sliding")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns whose head begins with a space are aligned on the right."""
    lines = [_line(head), _line("--:" if name.startswith(" ") else "---" for name in head), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.strip().replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def of_topic(topic: Topic, kept: Kept) -> str:
    """The table of a topic."""
    if any(case.kind for case in topic.cases):
        return f"{spread(topic, kept)}\n{_sides(topic, kept)}"
    return _growth(topic, kept) if topic.growth else _sides(topic, kept)


def spread(topic: Topic, kept: Kept) -> str:
    """Of each kind of cases the median, the worst ratio, and the case that has it."""
    rows = []
    for kind in dict.fromkeys(case.kind for case in topic.cases):
        found = [
            (each[1].ratio, case.title)
            for case in topic.cases
            if case.kind == kind
            for each in [figures(topic, case, kept)]
            if each
        ]
        if found:
            (worst, title), middle = min(found), statistics.median(ratio for ratio, _ in found)
            shape = title.removeprefix(f"{kind}. ")
            rows.append((kind, f"{len(found)}", f"{middle:.1f}", f"{worst:.1f}", shape))
    return table(("what", " shapes", " times ours, median", " the worst", "the shape of the worst"), rows)


def _sides(topic: Topic, kept: Kept) -> str:
    compared = any(len(case.sides) > 1 for case in topic.cases)
    first = [" the first"] if topic.with_first else []
    last_head = [" peak MiB", " cores", " rows"]
    head = ["case", "side", " time", " range", *([" times ours"] if compared else []), *first, *last_head]
    rows = []
    for case in topic.cases:
        for number, each in enumerate(figures(topic, case, kept)):
            if each.seconds == math.inf:
                rows.append(("", each.side, seconds(each.seconds), *[""] * (len(head) - 3)))
                continue
            ratio = [] if not compared else [_ratio(each) if number else ""]
            span = f"{seconds(each.least)} to {seconds(each.most)}"
            last = (f"{each.peak_mib:,.0f}", f"{each.cores:.1f}", f"{each.rows:,}")
            title = _title(case) if number == 0 else ""
            first_call = [seconds(each.first)] if topic.with_first else []
            rows.append((title, each.side, seconds(each.seconds), span, *ratio, *first_call, *last))
    return table(head, rows)


def _title(case: Case) -> str:
    size = f", {case.records:,} records" if case.records and f"{case.records:,}" not in case.title else ""
    return f"{case.title}{size}"


def _ratio(each: Figures) -> str:
    return f"{each.ratio:.1f} ({each.least_ratio:.1f} to {each.most_ratio:.1f})"


def _growth(topic: Topic, kept: Kept) -> str:
    rows = [
        (title, f"{cost:.0f} ns", f"{times:.1f}", f"{found.rows:,}")
        for title, cost, times, found in growth(topic, kept)
    ]
    return table(("what is different", " a record", " times the base", " rows"), rows)


def growth(topic: Topic, kept: Kept) -> list[tuple[str, float, float, Figures]]:
    """(title, nanoseconds a record, times the base, figures) of each case of a growth table."""
    found = [(case, each[0]) for case in topic.cases if (each := figures(topic, case, kept))]
    if not found:
        return []
    base = found[0][1].seconds / found[0][0].records
    costs = [(case.title, each.seconds / case.records, each) for case, each in found]
    return [(title, cost * 1e9, cost / base, each) for title, cost, each in costs]


def summary(topics: Sequence[Topic], kept: Kept) -> str:
    """One line a case that has a peer: what docs/speed.md shows. A peer that wins is in it as any other."""
    rows = []
    for topic in topics:
        for case in topic.cases if topic.name in FIRST_TOPICS else ():
            if len(found := figures(topic, case, kept)) > 1:
                peers = "; ".join(f"{each.side} {seconds(each.seconds)}" for each in found[1:])
                fastest = min(found[1:], key=lambda each: each.ratio)
                section = "First call. " if case.first else "Sliding. " if case.a_row else ""
                row_note = " a row of the result" if case.a_row else ""
                ratio = f"{fastest.ratio:.1f} ({fastest.side}){row_note}"
                rows.append((section + _title(case), seconds(found[0].seconds), peers, ratio))
    return table(("what", f" {OURS}", "beside it", " times our time, the fastest of them"), rows)


def seconds(value: float) -> str:
    """A time with two or three digits that count; what ran out of memory has no end."""
    if value == math.inf:
        return "out of memory"
    if value < 0.1:
        return f"{value * 1e3:.1f} ms" if value < 0.01 else f"{value * 1e3:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
