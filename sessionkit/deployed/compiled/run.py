"""A deployment's life over columns: what `processor_run` does record by record, by the kernels.

The kernel decides which windows a record finds, under the rules by which Kafka's store forgets. All else follows from
that, column by column: the results that are sent, the looks for final ones, what the store refuses and holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sessionkit.aggregations.accumulators import LOOPS
from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import value_column
from sessionkit.base.arrays import Flags, Longs, is_null
from sessionkit.base.decisions import TICK
from sessionkit.base.durations import INT64_MAX, check_reach
from sessionkit.deployed.compiled.cache import CachedLife, has_zeros, most_bytes
from sessionkit.deployed.compiled.cached_sessions import (
    CachedSessionLife,
    is_new,
    knows_session_cache,
    run_behind_cache,
)
from sessionkit.deployed.compiled.cached_windows import CachedSlidingLife, CachedWindowLife
from sessionkit.deployed.compiled.life import CompiledLife, SessionLife
from sessionkit.deployed.compiled.restarted_sessions import RestartedSessionLife, lie_apart
from sessionkit.deployed.compiled.sent import SentResults
from sessionkit.deployed.compiled.stores import boundary_of, columns_of, is_known, observed_ms, take_over
from sessionkit.deployed.compiled.suppress import held_back
from sessionkit.deployed.compiled.window_life import SlidingLife, WindowLife
from sessionkit.deployed.deployment import Life, commit_rows
from sessionkit.deployed.processor_run import Deployed, Processed
from sessionkit.engine.kernel_run import Start, by_key_and_time, run_from, stream_times_of
from sessionkit.engine.memory import check_windows
from sessionkit.engine.outcome import Outcome, codes_of, newest_times, without_replayed
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import Snapshot, StoredColumns, no_columns
from sessionkit.stores.rows import joined_columns
from sessionkit.suppression.settings import Suppression
from sessionkit.windows.contract import WindowKind, has_cache
from sessionkit.windows.feed import NONE_NULL, Expiry
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

LIVES: Mapping[Any, type[SessionLife | WindowLife]] = {
    SessionWindows: SessionLife,
    TimeWindows: WindowLife,
    SlidingWindows: SlidingLife,
}
CACHED_LIVES: Mapping[Any, type[CachedLife]] = {
    SessionWindows: CachedSessionLife,
    TimeWindows: CachedWindowLife,
    SlidingWindows: CachedSlidingLife,
}
NEVER_NULL = ("count", "count_values", "sum")  # loops whose aggregate is a number from the beginning


def runs_compiled(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: Any,
    how: Life,
) -> bool:
    """Whether the kernels know all rules of this life; else the processor plays it."""
    loops = [part.loop for aggregation in aggregations.values() for part in aggregation.parts]
    return (
        type(windows) in LIVES
        and how.kafka
        and not callable(how.clock)
        and all(aggregation.parts for aggregation in aggregations.values())
        and all(LOOPS[loop].knows_every_step for loop in loops)
        and (batch.rejected is None or bool((batch.rejected < TICK).all()))
        and is_known(store)
        and all(_has_observed(windows, store, p) for p in batch.partitions.tolist())
        and (windows.holds == "sessions" or not len(null_values(aggregations, batch)))
        and (not has_cache(windows, how.emit, how.caching) or _knows_cache(windows, batch, store, how))
    )


def _has_observed(windows: WindowKind, store: Any, partition: int) -> bool:
    """Whether a store has observed what stream time has passed, as it has unless somebody put windows by hand."""
    stream_time_ms = store.snapshot(partition).stream_time_ms
    if windows.holds == "windows":
        advance_ms = windows.advance_ms or INT64_MAX  # of sliding windows the records say what was put
        stream_time_ms = stream_time_ms // advance_ms * advance_ms if stream_time_ms >= advance_ms else -1
    return bool(stream_time_ms <= observed_ms(store, partition))


def _knows_cache(windows: WindowKind, batch: RecordBatch, store: Any, how: Life) -> bool:
    """Whether the cache of this life can be played here: in memory a look uses all of it."""
    if how.restart is not None and (how.changelog is not None or windows.holds == "sessions"):
        return False  # what a cache loses, and in which order it writes
    if windows.holds == "sessions":
        return knows_session_cache(batch, store, how)
    if windows.advance_ms is None and not is_new(batch, store):
        return False
    if how.emit == "on_window_update" or store.is_persistent:
        return True
    return most_bytes(how) in (None, math.inf) and not has_zeros(batch.keys)


def run_compiled(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: Any,
    how: Life,
    bound: Mapping[str, Any] | None = None,
    suppression: Suppression | None = None,
) -> Processed | None:
    """One life over the batch, by the kernels, and its commit to the store; None if only the processor knows."""
    check_reach(int(batch.timestamp_ms.max(initial=0)), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = {p: store.snapshot(p) for p in numbers}
    batch, position = without_replayed(batch, before)
    check_windows(windows, batch)
    observed = np.array([observed_ms(store, p) for p in numbers], np.int64)
    is_cached = has_cache(windows, how.emit, how.caching)
    expiry = _expiry(windows, aggregations, batch, store, observed, is_cached=is_cached)
    start, rest = _start(windows, tuple(aggregations), batch, store, how, before, position)
    is_restarted = windows.holds == "sessions" and store.is_persistent and not is_new(batch, store)
    if is_restarted and not lie_apart(start, batch, windows.reach_ms, observed - how.retention_ms):
        return None

    def run(expiry: Expiry | None) -> Outcome:
        kept: Any = {"keep_trace": True, "keep_offsets": True, "count_rows": counts_rows(windows), "expiry": expiry}
        return run_from(start, windows, aggregations, batch, how.retention_ms, **kept)

    if expiry is not None and is_cached:
        outcome, expiry = run_behind_cache(windows, aggregations, batch, store, how, expiry, run)
    else:
        outcome = run(expiry)
    kind: Any = RestartedSessionLife if is_restarted else (CACHED_LIVES if is_cached else LIVES)[type(windows)]
    life = kind(windows, aggregations, outcome, store, how, before, observed, expiry)
    if not life.is_played:
        return None
    committed_count = _committed_count(how, len(batch))
    if how.changelog is not None:
        how.changelog.add_all(outcome.kept_trace, life.held_rows)
    outcome = dataclasses.replace(outcome, snapshots=life.snapshots(committed_count), row_counts=None)
    results = SentResults(outcome, life.sent, life.finals, flushed=is_cached and life.spans is None)
    held: Any = held_back(suppression, windows, aggregations, results, how)
    with store.all_or_nothing():
        _leave(life, rest, store)
        if bound is not None:
            store.bind(bound)
        store.commit_snapshots(outcome.snapshots, frozenset(aggregations))
    deployed = Deployed(
        forwarded=held.forwarded,
        refused=life.refused,
        looks=life.looks,
        spans=life.spans,
        clock_ms=None if how.clock is None or how.is_stream_time else np.asarray(how.clock).tolist(),
        seen_ms=life.seen_ms(rest),
        answers=life.answers,
        buffers=held.buffers,
        waiting=held.waiting,
        buffers_left=held.buffers_left,
        committed_count=committed_count,
    )
    return Processed(outcome, deployed, life.in_front_of(store))


def counts_rows(windows: WindowKind) -> bool:
    """Whether a store knows how many records a window has: of a copy it does not."""
    return type(windows) is not SlidingWindows


def _leave(life: CompiledLife, rest: Mapping[int, StoredColumns], store: Any) -> None:
    """Puts what a life leaves into the store, `rest` is what it did not meet."""
    for (p, others), held, time_ms in zip(rest.items(), life.held(), life.observed_ms.tolist(), strict=True):
        take_over(store, p, joined_columns(others, held), time_ms)


def _expiry(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: Any,
    observed_ms: Longs,
    *,
    is_cached: bool,
) -> Expiry | None:
    """What decides what a record finds; None: all that was put."""
    if windows.holds == "sessions":
        return Expiry(observed_ms.copy(), null_values(aggregations, batch))
    if windows.advance_ms is not None or is_cached:
        return None
    found_from_ms, hangs = np.empty(len(batch), np.int64), np.zeros(1, np.bool_)
    return Expiry(observed_ms.copy(), NONE_NULL, None, boundary_of(store), found_from_ms, hangs)


def _start(
    windows: WindowKind,
    names: tuple[str, ...],
    batch: RecordBatch,
    store: Any,
    how: Life,
    before: Mapping[int, Snapshot],
    position: Longs,
) -> tuple[Start, dict[int, StoredColumns]]:
    """What the batch can touch or close of the windows that a life sees, and for each partition the others."""
    newest_ms = newest_times(batch, stream_times_of(batch, before)) - windows.close_lag_ms
    looks_behind = windows.holds == "sessions" and store.is_persistent and how.emit == "on_window_close"
    state, rest = None, {}
    for p, close_ms in zip(before, newest_ms.tolist(), strict=True):
        first_ms = observed_ms(store, p) - how.retention_ms + 1 - boundary_of(store)
        each = columns_of(store, p, batch.keys.type, names)
        last_ms = each.time_ms
        if windows.holds == "windows":
            last_ms = windows.ends_ms(last_ms) - (not windows.inclusive_end)
        is_met = ~is_null(pc.index_in(each.key, value_set=batch.keys)) | (last_ms < close_ms)
        is_left = looks_behind & (last_ms < close_ms) & (each.time_ms >= before[p].last_close_time_ms)
        is_met &= (each.time_ms >= first_ms) | is_left  # which is what reads see, and what looks find beside that
        met, rest[p] = each.take(np.flatnonzero(is_met)), each.take(np.flatnonzero(~is_met))
        state = met if state is None else joined_columns(state, met)
    if state is None:
        state = no_columns(windows.holds, batch.keys.type, names)
    code, keys = codes_of(state.key, batch.keys)
    order = by_key_and_time(code, state.partition, state.time_ms, len(keys))
    return Start(before, position, state.take(order), code[order], keys), rest


def null_values(aggregations: Mapping[str, Aggregation], batch: RecordBatch) -> Flags:
    """True for each record after which the aggregates of a new window are all null; empty if there is none."""
    if any(part.loop in NEVER_NULL for aggregation in aggregations.values() for part in aggregation.parts):
        return NONE_NULL
    columns: list[Any] = [value_column(each, batch.values, batch.timestamp_ms) for each in aggregations.values()]
    null: Flags = np.logical_and.reduce([is_null(column) for column in columns])
    return null if null.any() else NONE_NULL


def _committed_count(how: Life, count: int) -> int:
    """How many of the records the last commit covers: all, unless the task is killed."""
    if how.restart != "killed":
        return count
    return int(commit_rows(how, count).max(initial=-1)) + 1
