"""The tables of a run: windows, changelog, dropped records, metrics. Each is a view of the trace and its folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.columns import count_updates, last_touches, order_by_place, update_rows
from sessionkit.decisions import ADDED, BAD_TIME, LATE, MERGED, NULL_VALUE, REASONS, REPLAYED
from sessionkit.durations import INT64_MAX
from sessionkit.engine import Outcome
from sessionkit.errors import UnsupportedData, problem
from sessionkit.frames import FrameKind, to_frame
from sessionkit.keys import key_ranks
from sessionkit.processing import Forwarded
from sessionkit.session_trace import SessionTrace
from sessionkit.text import shorten
from sessionkit.trace import Trace, status_words, words
from sessionkit.window_trace import WindowTrace

Column = Any  # an Arrow array, a NumPy one, or one of Python objects
NO_VALUE = -2  # where a row replaces no value
RESULT_COLUMNS = (
    *("partition", "offset", "what", "key", "window_start_ms", "window_end_ms", "timestamp_ms", "status"),
    *("stream_time_ms", "closes_at_ms"),  # of run.emissions()
)


def frame_of(columns: Mapping[str, Column], frame: FrameKind) -> Any:
    """The columns as the kind of frame that the user gave; Python objects stay objects in pandas."""
    objects = {name: c for name, c in columns.items() if isinstance(c, np.ndarray) and c.dtype == object}
    table = pa.table({name: c if name not in objects else pa.nulls(len(c)) for name, c in columns.items()})
    if frame == "pandas":
        result = to_frame(table, frame)
        for name, column in objects.items():
            result[name] = column
        return result
    for name, column in objects.items():
        try:
            table = table.set_column(table.column_names.index(name), name, pa.array(column.tolist()))
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            want = "return one type from the functions, or give a pandas frame, whose columns hold any object"
            got = shorten(error, 120)
            raise UnsupportedData(
                problem(f"the results of {name!r} do not fit into one Arrow column", got, want)
            ) from error
    return to_frame(table, frame)


def table_rows(outcome: Outcome) -> npt.NDArray[np.intp]:
    """The windows that `table()` shows, by partition, key bytes and start.

    Left out: what was absorbed, and what came out of a store closed and was not touched.
    """
    windows = outcome.window_columns
    rows = np.flatnonzero((windows.merged_into < 0) & (windows.closed_before < 0) & is_result(outcome))
    ranks = key_ranks(outcome.keys)[windows.key[rows]]
    place = ranks + windows.partition[rows].astype(np.int64) * max(1, len(outcome.keys))
    places = max(1, len(outcome.keys)) * max(1, len(outcome.batch.partitions))
    chosen: npt.NDArray[np.intp] = rows[order_by_place(place, places, windows.start_ms[rows])]
    return chosen


def is_result(outcome: Outcome) -> npt.NDArray[np.bool_]:
    """True for each window that is a result: all of them, or (trailing only) those that end with a record."""
    windows = outcome.window_columns
    if not outcome.trailing_only:
        return np.ones(len(windows.key), np.bool_)
    ends_with_record: npt.NDArray[np.bool_] = windows.timestamp_ms == windows.end_ms
    return ends_with_record


def final_count(outcome: Outcome) -> int:
    """How many final results the run sent."""
    return int(is_result(outcome)[outcome.kept_trace.closes.window].sum())


def sent_count(outcome: Outcome, strategy: str) -> int:
    """How many rows the changelog has under this emit strategy."""
    trace = outcome.kept_trace
    if strategy == "on_window_close":
        return final_count(outcome)
    if isinstance(trace, WindowTrace):
        return int((trace.touches.effect != LATE).sum())
    return int(count_updates(trace.window, trace.decision, trace.batch.timestamp_ms, *trace.bounds_after))


def closed_count(outcome: Outcome) -> int:
    """How many of the results are closed at the end of the run."""
    return int((outcome.closed & is_result(outcome)).sum())


def window_table(outcome: Outcome, rows: npt.NDArray[np.intp]) -> dict[str, Column]:
    """key, window_start_ms, window_end_ms, one column an aggregation, status, partition."""
    windows = outcome.window_columns
    return {
        "key": outcome.keys.take(pa.array(windows.key[rows])),
        "window_start_ms": windows.start_ms[rows],
        "window_end_ms": windows.end_ms[rows],
        **{name: fold.results(rows) for name, fold in outcome.folds.items()},
        "status": status_words(windows.merged_into[rows] >= 0, outcome.closed[rows]),
        "partition": outcome.batch.partitions[windows.partition[rows]],
    }


def updates(outcome: Outcome, trace: SessionTrace, *, old_values: bool = False) -> dict[str, Column]:
    """What goes downstream on update: tombstones for the sessions a record withdrew, then the new session.

    Only a tombstone replaces a value: the new session takes no other's place.
    """
    start_after, end_after = trace.bounds_after
    touched = (trace.window, trace.decision, trace.batch.timestamp_ms)
    rows = count_updates(*touched, start_after, end_after)
    size = len(trace.window_columns.key)
    start, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    start[: len(trace.loaded_start_ms)], end[: len(trace.loaded_end_ms)] = trace.loaded_start_ms, trace.loaded_end_ms
    at, row, start_ms, end_ms, tombstone = update_rows(*touched, trace.merges, start_after, end_after, start, end, rows)
    what = pa.DictionaryArray.from_arrays(pa.array(tombstone.astype(np.int8)), pa.array(["update", "tombstone"]))
    running = {name: _running(fold, trace) for name, fold in outcome.folds.items()}
    old: dict[str, Column] = {}
    if old_values:
        touch = np.full(len(at), NO_VALUE)
        touch[tombstone] = last_touches(trace.window, trace.merges, at[tombstone], row[tombstone])
        old = _replaced(outcome, running, touch, row)
    return {
        **_where(trace, at, what.cast(pa.string())),
        "key": trace.keys.take(pa.array(trace.batch.key[at])),
        "window_start_ms": start_ms,
        "window_end_ms": end_ms,
        **{name: _blanked(column, at, tombstone) for name, column in running.items()},
        **old,
        "timestamp_ms": end_ms,
    }


def _replaced(
    outcome: Outcome, running: Mapping[str, Column], touch: npt.NDArray[np.int64], row: npt.NDArray[np.int32]
) -> dict[str, Column]:
    """The value that each forwarded row replaces: that after `touch`, or (-1) the one that its window was loaded with.

    Null where there is none: the window is new, or `touch` is NO_VALUE.
    """
    found, loaded = {}, outcome.window_columns.loaded_count
    place = np.where(touch >= 0, touch + loaded, np.where((touch == NO_VALUE) | (row >= loaded), NO_VALUE, row))
    for name, column in running.items():
        first: Any = outcome.folds[name].loaded_results()
        if isinstance(column, pa.Array):
            pool = pa.concat_arrays([first.cast(column.type), column])
            found[f"old_{name}"] = pool.take(pa.array(place, mask=place == NO_VALUE))
        else:
            objects = np.concatenate([first, column, np.full(1, None)])
            found[f"old_{name}"] = objects[np.where(place == NO_VALUE, len(objects) - 1, place)]
    return found


def _nothing_replaced(outcome: Outcome, columns: Mapping[str, Column]) -> dict[str, Column]:
    nothing = {}
    for name in outcome.folds:
        column = columns[name]
        is_arrow = isinstance(column, pa.Array)
        nothing[f"old_{name}"] = pa.nulls(len(column), column.type) if is_arrow else np.full(len(column), None)
    return nothing


def window_updates(outcome: Outcome, trace: WindowTrace, *, old_values: bool = False) -> dict[str, Column]:
    """What goes downstream on update of windows of one length: every window that a record changed or made."""
    touches = trace.touches
    live = np.flatnonzero(touches.effect != LATE)
    at, start_ms = touches.record[live], touches.start_ms[live]
    running = {name: fold.running_touches(touches) for name, fold in outcome.folds.items()}
    old: dict[str, Column] = {}
    if old_values:
        before = np.where(touches.effect == ADDED, _touch_before(touches.window), NO_VALUE)
        old = _replaced(outcome, running, before[live], touches.window[live])
    return {
        **_where(trace, at, pa.array(["update"] * len(at), pa.string())),
        "key": trace.keys.take(pa.array(trace.batch.key[at])),
        "window_start_ms": start_ms,
        "window_end_ms": start_ms + trace.length_ms,
        **{n: c.take(pa.array(live)) if isinstance(c, pa.Array) else c[live] for n, c in running.items()},
        **old,
        "timestamp_ms": trace.newest_ms[live],
    }


def _touch_before(window: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """For each touch the one before it of the same window, -1 for none."""
    order = np.argsort(window, kind="stable")
    before = np.full(len(window), -1)
    is_same = window[order[1:]] == window[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    return before


def window_finals(outcome: Outcome, trace: WindowTrace) -> dict[str, Column]:
    """What goes downstream on close of windows of one length: by the record that closed it, start and key bytes."""
    closes, windows = trace.closes, trace.window_columns
    shown = is_result(outcome)[closes.window]
    at, row = closes.at[shown], closes.window[shown]
    return {
        **_where(trace, at, pa.array(["final"] * len(at), pa.string())),
        "key": trace.keys.take(pa.array(windows.key[row])),
        "window_start_ms": windows.start_ms[row],
        "window_end_ms": windows.end_ms[row],
        **{name: fold.results(row) for name, fold in outcome.folds.items()},
        "timestamp_ms": windows.timestamp_ms[row],
    }


def changelog(outcome: Outcome, strategy: str, *, old_values: bool = False) -> dict[str, Column]:
    """What goes downstream under this emit strategy, as far as the trace tells.

    With `old_values`, a column `old_…` for each result holds what the row replaces; a final replaces nothing.
    """
    trace = outcome.kept_trace
    if strategy == "on_window_update":
        if isinstance(trace, WindowTrace):
            return window_updates(outcome, trace, old_values=old_values)
        return updates(outcome, trace, old_values=old_values)
    columns = window_finals(outcome, trace) if isinstance(trace, WindowTrace) else finals(outcome, trace)
    if old_values:
        last = columns.pop("timestamp_ms")
        columns = {**columns, **_nothing_replaced(outcome, columns), "timestamp_ms": last}
    return columns


def finals(outcome: Outcome, trace: SessionTrace) -> dict[str, Column]:
    """What goes downstream on close: each window once it is final, by the record that closed it, end and key bytes."""
    closes = trace.closes
    reopened = np.flatnonzero(closes.until != INT64_MAX)
    columns: dict[str, Column] = {
        **_where(trace, closes.at, pa.array(["final"] * len(closes.at), pa.string())),
        "key": trace.keys.take(pa.array(trace.window_columns.key[closes.window])),
        "window_start_ms": closes.start_ms,
        "window_end_ms": closes.end_ms,
    }
    for name, fold in outcome.folds.items():
        values = fold.results(closes.window)
        columns[name] = _as_they_were(values, outcome, trace, name, reopened) if len(reopened) else values
    return {**columns, "timestamp_ms": closes.end_ms}


def _as_they_were(
    values: pa.Array | npt.NDArray[np.object_],
    outcome: Outcome,
    trace: SessionTrace,
    name: str,
    reopened: npt.NDArray[np.intp],
) -> pa.Array | npt.NDArray[np.object_]:
    """`values` with those of re-opened windows replaced by what they were when the window closed for the first time."""
    closes, fold = trace.closes, outcome.folds[name]
    order = reopened[np.argsort(closes.until[reopened], kind="stable")]
    touch = last_touches(trace.window, trace.merges, closes.until[order], closes.window[order])
    running, first = _running(fold, trace), fold.loaded_results()
    out = values.to_pylist() if isinstance(values, pa.Array) else values.copy()
    for place, at, row in zip(order.tolist(), touch.tolist(), closes.window[order].tolist(), strict=True):
        source, index = (running, at) if at >= 0 else (first, row)
        out[place] = source[index].as_py() if isinstance(source, pa.Array) else source[index]
    return pa.array(out, values.type) if isinstance(values, pa.Array) else out


def _running(fold: Any, trace: SessionTrace) -> pa.Array | npt.NDArray[np.object_]:
    return fold.running(trace.window, trace.decision, trace.merges)


def _blanked(
    values: pa.Array | npt.NDArray[np.object_], at: npt.NDArray[np.int64], tombstone: npt.NDArray[np.bool_]
) -> pa.Array | npt.NDArray[np.object_]:
    if isinstance(values, pa.Array):
        return values.take(pa.array(at, mask=tombstone))
    out = values[at]
    out[tombstone] = None
    return out


def _where(trace: Trace, at: npt.NDArray[np.int64], what: pa.Array) -> dict[str, Column]:
    batch = trace.batch
    return {"partition": batch.partitions[batch.partition[at]], "offset": batch.offset[at], "what": what}


def are_equal(one: Any, other: Any) -> bool:
    """True if two results are equal: whatever they hold, and what is not a number on both sides is the same."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and are_equal(one.tolist(), other.tolist())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(value, other[name]) for name, value in one.items())
    return bool(one == other or (one != one and other != other))


