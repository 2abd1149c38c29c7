"""Words and phrases that several views say."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sessionkit.aggregations.contract import BUILT_INS, Aggregation, columns_read
from sessionkit.base.arrays import Bytes, Longs, arrow_array, is_null, numpy_array
from sessionkit.base.decisions import (
    ADDED,
    AHEAD,
    BAD_TIME,
    IDLE,
    LATE,
    MERGED,
    NEGATIVE_TIME,
    NULL_KEY,
    NULL_VALUE,
    OPENED,
    REPLAYED,
    TICK,
)
from sessionkit.base.durations import DAY, HOUR, SECOND, duration_code, show_duration
from sessionkit.base.moments import SHORT_HISTORY_MS, show_time, zone_of
from sessionkit.base.result_columns import last_shown_ms
from sessionkit.base.text import plural
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import TooLarge, attempted, shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.labels import record_name as name_of_record
from sessionkit.trace.loops import grouped
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.views.tables import whole_table
from sessionkit.windows.contract import SessionKind, WindowKind

_shown = lru_cache(maxsize=20_000)(show_time)  # at each step of a slider the same times are shown again

_BY_TIME = {"first": "earliest", "last": "latest"}
FEW_TIMES = 20  # say nothing of what all times are
_WITHOUT_PLACE = {
    NULL_KEY: "no key",
    BAD_TIME: "no usable time",
    NEGATIVE_TIME: "a time before 1970",
    REPLAYED: "an offset that came before",
    NULL_VALUE: "no value",
    AHEAD: "a time too far ahead of its arrival",
}
PLAIN = {
    NULL_KEY: "was dropped: its key is null. It does not move stream time (Kafka drops it before it looks at the time)",
    BAD_TIME: 'was dropped: it has no time, and the plan says on_bad_time="drop"',
    NEGATIVE_TIME: 'was dropped: its time lies before 1970, and the plan says on_bad_time="drop"',
    NULL_VALUE: "was dropped: it has no value. It does not move stream time (Kafka's sliding windows skip it)",
    REPLAYED: "was skipped: the store had read up to a later offset already, so this is a replay",
    AHEAD: (
        "was dropped: its time lies further ahead of its arrival than max_ahead= allows. It does not move stream time "
        "(a rule of sessionkit's own, which Kafka does not have)"
    ),
    TICK: "is of a key that this run leaves out: it is here for stream time alone",
}


def clock(trace: Trace) -> Callable[[int], str]:
    """How the times of this run are said: a date and time in its zone, or the time since zero for toy data."""
    return Said.of(trace).at


def zone_named(trace: Trace) -> str:
    """The zone that the clock of this run is of, to be named once in a text; "" where times are said without dates."""
    return Said.of(trace).zone


def in_zone(trace: Trace) -> list[str]:
    """The sentence that names the zone of a text's times, once."""
    return Said.of(trace).in_zone


class Said(NamedTuple):
    """How the times of a run are said, which goes by the newest one."""

    newest_ms: int
    timezone: str

    @classmethod
    def of(cls, trace: Trace) -> Said:
        return cls(int(trace.last_stream_time_ms.max(initial=0)), trace.batch.timezone)

    def at(self, ms: int) -> str:
        return show_duration(ms) if self.newest_ms < SHORT_HISTORY_MS else _shown(ms, self.timezone)

    @property
    def zone(self) -> str:
        has_dates = SHORT_HISTORY_MS <= self.newest_ms <= last_shown_ms(self.timezone)
        return self.timezone if has_dates else ""

    @property
    def in_zone(self) -> list[str]:
        return [f"Times are in {self.zone}."] if self.zone else []


def idle_rule(batch: RecordBatch) -> str:
    """The plan's rule for idle partitions in words, with whose it is; "" if it has none."""
    idle = batch.idle
    return "" if idle is None else f"idle after {show_duration(idle.after_ms)}, sessionkit's own and not Kafka's"


