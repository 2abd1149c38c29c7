"""The finding of a run in a sentence: how much was dropped, why, and what would keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.decisions import LATE
from sessionkit.base.durations import DAY, show_duration, smallest_round_ms
from sessionkit.base.text import percent, plural
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.records.batch import RecordBatch
from sessionkit.records.lateness.causes import Cause
from sessionkit.records.time_statistics import usual_span
from sessionkit.views.tables import table_rows
from sessionkit.views.words import dropped_for, records_dropped

if TYPE_CHECKING:
    from sessionkit.run import Run

MOST = 0.9  # of the late records: what keeps so many keeps most of them
LONGEST_MS, GAPS, SPANS = 30 * DAY, 10, 0.25  # a grace beyond these, of gaps and of the time of all records, is no cure
TAIL = "their lateness has a long tail, which a grace does not cure: nine in ten of them need one of "
WAY = "If records have another time, such as when they arrived, that can be the timestamp; else accept these drops."


def finding(counts: Mapping[str, int], run: Run | None) -> list[str]:
    """What the counts say; of a run in this process also why records were dropped, and how they would be kept."""
    total, dropped, partly = counts["process-total"], records_dropped(counts), counts["dropped-late"]
    run = None if run is None or run._lives else run
    if not total:
        return ["There are no records."]
    if not dropped:
        parts = [f"None of the {plural(total, 'record')} was dropped" if total > 1 else "The record was not dropped"]
        parts += [f"late ones missed {plural(partly, 'window')}"] if partly else []
        parts += [*_kept_by_grace(run, partly), *_singles(run)] if run is not None else []
        return [f"{'; '.join(parts)}."]
    said = f"{percent(dropped / total)} of {plural(total, 'record')} {'was' if dropped == 1 else 'were'} dropped"
    if run is None:
        return [f"{said} ({dropped:,})."]
    late = run._outcome.dropped.get(LATE, 0)
    if not late:
        return [f"{said}: {dropped_for(run._outcome.dropped)}."]
    said += " as late" if late == dropped else f", {late:,} of them as late"
    cause = explaining(run)
    cured = _cure(run, cause)
    said += f", {cause.because}" if cause is not None else ""
    way = cause.way if cause is not None else WAY if any(TAIL in each for each in cured) else ""
    return [f"{'; '.join([said, *cured])}.", *([way] if way else [])]


def explaining(run: Run | None) -> Cause | None:
    """The cause that the finding names: why records were dropped as late."""
    if run is None or run._lives:
        return None
    return next((cause for cause in run._late_causes if cause.late and not cause.is_behind), None)


def _cure(run: Run, cause: Cause | None) -> list[str]:
    """How many records are dropped without the cause, or under a longer grace."""
    batch, late = run._outcome.batch, run._outcome.missed_count
    if cause is not None and cause.is_order:
        return ["sorted by time, none is dropped"]
    if cause is None or cause.to_leave_out is None or batch.idle is not None or not can_replay(run):
        return _kept_by_grace(run, late)
    rest = batch.take(np.delete(np.arange(len(batch)), cause.to_leave_out))
    left = missed(run, run._windows.grace_ms, rest)
    few = f"{plural(left, 'record')} {'is' if left == 1 else 'are'}" if left else "none is"
    return [f"without {'that record' if len(cause.to_leave_out) == 1 else 'those records'}, {few} dropped"]


def _kept_by_grace(run: Run, late: int) -> list[str]:
    """The round grace that keeps all records, and the one that keeps most of the late ones if it is shorter."""
    if not can_replay(run):
        return []
    now_ms, all_ms = run._windows.grace_ms, smallest_round_ms(lambda ms: not missed(run, ms))
    if not late:
        return [f"a grace of {show_duration(min(all_ms, now_ms))} is enough for them"] if now_ms else []
    most_ms = smallest_round_ms(lambda ms: missed(run, ms) <= (1 - MOST) * late)
    now, most, every = map(show_duration, (now_ms, most_ms, all_ms))
    first_ms, last_ms = usual_span(run._outcome.batch.timestamp_ms[run._outcome.batch.usable])
    if most_ms > max(GAPS * run._windows.reach_ms, min(LONGEST_MS, SPANS * (last_ms - first_ms))):
        return [f"{TAIL}{most}"]
    if most_ms in (0, all_ms):
        return [f"a grace of {every} instead of {now} keeps them all"]
    return [f"a grace of {most} instead of {now} keeps nine in ten of them, and one of {every} keeps them all"]


def can_replay(run: Run) -> bool:
    """Whether other graces can be tried: not where a store, a deployment or chosen keys had a say."""
    trace, batch = run._outcome.kept_trace, run._outcome.batch
    is_alone = run.deployed is None and batch.chosen_from is None and run._outcome.window_columns.loaded_count == 0
    has_before = trace is None or bool((trace.first_stream_time_ms >= 0).any())
    return is_alone and not has_before and run._windows.is_ever_closed


def missed(run: Run, grace_ms: int, batch: RecordBatch | None = None) -> int:
    """How many times a record would come too late for a window under this grace."""
    windows = run.plan.with_windows(grace_ms=grace_ms)._complete_windows
    batch, retention_ms = run._outcome.batch if batch is None else batch, windows.retention_ms(None)
    return run_kernel(windows, {}, batch, retention_ms=retention_ms, keep_trace=False).missed_count


def _singles(run: Run) -> list[str]:
    """How many of the sessions, or other windows, have one record."""
    if run._outcome.kept_trace is None:
        return []
    sizes = run._outcome.kept_trace.sizes[table_rows(run._outcome)]
    one, all_of_them = int((sizes == 1).sum()), plural(len(sizes), run._windows.noun)
    said = f"{one:,} of {all_of_them} {'has' if one == 1 else 'have'} one record"
    return [said] if one and len(sizes) > 1 else []
