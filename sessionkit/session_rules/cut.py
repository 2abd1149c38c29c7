"""The sessions of rows that are all there, by rules: what `sessionize` puts beside each row."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Codes, Flags, Longs, arrow_array, is_null, numpy_array, read_only, texts
from sessionkit.base.durations import DAY, INT64_MAX, MAX_DURATION_MS, check_reach, exact_ms
from sessionkit.base.moments import clock_changes
from sessionkit.base.process import in_threads, shares, side_by_side
from sessionkit.errors import InvalidArgument, InvalidData, UnsupportedData, attempted, errors_as, problem, shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.finer_times import beyond_milliseconds
from sessionkit.records.inputs.opened import Opened
from sessionkit.records.inputs.plain_columns import plain_table
from sessionkit.records.keys import place_among
from sessionkit.records.row_names import row_name, rows_moved
from sessionkit.records.source import Source
from sessionkit.records.time_text import is_text_type
from sessionkit.records.times import FINER, PER_SECOND, to_milliseconds
from sessionkit.session_rules.loops import (
    GOES_ON,
    Rows,
    Sessions,
    cut_sessions,
    number_sessions,
    room_for,
)
from sessionkit.session_rules.order import order_of_rows
from sessionkit.session_rules.rules import NO_LIMIT, Event, SessionRules
from sessionkit.trace.loops import are_few_places, order_of_windows
from sessionkit.views.loops import tell_rows
from sessionkit.views.words import unit_remarks
from sessionkit.windows.contract import WindowKind

Span = tuple[int, int]  # of sessions: from, up to
Unmet = dict[tuple[str, Any], str]  # what no row meets, and words on it
_GAP_OF = "gap of"
_UNITS = {number: unit for unit, number in FINER.items()}
_LAST_NS_MS = INT64_MAX // 1_000_000 - 30 * DAY  # of the times that can be told in nanoseconds
_NO_LONGS, _NO_FLAGS = np.empty(0, np.int64), np.empty(0, np.bool_)


def cut_by_rules(
    opened: Opened,
    batch: RecordBatch,
    rules: SessionRules,
    source: Source,
    *,
    zone: str,
    offset: str | None = None,
    unmet: Unmet | None = None,
) -> pa.Table:
    """The columns of `views.assignment.assigned`, and with a rule what ended each session.

    Where times are finer than a millisecond, start and end are timestamps as fine as they, without `_ms` in the names.

    Args:
        opened: with the columns of the rules; `offset` is the one by which rows of equal time are ordered.
        zone: in which days begin.
        unmet: gets each part of a rule that no row meets.
    """
    table = plain_table(
        opened.table.select(list(dict.fromkeys([source.timestamp, *rules.columns(), *([offset] if offset else [])])))
    )
    slot, names = _slots(batch)
    times = _times(table, batch, rules, source, slot)
    latest = int((times.until if len(times.until) else times.time).max(initial=0))
    gap = _gaps(table, batch, rules, slot, times.per_ms)
    if times.per_ms == 1:
        check_reach(latest, int(gap.max(initial=0)), "gap")
    day_starts = _day_starts(rules, batch, slot, zone) * times.per_ms
    orders, values = side_by_side(
        lambda: order_of_rows(table, slot, len(names), times.time, offset),
        lambda: _values(opened, table, rules.new_when, len(batch)),
    )
    rows = Rows(
        order=_NO_LONGS,
        slot=read_only(slot),
        time=read_only(times.time),
        until=read_only(times.until),
        gap=read_only(np.minimum(gap, INT64_MAX - latest)),
        values=read_only(values),
        starts=read_only(_happens(table, rules.starts_when, "starts_when")),
        ends=read_only(_happens(table, rules.ends_when, "ends_when")),
        day_starts=read_only(day_starts),
    )
    if unmet is not None:
        unmet.update(_without_rows(rules, table, rows, batch.keys))
    return _cut(rows, orders, batch, names, rules, times.per_ms)


def days_remarks(rules: SessionRules, windows: WindowKind, batch: RecordBatch, added: pa.Table) -> list[str]:
    """`unit_remarks` on rows with these added columns: none where some are finer than a millisecond."""
    is_finer = "session_start_ms" not in added.column_names
    return [] if rules.gap_column or is_finer else unit_remarks(windows, batch)


def _cut(
    rows: Rows, orders: list[Longs], batch: RecordBatch, names: Longs, rules: SessionRules, per_ms: int
) -> pa.Table:
    count, slots = len(rows.time), len(names)
    state, sessions, told = room_for(slots, len(rules.new_when), count)
    found, position = np.full(count, -1, np.int32), np.zeros(count, np.int64)
    max_length = int(min(rules.max_length_ms * per_ms, NO_LIMIT))
    firsts = np.cumsum([0, *map(len, orders)]).tolist()

    def cut(first: int, order: Longs) -> Span:
        part = rows._replace(order=read_only(order))
        return first, first + cut_sessions(part, state, sessions, first, max_length, rules.max_rows, found, position)

    parts = in_threads(lambda part: cut(*part), zip(firsts, orders, strict=False))
    _number(sessions, parts, state.opened, names, batch)
    columns = [np.empty(count, np.int64) for _ in range(4)]
    ended = np.full(count, GOES_ON, np.int8)

    def tell(part: slice) -> None:
        tell_rows(found[part], told, *(column[part] for column in columns))
        if rules.cuts and count:
            ended[part] = np.where(found[part] < 0, np.int8(GOES_ON), sessions.ended_by[found[part]])

    in_threads(tell, shares(count))
    none = found < 0
    mask = none if none.any() else None
    added = {name: arrow_array(column, mask) for name, column in zip(_NAMES, [*columns, position], strict=True)}
    added["late"] = pa.repeat(False, count)
    if per_ms > 1:
        kind = pa.timestamp(_UNITS[per_ms], batch.timezone)
        added = {
            name.removesuffix("_ms"): column.cast(kind) if name.endswith("_ms") else column
            for name, column in added.items()
        }
    if rules.cuts:
        codes = arrow_array(ended, ended < 0)
        added["session_ended_by"] = pa.DictionaryArray.from_arrays(codes, texts(rules.reasons()))
    return pa.table(added)


def _number(sessions: Sessions, parts: list[Span], opened: Longs, names: Longs, batch: RecordBatch) -> None:
    """Numbers sessions, which lie in these parts, by the bytes of their key, then by start, then by partition."""
    keys = len(batch.keys)
    if not keys:
        return
    rank = batch.key_ranks[names % keys]
    if len(batch.partitions) < 2:
        first = np.zeros(keys + 1, np.int64)
        first[rank + 1] = opened
        following = np.cumsum(first)[rank]
        in_threads(lambda part: number_sessions(sessions, *part, following), parts)
        return
    found = np.concatenate([np.arange(*part) for part in parts])
    slot, start = sessions.slot[found], sessions.start[found]
    sessions.number[found[order_of_windows(rank[slot], keys, start, names[slot] // keys)]] = np.arange(len(found))


_NAMES = ["session_id", "session_start_ms", "session_end_ms", "session_rows", "position_in_session"]


def _slots(batch: RecordBatch) -> tuple[Longs, Longs]:
    """(slot of each row, what each slot stands for): a key in a partition, -1 for a row that is in no session."""
    keys = max(1, len(batch.keys))
    slot = batch.key.astype(np.int64)
    if len(batch.partitions) > 1:
        slot += keys * batch.partition.astype(np.int64)
    if batch.rejected is not None:
        slot[batch.rejected > 0] = -1
    places = keys * max(1, len(batch.partitions))
    if are_few_places(places, len(slot)):
        return slot, np.arange(places)
    names, slot = np.unique(slot, return_inverse=True)
    return (slot - 1, names[1:]) if names[0] < 0 else (slot, names)


class _Times(NamedTuple):
    """Times as whole numbers, of which `per_ms` make a millisecond: more than one where any time is finer."""

    time: Longs
    until: Longs
    per_ms: int


def _times(table: pa.Table, batch: RecordBatch, rules: SessionRules, source: Source, slot: Longs) -> _Times:
    time_ms, column = batch.timestamp_ms, table[source.timestamp]
    times = {"time": (time_ms, beyond_milliseconds(column, source))}
    if rules.until is not None:
        times["until"] = _untils(table[rules.until], rules.until, source, *times["time"])
    rests = [rest for _, rest in times.values() if rest is not None]
    per_ms = 1
    if rests:
        farthest = max(int(np.abs(each).max(initial=0)) for each, _ in times.values())
        is_finest = farthest <= _LAST_NS_MS and any((rest % 1_000).any() for rest in rests)
        per_ms = 1_000_000 if is_finest else 1_000
    exact = {name: each if rest is None and per_ms == 1 else each * per_ms for name, (each, rest) in times.items()}
    for name, (_, rest) in times.items():
        if rest is not None:
            exact[name] += rest // (1_000_000 // per_ms)
    found = _Times(exact["time"], exact.get("until", _NO_LONGS), per_ms)
    before = np.flatnonzero((found.until < found.time) & (slot >= 0)) if rules.until is not None else _NO_LONGS
    if len(before):
        got = f"{len(before):,}, the first in {row_name(int(before[0]))}"
        want = "an end that is not before the beginning, or a missing one for an event of one moment"
        raise InvalidData(problem(f"column {rules.until!r} has ends before column {source.timestamp!r}", got, want))
    return found


def _untils(
    column: pa.ChunkedArray, name: str, source: Source, time_ms: Longs, rest: Longs | None
) -> tuple[Longs, Longs | None]:
    """The ends in milliseconds, and what they have beyond these; a row without one ends at its time."""
    given = np.flatnonzero(~is_null(column))
    clock, told = dataclasses.replace(source, timestamp=name), column.take(arrow_array(given))
    until_ms = time_ms.copy()
    with rows_moved(given):
        until_ms[given] = to_milliseconds(told, clock)[0]
    own = beyond_milliseconds(told, clock)
    if own is None and rest is None:
        return until_ms, None
    until_rest = np.zeros(len(column), np.int64) if rest is None else rest.copy()
    until_rest[given] = 0 if own is None else own
    return until_ms, until_rest


def _gaps(table: pa.Table, batch: RecordBatch, rules: SessionRules, slot: Longs, per_ms: int) -> Longs:
    """One gap, or one for each row. What is finer than the times is left out: no pause tells it."""
    if rules.gap_column is not None:
        return _lengths(table[rules.gap_column], rules.gap_column, slot, per_ms)
    if not rules.gap_of_key:
        return np.array([_whole(rules.gap_ms, per_ms)])
    of_key, named = dict(rules.gap_of_key), np.full(max(1, len(batch.keys)), -1, np.int64)
    named[:] = _whole(of_key.pop(None, Fraction(-1)), per_ms)
    for key, gap_ms in of_key.items():
        code = place_among(batch.keys, key)
        if code >= 0:
            named[code] = _whole(gap_ms, per_ms)
    gap = named[batch.key]
    without = np.flatnonzero((gap < 0) & (slot >= 0))
    if len(without):
        row = int(without[0])
        want = "a gap for each key, or None: a length for all others"
        got = f"{shorten(repr(batch.key_at(row)))} in {row_name(row)}"
        raise InvalidData(problem("gap={…} lacks a key of the data", got, want))
    return gap if len(gap) > 1 else np.maximum(gap, 0)


def _whole(length_ms: Fraction, per_ms: int) -> int:
    return min(floor(length_ms * per_ms), MAX_DURATION_MS)


def _lengths(column: pa.ChunkedArray, name: str, slot: Longs, per_ms: int) -> Longs:
    """The lengths in a column of durations or texts."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_duration(kind):
        finer = Fraction(1_000 * per_ms, PER_SECOND[column.type.unit])
        most = MAX_DURATION_MS * finer.denominator // finer.numerator
        raw = np.minimum(numpy_array(column.cast(pa.int64()), absent=-1), min(most, INT64_MAX))
        gaps = raw * finer.numerator // finer.denominator
    elif is_text_type(kind) or pa.types.is_null(kind):
        codes, lengths = coded(column, name)
        words = lengths.to_pylist()
        each = [-1 if text is None else _whole(exact_ms(text, f"gap in column {name!r}"), per_ms) for text in words]
        gaps = np.array([*each, -1], np.int64)[codes]
    else:
        want = (
            f"a column of durations, df[{name!r}] = pandas.to_timedelta(df[{name!r}], unit='s'), or of texts as '10m'"
        )
        raise UnsupportedData(problem(f"column {name!r} must hold lengths of time", column.type, want))
    bad = np.flatnonzero((gaps < 0) & (slot >= 0))
    if len(bad):
        got = f"{len(bad):,}, the first in {row_name(int(bad[0]))}"
        raise InvalidData(
            problem(f"column {name!r} has gaps that are missing or negative", got, "a length in each row")
        )
    return np.maximum(gaps, 0)