def idle_remarks(batch: RecordBatch) -> list[str]:
    """A sentence that names the partitions that were moved on without a record; none if none was."""
    if batch.idle is None or batch.rejected is None:
        return []
    moved = batch.partitions[np.unique(batch.partition[batch.rejected == IDLE])].tolist()
    if not moved:
        return []
    named = f"{plural(len(moved), 'partition')} ({shorten(', '.join(map(str, moved)))})"
    return [
        f"{named} got no record for {show_duration(batch.idle.after_ms)} or longer and followed the others. This rule "
        "is sessionkit's own: Kafka Streams moves stream time by records alone."
    ]


def day_remarks(windows: WindowKind, latest_ms: int, timezone: str) -> list[str]:
    """A sentence where windows of whole days, or hours, do not begin with a day, or hour, of the run's zone."""
    step_ms = windows.advance_ms
    if windows.not_in_kafka is not None:  # their start was chosen
        return []
    if step_ms is None or step_ms % HOUR or not SHORT_HISTORY_MS <= latest_ms <= last_shown_ms(timezone):
        return []
    begins = show_time(latest_ms - latest_ms % step_ms, timezone)[11:16]
    misses_midnight = windows.reach_ms % DAY == 0 and int(begins[:2]) * HOUR % step_ms
    if misses_midnight:
        begins = show_time(latest_ms - latest_ms % DAY, timezone)[11:16]
    each = f" every {show_duration(step_ms)}" if step_ms < windows.reach_ms else ""
    on = "" if step_ms % (7 * DAY) else " on a Thursday"  # as 1970 did
    whole, kafka = f"Windows of {show_duration(windows.reach_ms)} begin{each}{on} at", "as in Kafka Streams: that is"
    if step_ms % DAY and not misses_midnight:
        past = f"{int(begins[3:])} min past the hour in {timezone}."
        return [f"{whole} whole hours of UTC, {kafka} {past}"] if begins[3:] != "00" else []
    if begins == "00:00":
        return [f"{whole} 00:00, as in Kafka Streams.{_other_starts(windows, timezone, latest_ms)}"] if on else []
    clock = "" if each else ' Times without a zone of their own have days of their own clock with timezone="UTC".'
    said = f"{whole} 00:00 UTC, {kafka} {begins} in {timezone} at the end of the data.{clock}"
    return [f"{said}{_other_starts(windows, timezone, latest_ms)}"]


