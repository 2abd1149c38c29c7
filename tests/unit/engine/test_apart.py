"""Sessions that stay apart from another within the gap, as that had closed before a late record came."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.advice.replay import Replay
from sessionkit.engine import bands, kernel_run
from sessionkit.engine.apart import Apart, sessions_apart
from tests.contract.conftest import _registered  # noqa: F401  the examples are kinds, too
from tests.contract.kinds import KINDS, plan_over, records
from tests.kinds import group_in_ms
from tests.shapes import late_beats

PLAN = group_in_ms("user")
pytestmark = pytest.mark.lengthy
BEATS = PLAN.windowed_by(sk.SessionWindows(inactivity_gap="90s", grace="0s")).count()
WORDS = (
    "stay apart from another of the same key within the gap of 1 min 30 s, as that had closed before a late record came"
)


def apart(plan: sk.Plan, data: Any, **options: Any) -> Apart:
    run = plan.run(data, **options)
    return sessions_apart(run._outcome, run._windows)


def test_two_sessions_within_a_gap_of_each_other_are_counted_with_the_grace_that_joins_them() -> None:
    """The example of the docs: a gap of 50, no grace, and 1000, 1051, 1001 are two sessions."""
    data = pd.DataFrame({"user": "a", "at": [1_000, 1_051, 1_001]})
    plan = PLAN.windowed_by(sk.SessionWindows(inactivity_gap_ms=50, grace=0)).count()
    assert len(plan.run(data).table()) == 2
    assert apart(plan, data) == Apart(1, 1)
    assert apart(plan, data, trace=False) == Apart(1)
    assert apart(plan.with_windows(grace_ms=1), data) == Apart()


@pytest.mark.parametrize("name", ["sessions", "shifts"])
def test_a_grace_that_is_named_joins_them_and_a_millisecond_less_does_not(name: str) -> None:
    seen = 0
    windows: Any = KINDS[name]
    for seed in range(20):
        plan, data = plan_over(windows).with_windows(grace_ms=0), records(seed, 200)
        found = apart(plan, data)
        rows = plan.run(data).table().to_pylist()
        apart_ones = 0
        for place in {(row["partition"], row["key"]) for row in rows}:
            mine = [row for row in rows if (row["partition"], row["key"]) == place]
            mine.sort(key=lambda row: row["window_start_ms"])
            reached = -1
            for row in mine:
                apart_ones += row["window_start_ms"] <= reached
                reach = windows.reach_of_ms(row["window_start_ms"], row["window_end_ms"])[1]
                reached = max(reached, reach)
        assert found.sessions == apart_ones == apart(plan, data, trace=False).sessions
        replay = Replay.of(plan, data)
        joined = replay.joined(plan)
        assert replay.counts(plan._complete_windows).apart == found.sessions
        assert joined.sessions == found.sessions
        if found.grace_ms is not None and joined.grace_ms is not None:
            seen += 1
            assert 0 < found.grace_ms <= joined.grace_ms
            assert apart(plan.with_windows(grace_ms=joined.grace_ms), data) == Apart()
            less = plan.with_windows(grace_ms=found.grace_ms - 1)
            assert apart(less, data).sessions > 0
    assert seen > 10


def test_a_run_does_not_promise_that_its_grace_joins_what_more_grace_keeps() -> None:
    """It said "a grace of 4 h 10 min joins them", and with that grace 6 other sessions stayed apart."""
    windows: Any = KINDS["sessions"]
    others = 0
    for seed in range(20):
        plan, data = plan_over(windows).with_windows(grace_ms=0), records(seed, 200)
        run = plan.run(data)
        if (named_ms := apart(plan, data).grace_ms) is None:
            continue
        more = plan.with_windows(grace_ms=named_ms)
        others += apart(more, data).sessions > 0
        assert run.metrics()["dropped-late"] > 0
        assert "It also keeps more records, whose sessions may stay apart in turn; sk.suggest_grace " in repr(run)
        now: dict[Any, list[tuple[int, int]]] = {}
        for row in more.run(data).table().to_pylist():
            now.setdefault((row["partition"], row["key"]), []).append((row["window_start_ms"], row["window_end_ms"]))
        for one, other in itertools.combinations(run.table().to_pylist(), 2):
            place = one["partition"], one["key"]
            starts, ends = ([row[f"window_{side}_ms"] for row in (one, other)] for side in ("start", "end"))
            if place == (other["partition"], other["key"]) and max(starts) - min(ends) <= windows.inactivity_gap_ms:
                assert any(start <= min(starts) and max(ends) <= end for start, end in now[place])
    assert others


def test_sessions_of_a_run_in_bands_are_apart_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come in the order of their bytes there, not in that in which they were met."""
    random = np.random.default_rng(3)
    users = [f"u{number:02}" for number in random.integers(0, 60, 3_000)]
    data = pd.DataFrame({"user": users, "at": np.arange(3_000) * 1_000 - random.integers(0, 90_000, 3_000) + 90_000})
    plan, windows = BEATS, BEATS._complete_windows
    expected = apart(plan, data, trace=False)
    counted = Replay.of(plan, data).counts(windows).apart
    monkeypatch.setattr(kernel_run, "FEWEST_RECORDS", 0)
    monkeypatch.setattr(kernel_run, "MANY_WINDOWS", 0)
    monkeypatch.setattr(bands, "BAND", 300)
    replay = Replay.of(plan, data)
    assert len(replay.run(windows).finished or []) > 1
    assert replay.counts(windows).apart == counted == expected.sessions > 20


