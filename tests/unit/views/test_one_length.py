"""A drop has one length, wherever it is told; and a grace that is said to keep it does."""

import html
import json
import re

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.durations import duration_ms
from sessionkit.report.page import Findings, page
from sessionkit.windows.contract import WindowKind

HOUR = 3_600_000
START = 1_700_000_000_000
LENGTH = re.compile(r"((?:\d[\d,]* (?:d|h|min|s|ms) ?)+)(?:short|too late)")
CURE = re.compile(r"(?:→|with grace) ((?:\d[\d,]* (?:d|h|min|s|ms) ?)+)")


WINDOWS = [sk.SessionWindows(inactivity_gap="30m", grace="1m"), sk.TimeWindows(size="1h", grace="1m")]


@pytest.mark.parametrize("windows", WINDOWS, ids=["sessions", "windows"])
@pytest.mark.parametrize("late_ms", [4 * HOUR + 43 * 60_000 + 12_345, 26 * HOUR + 1, 59 * 60_000 + 59_999, 61_001, 12])
def test_a_drop_has_one_length_and_the_grace_that_is_said_keeps_it(windows: WindowKind, late_ms: int) -> None:
    newest = START + 48 * HOUR
    data = pa.table({"user": ["ada", "bob", "ada"], "at": [START, newest, newest - 91 * 60_000 - late_ms]})
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows).count()
    run = plan.run(data)
    missing_ms = run.trace.missing_ms.item() if not isinstance(windows, sk.SessionWindows) else late_ms + HOUR
    pictures = {"plane": run.plane("ada"), "lanes": run.lanes(start=0)}
    texts = {name: json.dumps(json.loads(each.to_json()), ensure_ascii=False) for name, each in pictures.items()}
    texts["explain"] = str(run.explain(offset=2))
    lengths, graces = set(), set()
    for name, text in texts.items():
        said = html.unescape(text).replace("<br>", " ")
        lengths |= {each.strip() for each in LENGTH.findall(said)}
        graces |= {each.strip() for each in CURE.findall(said)}
        assert name == "explain" or LENGTH.search(said), name
    ((length,), (grace,)) = lengths, graces
    assert 0 <= duration_ms(length, "length") - missing_ms < 60_000
    assert not len(plan.with_windows(grace=grace).run(data).dropped())
    assert f"<b>+{length}</b>" in texts["lanes"] or "<b>+" not in texts["lanes"]
    if isinstance(windows, sk.SessionWindows):
        told = page(Findings(title="one drop", plan=plan, counts=run.metrics(), local=run))
        assert f">{length}<" in told and f">{grace}<" in told