def _other_starts(windows: WindowKind, timezone: str, now_ms: int) -> str:
    """How windows of whole days begin at midnight of a zone, as it is at this time; weeks with a Monday."""
    is_weeks = windows.advance_ms == 7 * DAY
    ahead = dt.datetime.fromtimestamp(now_ms // 1000, zone_of(timezone)).utcoffset()
    ahead_ms = (ahead or dt.timedelta()) // dt.timedelta(milliseconds=1)
    offset_ms = ((4 * DAY if is_weeks else 0) - ahead_ms) % (windows.advance_ms or DAY)
    unit = {DAY: "day", 7 * DAY: "week"}.get(windows.reach_ms)
    words = f' offset="{duration_code(offset_ms)}" moves them to {"Monday, " if is_weeks else ""}00:00'
    words += f" in {timezone}{' at that time' if ahead_ms else ''}"
    if unit is None or windows.advance_ms != windows.reach_ms:
        return f"{words}."
    return f'{words}; sk.CalendarWindows("{unit}", timezone="{timezone}", …) has calendar {unit}s.'


def unit_remarks(windows: WindowKind, batch: RecordBatch) -> list[str]:
    """A sentence where all times are whole days apart, and the windows are shorter than that."""
    times = batch.timestamp_ms if batch.rejected is None else batch.timestamp_ms[batch.usable]
    if windows.reach_ms >= DAY or any(((each - times[:1]) % DAY).any() for each in (times[:100], times)):
        return []
    return days_apart(windows, len(times))


def days_apart(windows: WindowKind, count: int) -> list[str]:
    """That sentence for so many records whose times are whole days apart."""
    if windows.reach_ms >= DAY or count < FEW_TIMES:
        return []
    shorter = f"the {windows.reach_name.replace('_', ' ')} of {show_duration(windows.reach_ms)} is shorter"
    return [f"All times are whole days apart, and {shorter}: only records of the same day share a {windows.noun}."]


def finer_remarks(windows: WindowKind, batch: RecordBatch) -> list[str]:
    """A sentence where times are finer than a millisecond, and windows so short that it may show."""
    if not batch.finer or windows.reach_ms >= SECOND:
        return []
    said = f"Times in column {shorten(repr(batch.finer))} are finer than a millisecond and rounded down, as Kafka's are"
    return [f"{said} milliseconds; sk.sessionize compares them as they are."]


def arrival_remarks(named: Sequence[tuple[str, Aggregation]], windows: WindowKind, outcome: Outcome) -> list[str]:
    """A sentence for each `first` and `last` that is not the value which event time would choose, with in how many.

    Where the records of each key are in order of time, they are only looked at; else the windows are made once more.
    """
    asked = {each.code: each for _, each in named if each.built_in in _BY_TIME}
    batch = outcome.batch
    if not asked or not _are_out_of_order(batch):
        return []
    by_time = {code: BUILT_INS[_BY_TIME[each.built_in]](*each.columns) for code, each in asked.items()}
    rows = {  # in place of the values
        name: arrow_array(np.arange(len(batch)), is_null(batch.values[name])) for name in columns_read([*asked.items()])
    }
    both = {**asked, **{each.code: each for each in by_time.values()}}
    limits: Any = {"retention_ms": outcome.retention_ms, "keep_trace": False}
    again = attempted(run_kernel, windows, both, batch.replace(values=rows), **limits, but=TooLarge)
    if again is None:  # beside the run there is no more memory
        return []
    table, said = whole_table(again), []
    for code, each in by_time.items():
        values: Any = batch.values[each.columns[0]]
        arrived, happened = (numpy_array(table[name], -1) for name in (code, each.code))
        other = np.flatnonzero(arrived != happened)
        pairs = zip(*(values.take(arrow_array(found[other])) for found in (arrived, happened)), strict=True)
        if count := sum(not one.equals(another) for one, another in pairs):
            share = f"{count:,} of {plural(len(arrived), windows.noun)}"
            said.append(
                f"sk.{code} goes by arrival: in {share}, where records came late, the {each.built_in} value by event "
                f"time is another, as sk.{each.code} has it."
            )
    return said


def _are_out_of_order(batch: RecordBatch) -> bool:
    """Whether a record of some key is older than one that came before it."""
    times_ms = batch.timestamp_ms
    if (times_ms[1:] >= times_ms[:-1]).all():
        return False
    rows = grouped(np.where(batch.usable, batch.key, -1), len(batch.keys))[1]
    times_ms, key = times_ms[rows], batch.key[rows]
    return bool(((times_ms[1:] < times_ms[:-1]) & (key[1:] == key[:-1])).any())


def records_dropped(counts: Mapping[str, int]) -> int:
    """How many records count in no window; a state of an older version tells only how many windows were missed."""
    return counts.get("records-dropped", counts["dropped-records-total"] - counts["dropped-expired"])


def drops_in_words(counts: Mapping[str, int]) -> str:
    """How many records were dropped, and how many windows late ones missed where that is another number."""
    total, refused, records = counts["dropped-records-total"], counts["dropped-expired"], records_dropped(counts)
    if records == total - refused:
        return f"{total:,} dropped"
    said = f"{plural(records, 'record')} dropped, {plural(counts['dropped-late'], 'time')} too late for a window"
    return said + (f", {plural(refused, 'window')} refused" if refused else "")


def dropped_for(dropped: Mapping[int, int]) -> str:
    """Why records were dropped that were not late, with how many for each reason."""
    counted = ((dropped.get(code, 0), words) for code, words in _WITHOUT_PLACE.items() if code != REPLAYED)
    return ", ".join(f"{count:,} with {words}" for count, words in counted if count)


def without_place(decision: Bytes) -> list[str]:
    """A note on the dropped records that a picture has no place for, if some of these decisions are of such."""
    count = int(np.isin(decision, [*_WITHOUT_PLACE]).sum())
    they_have = " or ".join(words for code, words in _WITHOUT_PLACE.items() if (decision == code).any())
    return [f"{count:,} of the dropped records are not drawn: they have {they_have}"] if count else []


def closer_words(trace: Trace, index: int) -> str:
    """What closed a window, where row `index` passed it: a record, or the rule for idle partitions."""
    offset = int(trace.batch.offset[index])
    if trace.decision[index] == IDLE:
        return f"as the partition was idle after offset {offset:,}, a rule that Kafka does not have"
    return f"by the record at offset {offset:,}"


def closers_in_words(trace: Trace, windows: Longs) -> list[str]:
    """What closed each of these windows, in this run or an earlier one; "" where a window is open."""
    columns, by = trace.window_columns, trace.closed_by_of(windows).tolist()
    at = trace.passed_by(columns.partition[windows], trace.last_instants_ms(windows))
    at = np.where(columns.closed_before[windows] >= 0, len(trace), at)
    return [
        "" if offset < 0 else closer_words(trace, row) if row < len(trace) else f"by the record at offset {offset:,}"
        for row, offset in zip(at.tolist(), by, strict=True)
    ]


def short_reason(trace: SessionTrace, windows: SessionKind, index: int) -> str:
    """One line for a hover: what the record did. Not escaped."""
    code = int(trace.decision[index])
    name = record_name(trace, index)
    if code in PLAIN:
        return f"{name} {PLAIN[code].partition(':')[0]}"
    late = " (late, but it touches an open session)" if trace.late_but_kept[index] else ""
    at = clock(trace)(int(trace.batch.timestamp_ms[index]))
    return f"{name}, {at}, {decision_in_words(trace, windows, index)}{late}"


def record_name(trace: Trace, index: int, told: str | None = None) -> str:
    """The record by its offset and key, or with what is `told` of it; or what moved stream time without a record."""
    batch = trace.batch
    if trace.decision[index] == IDLE:
        number, offset = batch.partitions[batch.partition[index]], batch.offset[index]
        return f"The rule for idle partitions ({idle_rule(batch)}, in partition {number} after offset {offset})"
    return f"R{name_of_record(batch, index, told)[1:]}"


def decision_in_words(trace: SessionTrace, windows: SessionKind, index: int) -> str:
    """What became of a record of a run of sessions, as the end of a sentence that begins with its name."""
    code, at, near = int(trace.decision[index]), clock(trace), windows.near_in_words()
    if code == LATE:
        return "was dropped: too late"
    if code == OPENED:
        return f"opened a new session, as it found none of its key to join {near}"
    start, end = (int(bound[index]) for bound in trace.bounds_after)
    rows = [int(trace.window[index]), *trace.merges.absorbed[trace.merges.at == index].tolist()]
    met = [trace.bounds_before(row, index) for row in rows]  # oldest first
    if code == MERGED:
        spans = " and ".join(span_words(at, *bounds) for bounds in met)
        one = span_words(at, start, end)
        return f"is a bridge: it is {near} of two sessions, {spans}, which became one, {one}"
    assert code == ADDED
    was_start, was_end = met[0]
    if (was_start, was_end) == (start, end):
        return f"joined the session {span_words(at, start, end)}, inside its bounds"
    moved = [f"its end moved from {at(was_end)} to {at(end)}"] if end > was_end else []
    moved += [f"its start moved from {at(was_start)} to {at(start)}"] if start < was_start else []
    return f"joined the session {span_words(at, was_start, was_end)}: {', '.join(moved)}"


def lag_words(windows: WindowKind, sign: str) -> str:
    """What parts the close time from stream time, each length by its name and behind the sign."""
    parts = getattr(windows, "close_lag_parts", {"grace": windows.grace_ms})  # of sessions it is more than the grace
    return "".join(f" {sign} {name} {show_duration(ms)}" for name, ms in parts.items())


def span_words(at: Callable[[int], str], start_ms: int, end_ms: int) -> str:
    """Two times, or one where they are the same."""
    return f"at {at(start_ms)}" if start_ms == end_ms else f"{at(start_ms)} to {at(end_ms)}"


def lower_first(name: str) -> str:
    """A name of a record inside a sentence."""
    return name[0].lower() + name[1:]