def forwarded_table(outcome: Outcome, forwarded: Sequence[Forwarded], *, old_values: bool) -> dict[str, Column]:
    """What the processor forwarded, as the same columns as `updates` and `finals`."""
    batch = outcome.batch
    at = np.array([row.at for row in forwarded], np.int64)
    results = [row.result for row in forwarded]
    columns: dict[str, Column] = {
        "partition": batch.partitions[np.array([row.partition for row in forwarded], np.int64)],
        "offset": batch.offset[at],
        "what": pa.array([result.what for result in results], pa.string()),
        "key": pa.array([row.key for row in forwarded], outcome.keys.type),
        "window_start_ms": np.array([result.window_start_ms for result in results], np.int64),
        "window_end_ms": np.array([result.window_end_ms for result in results], np.int64),
        **_of_aggregates(outcome, [result.aggregate for result in results]),
    }
    if old_values:
        old = _of_aggregates(outcome, [result.old for result in results])
        columns.update({f"old_{name}": column for name, column in old.items()})
    return {**columns, "timestamp_ms": np.array([result.timestamp_ms for result in results], np.int64)}


def _of_aggregates(outcome: Outcome, aggregates: list[Any]) -> dict[str, Column]:
    single = len(outcome.folds) == 1
    columns = {}
    for name, fold in outcome.folds.items():
        values = [each if single or each is None else each[name] for each in aggregates]
        columns[name] = fold.column(values)  # type: ignore[union-attr]
    return columns


