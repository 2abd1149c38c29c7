"""Where there is one of something, sentences say "1 session", never "1 sessions"."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.report.job import counted
from sessionkit.report.page import Findings, page
from sessionkit.views.page.html import Page, page_html

SESSIONS = sk.SessionWindows(inactivity_gap="10m", grace="1m")
START = 1_700_000_000_000
MANY_OF_ONE = re.compile(
    r"(?<![\d.,:+−-])\b1 (?!(?:is|was|has|waits|ms|s)\b)(?:more |other |dropped |late )?([a-z-]+s)\b"
)
MINUTES = {
    "one": [0], "one drop": [0, 100, 10], "one merge": [0, 15, 8], "one pause, twice at once": [0, 1],
    "one late, kept": [0, 100, 95, 100], "one closed": [0, 100],
}  # fmt: skip


def texts_of(run: sk.Run, plan: sk.Plan, data: Any) -> dict[str, str]:
    """All that a person reads of a run."""
    key = run.trace.keys[0].as_py()
    audit, longer = sk.audit(plan, data), plan.with_windows(grace="2h").run(data)
    found: dict[str, object] = {
        "summary": f"{run.summary()} {run!r} {run._repr_html_()}", "metrics": counted(plan, run.metrics()),
        "explain": " ".join(str(run.explain(offset=offset)) for offset in run.trace.batch.offset.tolist()),
        "audit": f"{audit!r} {audit.figure().to_json()}",
        "comparison": f"{run.compare(longer)!r} {run.compare(longer).figure().to_json()}",
        "calendar": f"{run.drop_calendar()!r} {run.drop_calendar().figure().to_json()}",
        "clock": f"{run.clock()!r} {run.clock().figure().to_json()}", "partitions": repr(run.partition_times()),
        "chains": " ".join(run.explain(offset=row).figure().to_json() for row in run.trace.batch.offset.tolist()),
        "emissions": f"{run.emissions(key)!r} {run.emissions(key).figure(over='stream_time').to_json()}",
        "open": f"{run.open_windows()!r} {run.open_windows().figure().to_json()}",
        "kinds": _kinds(data),
        "gap": repr(sk.suggest_gap(plan, data)), "grace": repr(sk.suggest_grace(plan, data)),
        "plane": run.plane(key).to_json(), "lanes": run.lanes().to_json(), "player": repr(sk.play(run, key)),
        "page": page_html(Page(run, None, 100, hide_keys=False), "one", plan).split("<h2>")[0].split("<script")[0],
    }  # fmt: skip
    if isinstance(plan.windows, sk.SessionWindows):
        found["report"] = page(Findings(title="one", plan=plan, counts=run.metrics(), local=run))
    for board in (sk.tune(plan, data), sk.play(run, key)):
        tiles = " ".join(f"{tile['shown']} {tile['name']} ; {tile['words']} ;" for tile in board.counts)
        found[f"tiles of {type(board).__name__}"] = f"{tiles} {json.dumps(board.words)} {json.dumps(board.figures)}"
    return {name: _plain(str(text)) for name, text in found.items()}


def _kinds(data: Any) -> str:
    beside = sk.kinds(data, "user", "at", unit="ms", inactivity_gap="10m", grace="1m")
    return f"{beside!r} {beside.figure().to_json()}"


def _plain(text: str) -> str:
    text = re.sub(
        r"<(style|script|pre)\b.*?</\1>", " ", text.replace("\\u003c", "<").replace("\\u003e", ">"), flags=re.DOTALL
    )
    return html.unescape(re.sub(r"</?(b|br|span|i)\b[^>]*>", " ", text))


@pytest.mark.thorough
@pytest.mark.parametrize("windows", [SESSIONS, sk.TimeWindows(size="10m", grace="1m")], ids=["sessions", "windows"])
@pytest.mark.parametrize("case", MINUTES)
def test_sentences_with_a_count_of_one_have_its_singular(case: str, windows: Any) -> None:
    at = [START + minute * 60_000 for minute in MINUTES[case]]
    data = pa.table({"user": ["ada"] * len(at), "at": at})
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows).count()
    texts = texts_of(plan.run(data), plan, data)
    wrong = {
        name: sorted({m.group(0) for m in MANY_OF_ONE.finditer(re.sub(r"\s+", " ", text))})
        for name, text in texts.items()
    }
    assert not {name: found for name, found in wrong.items() if found}


ROOT = Path(__file__).parents[3]
SOURCES = [path for folder in ("sessionkit", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
COUNTED = r"sessions|windows|records|flights|keys|rows|partitions|merges|drops|pauses|arrivals|results|files|marks"


def test_counts_in_sentences_are_written_with_plural() -> None:
    """`{len(x)} sessions` says "1 sessions"; what is never 1 stands here."""
    never_one = """{several} partitions {every:,} records {windows:,} windows
        {MOST_REASONS} drops {len(self.board.windows):,} windows {len(self._all_lives):,} windows {shown} keys
        {len(chosen)} partitions {SHOWN_KEYS} keys {len(found):,} records {rows:,} rows {len(part)} rows
        {SPARKS_OWN} partitions {len(found.contents):,} files {MOST_FILES:,} files {windows.name} windows
        {per_value:,.1f} rows {keys:,} keys {len(ahead):,} records {len(rows):,} records {self.pauses:,} pauses"""
    counts = re.compile(rf"\{{[^{{}}]*\}} (?:{COUNTED})\b")
    found = {
        each for path in SOURCES for each in counts.findall(path.read_text(encoding="utf-8")) if each not in never_one
    }
    assert not found
