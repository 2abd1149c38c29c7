"""The finding of a run in a sentence: how much was dropped, why, and what would keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.decisions import LATE
from sessionkit.base.durations import show_duration, smallest_round_ms
from sessionkit.base.text import percent, plural
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.records.batch import RecordBatch
from sessionkit.records.order import Cause
from sessionkit.views.tables import table_rows
from sessionkit.views.words import dropped_for, records_dropped

if TYPE_CHECKING:
    from sessionkit.run import Run

MOST = 0.9  # of the late records: what keeps so many keeps most of them


def finding(counts: Mapping[str, int], run: Run | None) -> list[str]:
    """What the counts say; of a run in this process also why records were dropped, and how they would be kept."""
    total, dropped = counts["process-total"], records_dropped(counts)
    if not total:
        return ["There are no records."]
    run = None if run is None or run._lives else run
    if not dropped:
        said = f"None of the {plural(total, 'record')} was dropped" if total > 1 else "The record was not dropped"
        missed = counts["dropped-late"]
        more = [] if run is None else [*_kept_by_grace(run, missed), *_singles(run)]
        return _said([said, *([f"late ones missed {plural(missed, 'window')}"] if missed else []), *more])
    said = f"{percent(dropped / total)} of {plural(total, 'record')} {'was' if dropped == 1 else 'were'} dropped"
    if run is None:
        return _said([f"{said} ({dropped:,})"])
    late = run._outcome.dropped.get(LATE, 0)
    if not late:
        return _said([f"{said}: {dropped_for(run._outcome.dropped)}"])
    said += " as late" if late == dropped else f", {late:,} of them as late"
    cause = explaining(run)
    if cause is None:
        return _said([said, *_kept_by_grace(run, run._outcome.missed_count)])
    share, cured = _cure(run, cause)
    return _said([f"{said}, {share}because {cause.why}", *cured], cause.way)


def _said(parts: list[str], way: str = "") -> list[str]:
    return [f"{'; '.join(parts)}.", *([way] if way else [])]


def explaining(run: Run | None) -> Cause | None:
    """The cause that the finding names: why records were dropped as late."""
    if run is None or run._lives:
        return None
    return next((cause for cause in run._late_causes if cause.late and not cause.is_behind), None)


def _cure(run: Run, cause: Cause) -> tuple[str, list[str]]:
    """How much of the drops the cause explains, where that is not all, and what is left without it."""
    batch, late = run._outcome.batch, run._outcome.missed_count
    if cause.is_order:
        return "", ["sorted by time, none is"]
    if cause.to_leave_out is None or batch.idle is not None or not _can_replay(run):
        return "", _kept_by_grace(run, late)
    rest = batch.take(np.delete(np.arange(len(batch)), cause.to_leave_out))
    left = _missed(run, run._windows.grace_ms, rest)
    share = "" if not left else "nearly all " if left <= (1 - MOST) * late else "many "
    few = f"{plural(left, 'record')} {'is' if left == 1 else 'are'}" if left else "none is"
    return share, [f"without {'that record' if len(cause.to_leave_out) == 1 else 'those records'}, {few}"]


def _kept_by_grace(run: Run, missed: int) -> list[str]:
    """The round grace that keeps all records, and the one that keeps most of the late ones if it is shorter."""
    if not _can_replay(run):
        return []
    now_ms = run._windows.grace_ms
    all_ms = smallest_round_ms(lambda ms: not _missed(run, ms))
    if not missed:
        return [f"a grace of {show_duration(min(all_ms, now_ms))} is enough for them"]
    most_ms = smallest_round_ms(lambda ms: _missed(run, ms) <= (1 - MOST) * missed)
    instead = f" instead of {show_duration(now_ms)}"
    if most_ms in (0, all_ms):
        return [f"a grace of {show_duration(all_ms)}{instead} keeps them all"]
    most, every = show_duration(most_ms), show_duration(all_ms)
    return [f"a grace of {most}{instead} keeps nine in ten of them, and one of {every} all"]


def _can_replay(run: Run) -> bool:
    """Whether other graces can be tried: not where a store, a deployment or chosen keys had a say."""
    trace, batch = run._outcome.kept_trace, run._outcome.batch
    is_alone = run.deployed is None and batch.chosen_from is None and run._outcome.window_columns.loaded_count == 0
    has_before = trace is None or bool((trace.first_stream_time_ms >= 0).any())
    return is_alone and not has_before and run._windows.is_ever_closed


def _missed(run: Run, grace_ms: int, batch: RecordBatch | None = None) -> int:
    """How many times a record would come too late for a window under this grace."""
    windows = run.plan.with_windows(grace_ms=grace_ms)._complete_windows
    batch, retention_ms = run._outcome.batch if batch is None else batch, windows.retention_ms(None)
    return run_kernel(windows, {}, batch, retention_ms=retention_ms, keep_trace=False).missed_count


def _singles(run: Run) -> list[str]:
    """How many of the sessions, or other windows, have one record."""
    trace, noun = run._outcome.kept_trace, run._windows.noun
    if trace is None:
        return []
    sizes = trace.sizes[table_rows(run._outcome)]
    one = int((sizes == 1).sum())
    return (
        [f"{one:,} of {plural(len(sizes), noun)} {'has' if one == 1 else 'have'} one record"]
        if one and len(sizes) > 1
        else []
    )