def _values(opened: Opened, table: pa.Table, names: tuple[str, ...], count: int) -> Codes:
    """A number for each value of these columns, the same for the same value; -1 for a missing one."""
    found = np.empty((len(names), count), np.int32)
    for place, name in enumerate(names):
        column = table[name]
        if name in opened.objects:
            raise UnsupportedData(
                problem(f"column {name!r} holds objects", "new_when", "a column of values of one type")
            )
        found[place] = coded(column, name)[0]
    return found


def coded(column: pa.ChunkedArray, name: str) -> tuple[Codes, pa.Array]:
    """(code of each row, values): -1 for a missing value and for NaN, which are among the values of no code.

    Raises:
        UnsupportedData: the values cannot be compared.
    """
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_null(column.type) or not len(column):
        return np.full(len(column), -1, np.int32), pa.nulls(0)
    what, want = f"column {name!r} cannot be compared", "a column of text, numbers, times or truths"
    with errors_as(UnsupportedData, what, want, pa.ArrowException):
        whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        whole = whole.combine_chunks()
    return numpy_array(whole.indices.cast(pa.int32()), absent=-1), whole.dictionary


def _happens(table: pa.Table, event: Event | None, rule: str) -> Flags:
    if event is None:
        return _NO_FLAGS
    name, values = event
    column = table[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.bool_)
    wanted = attempted(pa.array, list(values), kind, but=(pa.ArrowException, TypeError, ValueError, OverflowError))
    if wanted is None:
        want = f"{rule}=({name!r}, a value of this column)"
        raise InvalidArgument(problem(f"column {name!r} of {kind} has no such value", shorten(repr(values)), want))
    if len(wanted) == 1 and pc.equal(wanted[0], wanted[0]).as_py():  # neither missing nor NaN: ten times as fast
        return numpy_array(pc.equal(column, wanted[0]).fill_null(False))
    return numpy_array(pc.is_in(column, value_set=wanted))


