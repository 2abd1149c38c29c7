"""The page's engine decides as the kernel does, and as Kafka Streams did where that can be compared."""

from typing import Any

import numpy as np
import pytest

import sessionkit as sk
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.page.sample import sample
from sessionkit.windows.missing_grace import missing_grace_ms
from tests.interpreted import fewer
from tests.optional import Page
from tests.page.engine import as_asked, decided, engine
from tests.page.streams import PARTITIONS, drawn, one_huge_key

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:column 'at' read as ms:UserWarning")]

RUNS = fewer(100)  # of each kind, with so many partitions that each is a stream of its own
AT_ONCE = 20
MOST_ASKED = 12  # late records of a run whose missing grace is compared
tab = pytest.fixture(engine, scope="module")


def same(ours: Any, theirs: Any, what: str) -> None:
    assert np.array_equal(np.asarray(ours, np.float64), np.asarray(theirs, np.float64)), what


def by_name(run: sk.Run) -> Any:
    """The codes of the run's keys, in the order in which the page has them."""
    return sample(run.trace, None, len(run.trace) or 1, None).keys


def assert_decided_alike(run: sk.Run, found: dict[str, Any]) -> None:
    """All that the trace of the kernel says, the page's engine says, too."""
    trace, columns = run.trace, run.trace.window_columns
    usable = trace.batch.usable & (trace.batch.key >= 0)
    same(found["records"]["stream"], trace.stream_time_ms, "stream time")
    same(found["records"]["offset"], trace.batch.offset, "offsets")
    same(np.asarray(found["records"]["time"])[usable], trace.batch.timestamp_ms[usable], "times")
    same(found["decision"], trace.decision, "decisions")
    windows = found["windows"]
    key, partition = np.divmod(np.asarray(windows["slot"], np.int64), len(trace.batch.partitions))
    same(by_name(run)[key], columns.key, "keys")
    same(partition, columns.partition, "partitions")
    same(windows["start"], columns.start_ms, "starts")
    same(windows["end"], columns.end_ms, "ends")
    same(trace.batch.offset[np.asarray(windows["openedAt"], np.int64)], columns.opened_by, "opened by")
    same(found["isClosed"], trace.closed_by >= 0, "closed")
    closes = found["closes"]
    until = [len(trace) if each is None else each for each in closes["until"]]
    ours = sorted(zip(closes["at"], closes["window"], closes["start"], closes["end"], until, strict=True))
    theirs = np.minimum(trace.closes.until, len(trace))
    told = (trace.closes.at, trace.closes.window, trace.closes.start_ms, trace.closes.end_ms, theirs)
    assert ours == sorted(zip(*(each.tolist() for each in told), strict=True)), "closures"
    (assert_sessions if isinstance(trace, SessionTrace) else assert_windows)(trace, found)
    rows = np.arange(len(columns.key))
    for (name, what, _), result in zip(as_asked(run)["results"], found["results"], strict=True):
        expected = run._outcome.folds[name].results(rows).to_pylist()
        assert [each is None for each in result] == [each is None for each in expected], name
        numbers = ([each for each in side if each is not None] for side in (result, expected))
        if what == "mean" or name == "real_sum":
            np.testing.assert_allclose(*numbers, rtol=1e-12, atol=1e-9)
        else:
            same(*numbers, name)


def assert_sessions(trace: SessionTrace, found: dict[str, Any]) -> None:
    same(found["window"], trace.window, "windows")
    same(found["startAfter"], trace.bounds_after[0], "starts after each record")
    same(found["endAfter"], trace.bounds_after[1], "ends after each record")
    same(found["windows"]["mergedInto"], trace.window_columns.merged_into, "merged into")
    for name, theirs in (("merges", trace.merges), ("reopenings", trace.reopenings)):
        for ours, column in zip(found[name].values(), theirs, strict=True):
            same(ours, column, name)