def dropped_records(trace: SessionTrace) -> pa.Table:
    """The records that count in no session, with the reason."""
    return trace.records(np.flatnonzero(~trace.accepted)).drop_columns(["decision", "window_id", "merged_count"])


def dropped_at(trace: SessionTrace | WindowTrace) -> npt.NDArray[np.intp]:
    """The record of each drop: for windows of one length first those that came too late for one, once for each."""
    if not isinstance(trace, WindowTrace):
        return np.flatnonzero(~trace.accepted)
    return np.concatenate([trace.missed.record, np.flatnonzero(~trace.accepted & (trace.decision != LATE))])


def dropped_touches(trace: WindowTrace) -> pa.Table:
    """One row for each closed window that a record came too late for, and for each record dropped for another reason.

    `missing_grace_ms` is by how much the window had closed too early for the record, `enough_grace_ms` the grace under
    which it would have been open still.
    """
    batch, missed, at = trace.batch, trace.missed, dropped_at(trace)
    late = np.arange(len(at)) < len(missed.record)
    start_ms = np.concatenate([missed.start_ms, np.zeros(len(at) - len(missed.record), np.int64)])
    end_ms = start_ms + trace.length_ms
    missing = np.append(trace.missing_ms, np.zeros(len(at) - len(missed.record), np.int64))
    table = pa.table(
        {
            "partition": batch.partitions[batch.partition[at]],
            "offset": batch.offset[at],
            "key": trace.keys.take(pa.array(batch.key[at], mask=batch.key[at] < 0)),
            "timestamp_ms": pa.array(batch.timestamp_ms[at], mask=trace.decision[at] == BAD_TIME),
            "stream_time_ms": trace.stream_time_ms[at],
            "reason": words(np.where(late, np.uint8(LATE), trace.decision[at]), REASONS),
            "window_start_ms": pa.array(start_ms, mask=~late),
            "window_end_ms": pa.array(end_ms, mask=~late),
            "missing_grace_ms": pa.array(missing, mask=~late),
            "enough_grace_ms": pa.array(missing + trace.close_lag_ms, mask=~late),
        }
    )
    return table.take(pa.array(np.argsort(at, kind="stable")))