def _without_rows(rules: SessionRules, table: pa.Table, rows: Rows, keys: pa.Array) -> Unmet:
    """Gaps of keys that no row has, and events that no row is: they may be written otherwise."""
    named = (key for key, _ in rules.gap_of_key if key is not None)
    unmet: Unmet = {(_GAP_OF, key): repr(key) for key in named if place_among(keys, key) < 0}
    events = (("starts_when", rules.starts_when, rows.starts), ("ends_when", rules.ends_when, rows.ends))
    for rule, event, happens in events:
        if event is not None and len(happens) and not happens.any():
            name, values = event
            have = [each for each in pc.unique(table[name]).slice(0, 5).to_pylist() if each is not None]
            wanted = " or ".join(repr(value) for value in values)
            what = f"{rule} applies to no row: none has {shorten(wanted)} in column {name!r}"
            unmet[rule, name] = f"{what}, whose first values are {shorten(', '.join(map(repr, have)))}."
    return unmet


def words_of(unmet: Unmet) -> list[str]:
    """A sentence on all gaps of keys that no row has, and those on events."""
    unknown = [said for (what, _), said in unmet.items() if what == _GAP_OF]
    remarks = [f"gap={{…}} names keys that no row has: {shorten(', '.join(unknown))}."] if unknown else []
    return remarks + [said for (what, _), said in unmet.items() if what != _GAP_OF]


def _day_starts(rules: SessionRules, batch: RecordBatch, slot: Longs, zone: str) -> Longs:
    """When days begin in the zone, from one that is not after all times to one that is behind them."""
    if rules.new_at_ms is None:
        return _NO_LONGS
    times_ms = batch.timestamp_ms if batch.rejected is None else batch.timestamp_ms[slot >= 0]
    if not len(times_ms):
        return _NO_LONGS
    low, high = int(times_ms.min()), int(times_ms.max())
    days = np.arange(low // DAY - 2, high // DAY + 4)
    return clock_changes(zone, high + 7 * DAY, min(0, low - 7 * DAY)).first_at(days * DAY + rules.new_at_ms)
