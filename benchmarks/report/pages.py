"""Writes `benchmarks/RESULTS.md` and its charts, and the table of `docs/speed.md`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.model import OURS, Topic
from benchmarks.report.charts import Bar, bars
from benchmarks.report.figures import figures
from benchmarks.report.tables import growth, of_topic, seconds, summary, table
from benchmarks.running.kept import Kept
from benchmarks.running.machine import ROOT

BEGIN, END = "<!-- speed: made by make bench -->", "<!-- end of speed -->"
PAGE = ROOT / "docs" / "speed.md"
DRAWN = {"sessions": "Sessions: time, less is better", "windows": "Tumbling and hopping windows: time"}


def write(folder: Path, topics: Sequence[Topic], kept: Kept, made_on: dict[str, str]) -> Path:
    """The page of results and its charts, in a folder."""
    charts = folder / "charts"
    charts.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Results of the benchmarks\n",
        "Made by `make bench`. Each side runs in a process of its own; the sides of a case run one after another, in "
        "each of the rounds, and their results are compared. A time is that of the faster of the warm calls of a "
        "process, unless the section says otherwise; of the rounds the table has the median and the range. "
        "`times ours` is the time of a side divided by ours in the same round: below 1 the other one is faster. "
        "`cores` is the processor time divided by the time. Memory and cores are those of the process and of all that "
        "it started, such as Java for Spark and Flink, added up.\n",
        table(("made on", ""), {**made_on, "rounds": _rounds(topics, kept)}.items()),
    ]
    for topic in topics:
        if not any(figures(topic, case, kept) for case in topic.cases):
            continue
        parts += [f"## {topic.title}\n", f"{topic.words}\n"]
        if chart := _chart(topic, kept):
            (charts / f"{topic.name}.svg").write_text(chart)
            parts.append(f"![{topic.title}](charts/{topic.name}.svg)\n")
        parts.append(of_topic(topic, kept))
    page = folder / "RESULTS.md"
    page.write_text("\n".join(parts))
    return page


def _chart(topic: Topic, kept: Kept) -> str:
    if topic.growth:
        found = growth(topic, kept)
        drawn = [Bar("", title, times, f"{times:.1f}", True) for title, _, times, _ in found]
        return bars("Time a record, as a multiple of the base", drawn, line_at=1.0)
    if topic.name not in DRAWN:
        return ""
    drawn = [
        Bar(case.title, each.side, each.seconds, seconds(each.seconds), each.side == OURS)
        for case in topic.cases
        for each in figures(topic, case, kept)
    ]
    return bars(DRAWN[topic.name], drawn)


def _rounds(topics: Sequence[Topic], kept: Kept) -> str:
    """How many rounds the cases have."""
    counts = sorted(
        {each[0].rounds for topic in topics for case in topic.cases if (each := figures(topic, case, kept))}
    )
    words = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "no"
    return f"{words} round{'' if words == '1' else 's'}"


def publish(topics: Sequence[Topic], kept: Kept, made_on: dict[str, str]) -> None:
    """Puts the summary between the markers of the page that shows it."""
    made = f"Medians of {_rounds(topics, kept)} on {made_on['processor']}"
    link = "all figures, growth tables and versions are in [the results](../benchmarks/RESULTS.md)"
    text = f"{made}; {link}.\n\n{summary(topics, kept)}"
    PAGE.write_text(between_markers(PAGE.read_text(), text, PAGE.name))


def between_markers(page: str, text: str, name: str) -> str:
    """The page with `text` in the place of what is between its two markers.

    Raises:
        ValueError: A marker is missing, or is there twice.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"{name} must have {BEGIN!r} and, behind it, {END!r}, each once")
    before, behind = page.partition(BEGIN)[0], page.partition(END)[2]
    return f"{before}{BEGIN}\n{text}{END}{behind}"