def losses(trace: Any, most: int | None = None) -> pa.Table:
    """key, records, late, share, merges of each key: those that lose most first, then those with most records."""
    known = trace.batch.key >= 0
    key, size = trace.batch.key[known], len(trace.keys)
    late, merged = trace.decision[known] == LATE, trace.decision[known] == MERGED
    if isinstance(trace, WindowTrace):
        late |= np.bincount(trace.missed.record, minlength=len(trace))[known] > 0
    records, lost, merges = (np.bincount(key[mask], minlength=size) for mask in (key >= 0, late, merged))
    order = np.lexsort((np.arange(size), -records, -lost))[:most]
    share = np.divide(lost, records, out=np.zeros(size), where=records > 0)
    columns = {"records": records, "late": lost, "share": share, "merges": merges}
    return pa.table({"key": trace.keys.take(pa.array(order)), **{name: each[order] for name, each in columns.items()}})


def metrics(outcome: Outcome, final_count: int, refused_count: int, *, null_values: bool = False) -> dict[str, int]:
    """Counters, Kafka's names first; those of one reason or decision behind them.

    `null_values` says whether windows of this kind drop records without a value.
    """
    seen = outcome.dropped
    shown = {code: word for code, word in REASONS.items() if code != REPLAYED and (null_values or code != NULL_VALUE)}
    reasons = {f"dropped-{word.replace('_', '-')}": seen.get(code, 0) for code, word in shown.items()}
    reasons["dropped-late"] = outcome.missed_count
    alive = (outcome.window_columns.merged_into < 0) & is_result(outcome)
    return {
        "dropped-records-total": sum(reasons.values()) + refused_count,
        "window-aggregate-final-emit-total": final_count,
        "process-total": sum(seen.values()),
        **reasons,
        "dropped-expired": refused_count,
        "replayed-records": seen.get(REPLAYED, 0),
        "windows": int(alive.sum()),
        "windows-open": int((alive & ~outcome.closed).sum()),
        "windows-closed": int((alive & outcome.closed).sum()),
        "windows-merged": outcome.merge_count,
    }