@pytest.mark.parametrize("name", ["until", "tumbling", "sliding", "days"])
def test_other_windows_are_never_apart(name: str) -> None:
    assert apart(plan_over(KINDS[name]), records(1)) == Apart()


def test_the_run_and_the_suggested_grace_say_it() -> None:
    """A grace of 0 keeps all records of heartbeats, and most of their sessions are cut."""
    data = late_beats()
    whole, run = len(sk.sessionize(data, "user", "at", gap="90s")["session_id"].unique()), BEATS.run(data)
    count = len(run.table()) - whole
    assert count > 20 and run.metrics()["dropped-late"] == 0
    assert f"\n{count:,} sessions {WORDS}; a grace of " in repr(run)
    assert repr(run).endswith(" joins them.")  # no record is dropped that more grace would keep
    assert len(BEATS.with_windows(grace_ms=apart(BEATS, data).grace_ms).run(data).table()) == whole
    assert f"{count:,} sessions {WORDS}" in run._repr_html_()
    found = sk.suggest_grace(BEATS, data)
    assert (found.grace_ms, found.apart) == (0, count)
    assert f"But {count:,} sessions {WORDS}; a grace of " in found.words()[1]
    assert found.joining_grace_ms is not None
    assert len(BEATS.with_windows(grace_ms=found.joining_grace_ms).run(data).table()) == whole


def test_a_setting_that_cuts_sessions_does_not_beat_one_that_does_not() -> None:
    data = late_beats()
    swept = sk.sweep(BEATS, data, inactivity_gap=["90s", "5m"], grace=["0s", "4m"])
    assert (
        swept.cell(inactivity_gap="90s", grace="0s").apart
        == sessions_apart((run := BEATS.run(data))._outcome, run._windows).sessions
    )
    assert [cell.apart == 0 for cell in swept.cells] == [False, True, True, True]
    assert swept.is_dominated.tolist() == [False, True, False, True]
    assert swept.table()["apart"].tolist() == [cell.apart for cell in swept.cells]
    assert " sessions stay apart from one of their key" in repr(swept)
    assert "so the shortest wait is the best" not in swept.pareto().layout.title.text


def test_the_report_says_it_and_does_not_call_it_in_order(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from sessionkit.cli.commands import app

    file = tmp_path / "beats.csv"
    late_beats().to_csv(file, index=False)
    options = ["--key", "user", "--timestamp", "at", "--gap", "90s", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        app(["report", str(file), *options])
    shown = capsys.readouterr().out
    assert "The grace is 0 s: with it no record comes too late." in shown and WORDS in shown
    assert WORDS in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_record_that_cut_a_session_names_the_closed_one_and_the_grace() -> None:
    data = pd.DataFrame({"user": "a", "at": [0, 122_000, 61_000]})
    said = BEATS.run(data).explain(offset=2)
    assert "joined the session at 2 min 2 s: its start moved" in said
    assert "The session at 0 s would have taken it, but was closed already" in said
    assert "with grace 32 s instead of 0 s it would have been open." in said
    assert len(BEATS.with_windows(grace="32s").run(data).table()) == 1
    assert len(BEATS.with_windows(grace_ms=31_999).run(data).table()) == 2


def test_an_audit_says_which_lost_results_are_parts_of_larger_sessions() -> None:
    """They were "80 lost, 73 that should not be there", without a word that the ones are parts of the others."""
    audit = sk.audit(BEATS, late_beats())
    counts = audit.counts()
    joined, larger = counts["lost_in_larger"], counts["larger"]
    assert joined == counts["lost"] >= larger == counts["only_in_kafka"] > 0
    assert f"; {joined:,} joined into {larger:,} larger sessions." in audit.words()[0]
    said = repr(audit)
    assert f"Why joined ({joined:,}): " in said and "How many results are expected depends on the retention" in said
    assert "lost," not in said and "that should not be there" not in said
    assert "They are lost because" not in said and "Why changed" not in said


def test_the_curve_of_pauses_shows_what_was_counted() -> None:
    data = late_beats()
    found = sk.suggest_gap(BEATS, data)
    curve, marks = found.figure().data
    at_ms = data["at"].dt.as_unit("ms").astype("int64")
    pauses = np.concatenate([np.diff(np.sort(at)) for _, at in at_ms.groupby(data["user"])])
    pauses = pauses[pauses > 0]
    assert max(curve.y) <= len(pauses) and not any(
        np.array(curve.y)[np.abs(np.log10(np.array(curve.x, float) / 120_000)) < 0.05]
    )
    for x, y in list(zip(curve.x, curve.y, strict=True))[::10]:
        assert y == np.count_nonzero(np.abs(np.log10(pauses / float(x))) < 0.045)
    far = pauses[pauses > 300_000]
    assert len(far) > 5 and all(np.abs(np.log10(np.array(marks.x, float) / each)).min() <= 0.005 for each in far)
    assert all(y < 0 for y in marks.y) and found.figure().layout.yaxis.title.text == "pauses within 11% of this length"
