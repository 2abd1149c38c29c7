"""The tables of a run: windows, changelog, metrics, losses. Each is a view of the trace and its folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Codes, Longs, Rows, arrow_array, arrow_table, joined, repeated, taken, texts
from sessionkit.base.decisions import AHEAD, MERGED, NULL_VALUE, REASONS, REPLAYED
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.process import in_threads
from sessionkit.base.result_columns import TIMES
from sessionkit.deployed.compiled.sent import ResultsOfLives, SentResults
from sessionkit.deployed.recorder import Forwarded
from sessionkit.engine.outcome import FinishedWindows, Outcome
from sessionkit.engine.sent_values import results_after, results_at_steps, results_sent, weights_of, with_nulls
from sessionkit.errors import UnsupportedData, errors_as
from sessionkit.records.batch import RecordBatch
from sessionkit.records.frames import to_frame
from sessionkit.records.source import Source
from sessionkit.trace.loops import are_few_places, grouped, last_touches, order_by_place
from sessionkit.trace.sent import SENT_BY, WHATS, Sent
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace, status_words
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.loops import shown_places
from sessionkit.windows.contract import WindowKind

Column = Any  # an Arrow array, a NumPy one, or one of Python objects
MANY_ROWS = 100_000  # from here on threads gain more than they cost


def frame_of(columns: Mapping[str, Column] | pa.Table, batch: RecordBatch, times: Mapping[str, str] = TIMES) -> Any:
    """The columns as the user's own kind of frame, with keys and times as the plan shows them.

    `times` are the columns that hold milliseconds since the epoch, and their names as timestamps.
    """
    if isinstance(columns, pa.Table):
        columns = dict(zip(columns.column_names, columns.columns, strict=True))
    shown, frame = batch.form.shown(columns, times), batch.frame
    objects = {name: c for name, c in shown.items() if isinstance(c, np.ndarray) and c.dtype == object}
    table = arrow_table({name: c if name not in objects else pa.nulls(len(c)) for name, c in shown.items()})
    if frame == "pandas":  # Python objects stay objects
        import pandas as pd

        result = to_frame(table, frame)
        for name, column in objects.items():
            result[name] = pd.Series(column, result.index, object)
        return result
    for name, column in objects.items():
        what = f"the results of {name!r} do not fit into one Arrow column"
        want = "return one type from the functions, or give a pandas frame, whose columns hold any object"
        with errors_as(UnsupportedData, what, want, (pa.ArrowException, OverflowError, UnicodeError)):
            table = table.set_column(table.column_names.index(name), name, pa.array(column.tolist()))
    return to_frame(table, frame)


def table_rows(outcome: Outcome) -> Rows:
    """The windows that `table()` shows, by partition, key bytes and start.

    Left out: what was absorbed, and what came out of a store closed and was not touched.
    """
    assert outcome.finished is None, "a run in bands has its windows in order"
    windows = outcome.window_columns
    keys, partitions = max(1, len(outcome.keys)), max(1, len(outcome.batch.partitions))
    few = are_few_places(keys * partitions, len(windows.key))
    merged, before = windows.merged_into, windows.closed_before
    rows, place = shown_places(
        outcome.key_ranks, keys if few else 0, windows.key, windows.partition, merged, before, outcome.is_result
    )
    are_all = len(rows) == len(windows.key)
    start_ms = windows.start_ms if are_all else windows.start_ms[rows]
    order = order_by_place(place, keys * partitions if few else keys, start_ms)
    if not few:
        order = order[grouped(windows.partition[rows[order]], partitions)[1]]
    return order if are_all else rows[order]


def final_count(outcome: Outcome) -> int:
    """How many final results the run sent."""
    return int(outcome.is_result[outcome.kept_trace.closes.window].sum())


def sent_count(outcome: Outcome, strategy: str) -> int:
    """How many rows the changelog has under this emit strategy."""
    return final_count(outcome) if strategy == "on_window_close" else outcome.kept_trace.sent_on_update


def _keys(outcome: Outcome, codes: Codes) -> pa.Array:
    """The keys of these codes, in the type that they are shown in where that is known now: of fewer keys than rows."""
    return outcome.batch.form.distinct(outcome.keys, len(codes)).take(arrow_array(codes))


def whole_table(outcome: Outcome) -> dict[str, Column]:
    """The table of a run; of one in bands in pieces, which are not copied to be one."""
    if outcome.finished is None:
        return window_table(outcome, table_rows(outcome))
    keys, numbers = outcome.batch.form.distinct(outcome.keys, outcome.result_count), outcome.batch.partitions
    longest = max(len(band.key) for band in outcome.finished)

    @cache
    def same(code: int) -> pa.Array:
        return arrow_array(np.full(longest, numbers[code]))

    def partition(codes: Codes) -> pa.Array:
        """Bands are ordered by partition, so that nearly all are in one: their columns share their memory."""
        is_one = len(codes) > 0 and codes[0] == codes[-1]
        return same(int(codes[0])).slice(0, len(codes)) if is_one else arrow_array(numbers[codes])

    def columns(band: FinishedWindows) -> dict[str, Column]:
        return {
            "key": keys.take(arrow_array(band.key)),
            "window_start_ms": arrow_array(band.start_ms),
            "window_end_ms": arrow_array(band.end_ms),
            **band.results,
            "status": status_words(np.zeros(len(band.key), np.bool_), band.closed),
            "partition": partition(band.partition),
        }

    pieces = in_threads(columns, outcome.finished)
    return {name: pa.chunked_array([piece[name] for piece in pieces]) for name in pieces[0]}


def window_table(outcome: Outcome, rows: Rows) -> dict[str, Column]:
    """key, window_start_ms, window_end_ms, one column an aggregation, status, partition."""
    windows = outcome.window_columns
    made: dict[str, Callable[[], Column]] = {
        "key": lambda: _keys(outcome, windows.key[rows]),
        "window_start_ms": lambda: windows.start_ms[rows],
        "window_end_ms": lambda: windows.end_ms[rows],
        **{name: partial(fold.results, rows) for name, fold in outcome.folds.items()},
        "status": lambda: status_words(windows.merged_into[rows] >= 0, outcome.closed[rows]),
        "partition": lambda: outcome.batch.partitions[windows.partition[rows]],
    }
    if len(rows) < MANY_ROWS:
        return {name: make() for name, make in made.items()}
    return dict(zip(made, in_threads(lambda make: make(), made.values()), strict=True))


def _by(outcome: Outcome, at: Longs) -> dict[str, Column]:
    """The partition and the offset of the records in these rows."""
    batch = outcome.batch
    return {"partition": batch.partitions[batch.partition[at]], "offset": batch.offset[at]}


def _results(
    what: pa.Array,
    key: pa.Array,
    start_ms: Column,
    end_ms: Column,
    results: Mapping[str, Column],
    timestamp_ms: Column,
    old: Mapping[str, Column],
    prefix: str = "old_",
) -> dict[str, Column]:
    """The columns of a changelog behind the record that each row came with."""
    return {
        "what": what,
        "key": key,
        "window_start_ms": start_ms,
        "window_end_ms": end_ms,
        **results,
        **{f"{prefix}{name}": column for name, column in old.items()},
        "timestamp_ms": timestamp_ms,
    }


def sent_table(outcome: Outcome, sent: Sent, *, old_values: bool, prefix: str = "old_") -> dict[str, Column]:
    """Results that were sent, in the columns of `changelog`; old values are called as these, behind the prefix."""
    trace: SessionTrace | WindowTrace = outcome.kept_trace
    results = results_sent(outcome, sent)
    if not old_values:
        old = {}
    elif sent.stays:
        old = _nothing_replaced(results)
    else:
        old = results_after(outcome, results_at_steps(outcome), sent.old(), sent.window)
    what = pa.DictionaryArray.from_arrays(arrow_array(sent.what.view(np.int8)), texts(WHATS)).cast(pa.string())
    key = _keys(outcome, trace.window_columns.key[sent.window])
    rows = _results(what, key, sent.start_ms, sent.end_ms, results, sent.timestamp_ms, old, prefix)
    return _by(outcome, sent.at) | rows


def _nothing_replaced(results: Mapping[str, Column]) -> dict[str, Column]:
    nowhere = np.zeros(len(next(iter(results.values()), ())), np.int64)
    return with_nulls(results, nowhere, nowhere == 0)


def window_finals(outcome: Outcome, trace: WindowTrace, *, old_values: bool = False) -> dict[str, Column]:
    """Time and sliding windows that go downstream on close: by the record that closed them, start and key bytes."""
    closes, windows = trace.closes, trace.window_columns
    shown = outcome.is_result[closes.window]
    at, row = closes.at[shown], closes.window[shown]
    results = {name: fold.results(row) for name, fold in outcome.folds.items()}
    what, key, start_ms = repeated("final", len(at)), _keys(outcome, windows.key[row]), windows.start_ms[row]
    old = _nothing_replaced(results) if old_values else {}
    rows = _results(what, key, start_ms, windows.end_ms[row], results, windows.timestamp_ms[row], old)
    return _by(outcome, at) | rows


def session_finals(outcome: Outcome, trace: SessionTrace, *, old_values: bool = False) -> dict[str, Column]:
    """Sessions that go downstream on close: each once it is final, by the record that closed it, end and key bytes."""
    closes, results = trace.closes, {name: fold.results(trace.closes.window) for name, fold in outcome.folds.items()}
    reopened = np.flatnonzero(closes.until != INT64_MAX)
    if len(reopened):  # what they were when they closed for the first time
        order = reopened[np.argsort(closes.until[reopened], kind="stable")]
        touch = last_touches(trace.window, closes.until[order], closes.window[order])
        place = np.arange(len(closes.at))
        place[order] = len(place) + np.arange(len(order))
        were = results_after(outcome, results_at_steps(outcome), touch, closes.window[order])
        results = taken(joined(results, were), place)
    what, key = repeated("final", len(closes.at)), _keys(outcome, trace.window_columns.key[closes.window])
    old = _nothing_replaced(results) if old_values else {}
    rows = _results(what, key, closes.start_ms, closes.end_ms, results, closes.end_ms, old)
    return _by(outcome, closes.at) | rows


def weighed_updates(outcome: Outcome, named: Mapping[str, Aggregation]) -> dict[str, Column]:
    """The changelog on update, with the bytes of each result as a buffer of suppress counts them."""
    trace = outcome.kept_trace
    sent = SENT_BY[type(trace)](trace)
    return sent_table(outcome, sent, old_values=False) | weights_of(outcome, sent, named)


FINALS: dict[type[Trace], Callable[..., dict[str, Column]]] = {
    SessionTrace: session_finals,
    WindowTrace: window_finals,
}


def changelog(outcome: Outcome, strategy: str, *, old_values: bool = False) -> dict[str, Column]:
    """What goes downstream under this emit strategy, as far as the trace tells.

    With `old_values`, a column `old_…` for each result holds what the row replaces; a final replaces nothing.
    """
    trace = outcome.kept_trace
    if strategy == "on_window_update":
        return sent_table(outcome, SENT_BY[type(trace)](trace), old_values=old_values)
    return FINALS[type(trace)](outcome, trace, old_values=old_values)


def forwarded_table(outcome: Outcome, forwarded: Sequence[Forwarded], *, old_values: bool) -> dict[str, Column]:
    """What a deployment forwarded, in the columns of `changelog`."""
    if isinstance(forwarded, SentResults):
        return sent_table(outcome, forwarded.sent, old_values=old_values)
    if isinstance(forwarded, ResultsOfLives):
        return _table_of_lives(outcome, forwarded, old_values=old_values)
    results, batch = [row.result for row in forwarded], outcome.batch
    offset = [batch.offset[row.at] if row.offset < 0 else row.offset for row in forwarded]
    columns = _results(
        pa.array([result.what for result in results], pa.string()),
        pa.array([row.key for row in forwarded], outcome.keys.type),
        np.array([result.window_start_ms for result in results], np.int64),
        np.array([result.window_end_ms for result in results], np.int64),
        _of_aggregates(outcome, [result.aggregate for result in results]),
        np.array([result.timestamp_ms for result in results], np.int64),
        _of_aggregates(outcome, [result.old for result in results]) if old_values else {},
    )
    # a restart may send what no record of its partition did
    partition = batch.partitions[np.array([row.partition for row in forwarded], np.int64)]
    return {"partition": partition, "offset": np.array(offset, np.int64), **columns}


def _table_of_lives(outcome: Outcome, forwarded: ResultsOfLives, *, old_values: bool) -> dict[str, Column]:
    places, parts = [], []
    for place, results, sent in forwarded.parts:
        places.append(place)
        parts.append(sent_table(results.outcome, sent, old_values=old_values))
    columns = taken(joined(*parts), np.argsort(np.concatenate(places)))
    if forwarded.sent_at is not None:
        columns["offset"] = outcome.batch.offset[forwarded.sent_at()]
    return columns


def _of_aggregates(outcome: Outcome, aggregates: list[Any]) -> dict[str, Column]:
    single = len(outcome.folds) == 1
    columns = {}
    for name, fold in outcome.folds.items():
        values = [each if single or each is None else each[name] for each in aggregates]
        columns[name] = fold.column(values)  # type: ignore[union-attr]
    return columns


def losses(trace: Trace, most: int | None = None) -> pa.Table:
    """key, records, late, share, merges of each key: those that lose most first, then those with most records."""
    known = trace.batch.key >= 0
    key, size = trace.batch.key[known], len(trace.keys)
    late, merged = trace.late_for_some[known], trace.decision[known] == MERGED
    records, lost, merges = (np.bincount(key[mask], minlength=size) for mask in (key >= 0, late, merged))
    order = np.lexsort((np.arange(size), -records, -lost))[:most]
    share = np.divide(lost, records, out=np.zeros(size), where=records > 0)
    columns = {"records": records, "late": lost, "share": share, "merges": merges}
    chosen = {name: each[order] for name, each in columns.items()}
    return arrow_table({"key": trace.keys.take(arrow_array(order)), **chosen})


def metrics(
    outcome: Outcome, final_count: int, refused_count: int, windows: WindowKind, source: Source
) -> dict[str, int]:
    """Counters, Kafka's names first; those of one reason or decision behind them, as far as the plan has it."""
    seen, unasked = outcome.dropped, {REPLAYED}
    unasked |= {NULL_VALUE} if windows.takes_null_values else set()
    unasked |= {AHEAD} if source.max_ahead is None else set()
    shown = {code: word for code, word in REASONS.items() if code not in unasked}
    reasons = {f"dropped-{word.replace('_', '-')}": seen.get(code, 0) for code, word in shown.items()}
    records_dropped = sum(reasons.values())
    reasons["dropped-late"] = outcome.missed_count  # Kafka counts a record once for each window that it misses
    return {
        "dropped-records-total": sum(reasons.values()) + refused_count,
        "records-dropped": records_dropped,
        "window-aggregate-final-emit-total": final_count,
        "process-total": sum(seen.values()),
        **reasons,
        "dropped-expired": refused_count,
        "replayed-records": seen.get(REPLAYED, 0),
        "windows": outcome.result_count,
        "windows-open": outcome.result_count - outcome.closed_count,
        "windows-closed": outcome.closed_count,
        "windows-merged": outcome.merge_count,
    }