def assert_windows(trace: WindowTrace, found: dict[str, Any]) -> None:
    touches, count = found["touches"], found["touches"]["count"]
    same(touches["record"][:count], trace.touches.record, "records of touches")
    same(touches["window"][:count], trace.touches.window, "windows of touches")
    same(touches["start"][:count], trace.touches.start_ms, "starts of touches")
    same(found["windows"]["newest"], trace.window_columns.timestamp_ms, "newest records")
    same(found["windows"]["size"], trace.sizes, "sizes")


@pytest.mark.parametrize("kind", ["session", "tumbling", "hopping"])
def test_the_engine_decides_as_the_kernel(tab: Page, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Disorder, ties, huge pauses, null keys and values, times near 0 and 2^53; 5,000 of each kind in `make random`."""
    late = 0
    for low in range(0, RUNS, AT_ONCE):
        runs = [drawn(kind, seed) for seed in range(low, min(low + AT_ONCE, RUNS))]
        asked = [np.flatnonzero(run.trace.late_for_some)[:MOST_ASKED] * (kind == "session") for run in runs]
        asked = [each if kind == "session" else each[:0] for each in asked]
        answers = decided(tab, [as_asked(run, rows.tolist()) for run, rows in zip(runs, asked, strict=True)])
        for run, rows, found in zip(runs, asked, answers, strict=True):
            assert_decided_alike(run, found)
            late += int((run.trace.decision == 10).sum())
            if len(rows):
                same(found["missing"], missing_grace_ms(run.trace, run.plan.windows, rows), "missing grace")
    assert late > 10 * RUNS
    with capsys.disabled():
        print(f"\npage = kernel, {kind}: {RUNS * PARTITIONS:,} streams, {late:,} late records")


WINDOWS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap="2m", grace="1m"),
    "tumbling": sk.TimeWindows(size="10m", grace="1m"),
    "hopping": sk.TimeWindows(size="10m", advance="2m", grace="1m"),
}


@pytest.mark.parametrize("pauses", [True, False])
@pytest.mark.parametrize("kind", WINDOWS)
def test_a_stretch_of_a_key_is_decided_as_the_kernel_decides_these_records_alone(
    tab: Page, kind: str, pauses: bool
) -> None:
    """Its records and no others, each at the stream time of all: a key that is not on the page plays the clock."""
    run = one_huge_key(WINDOWS[kind], pauses=pauses)
    trace = run.trace
    chosen = sample(trace, None, 5_000, "the huge one", reach_ms=WINDOWS[kind].reach_ms)
    assert len(chosen.rows) == 5_000 and chosen.cut is not None
    (found,) = decided(tab, [as_asked(run, chosen=chosen)])
    keys = np.array(trace.keys.to_pylist())[trace.batch.key[chosen.rows]]
    clock = np.append(trace.stream_time_ms[chosen.rows], trace.last_stream_time_ms)
    who = np.append(np.column_stack([np.full(len(keys), "clock"), keys]).ravel(), "clock")
    at = np.append(np.column_stack([clock[:-1], trace.batch.timestamp_ms[chosen.rows]]).ravel(), clock[-1])
    alone = run.plan.run({"who": who.tolist(), "at": at.tolist(), "n": [0] * len(at)})
    same(found["decision"], alone.trace.decision[1::2], "decisions")
    lost = int((alone.trace.decision[1::2] == 10).sum())
    columns = alone.trace.window_columns
    ours = columns.are_results(False) & (columns.key != alone.trace.keys.to_pylist().index("clock"))
    assert found["counts"]["windows"] == int(ours.sum())
    assert found["counts"]["closed"] == int((alone.trace.closed_by[ours] >= 0).sum())
    assert found["counts"]["dropped"] == lost > 0
    if pauses:  # the stretch begins where nothing of before is touched again: it is as in the whole run
        same(found["decision"], trace.decision[chosen.rows], "decisions of the whole run")
    if pauses or kind != "session":  # whether a window of fixed length takes a record does not hang on other records
        assert lost == int((trace.decision == 10).sum()) == 87
