"""From options to a plan and the records that it runs over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from sessionkit.base.text import one_of
from sessionkit.cli.options import Reading, Windows
from sessionkit.errors import InvalidArgument, problem, shorten

# The engine takes half a second to load: it is loaded in the functions that need it, so that help comes at once.
if TYPE_CHECKING:
    import pyarrow as pa

    from sessionkit.plan import Plan
    from sessionkit.windows.contract import WindowKind


@dataclass(frozen=True)
class Opened:
    """The records, the start of the plan over them, and what is to be said about how they were read."""

    table: pa.Table
    plan: Plan
    remarks: list[str]


def open_file(reading: Reading, values: Sequence[str] = ()) -> Opened:
    """Reads the columns of keys, times, places and `values`; `MissingColumn` where the file lacks one."""
    from sessionkit.records.files.tables import check_named, parquet_schema, read_file
    from sessionkit.records.inputs.nested import columns_for, with_fields
    from sessionkit.records.inputs.pandas_columns import check_columns

    schema, columns = parquet_schema(reading.file), None
    wanted = [*reading.keys, reading.timestamp, reading.partition, reading.offset, reading.arrival, *values]
    named = list(dict.fromkeys(name for name in wanted if name is not None))
    if schema is not None:
        check_columns(schema.names, columns_for(schema.names, named))
        places = [name for name in ("partition", "offset") if lists_places(schema.names)]
        columns = list(dict.fromkeys([*named, *places]))
    read = read_file(reading.file, columns, reading.keys, timezone=reading.timezone, **reading.text)
    check_named(reading.file, read.table, named)
    table = with_fields(read.table, list(dict.fromkeys([*read.table.column_names, *named])))
    plan, remarks = _grouped(reading, table)
    return Opened(table, plan, [*read.remarks, *remarks])


def open_to_pick(reading: Reading) -> Opened:
    """The plan over files of Parquet whose rows would not fit into memory, by their columns alone."""
    import pyarrow as pa

    from sessionkit.records.files.pieces import file_pieces

    head = file_pieces(reading.file, None, reading.keys, timezone=reading.timezone, **reading.text).head
    schema = head.table.schema
    kind = schema.field(reading.timestamp).type if reading.timestamp in schema.names else pa.null()
    moment = {reading.timestamp: 0} if pa.types.is_timestamp(kind) else {}  # which tells whether times have a zone
    plan, remarks = _grouped(reading, pa.Table.from_pylist([moment], schema))
    return Opened(head.table, plan, [*head.remarks, *remarks])


def is_read_by_spark(reading: Reading) -> bool:
    """True for a Parquet file that says where each record stands: Spark reads it by itself."""
    from sessionkit.records.files.tables import parquet_schema

    schema = parquet_schema(reading.file)
    return schema is not None and (reading.offset is not None or lists_places(schema.names))


def _grouped(reading: Reading, table: pa.Table) -> tuple[Plan, list[str]]:
    from sessionkit.plan import group_by_key
    from sessionkit.records.batch import record_as_names

    options, remarks = reading.options, []
    if reading.partition is None and reading.offset is None and lists_places(table.column_names):
        options |= {"partition": "partition", "offset": "offset"}
        remarks.append("The columns partition and offset say where each record stands.")
    options["timezone"], remark = zone_for(table, reading.timestamp, reading.timezone, reading.format)
    if reading.sort:
        options["sort"] = True if "offset" in options else "timestamp"
    sep, text = reading.sep if len(reading.keys) > 1 else None, reading.text | {"types": reading.column_types or None}
    plan = group_by_key(*reading.keys, timestamp=reading.timestamp, sep=sep, **text, **options)
    return plan, [*record_as_names(plan.source), *remarks, *remark]


def zone_for(
    table: pa.Table, timestamp: str, given: str | None, format: str | None = None
) -> tuple[str | None, list[str]]:
    """The zone to read times in, UTC where neither an option nor the column names one, and what to say about them."""
    from sessionkit.records.inputs.nested import root_of, with_fields
    from sessionkit.records.row_names import row_name
    from sessionkit.records.source import Source
    from sessionkit.records.times import without_zone

    remarks: list[str] = []
    if root_of(table.column_names, timestamp) not in table.column_names:
        return given, []
    column, what = with_fields(table, [timestamp])[timestamp], shorten(repr(timestamp))
    source = Source(keys=("key",), timestamp=timestamp, timezone=given, on_bad_time="drop", format=format)
    count, of, row = without_zone(column, source, remarks)
    if given is not None or not count:
        return given, remarks
    read = f"The times in {what} have no zone and are read as UTC"
    if count < of:
        read = f"Times in {what} without a zone are read as UTC: {count:,} of {of:,}, the first in {row_name(row)}"
    return "UTC", [*remarks, f"{read}; --timezone names another."]


def lists_places(names: Sequence[str]) -> bool:
    """True if the columns partition and offset say where each record stands."""
    return {"partition", "offset"} <= set(names)


def with_windows(opened: Opened, windows: Windows) -> tuple[Plan, list[str]]:
    """The plan with its windows and, if no grace was given, words on which one was taken and why."""
    from sessionkit.advice.replay import Replay, order_advice, smallest_round_grace_ms
    from sessionkit.base.durations import duration_code, show_duration

    zone = opened.plan.source.timezone
    if windows.grace is not None:
        return opened.plan.windowed_by(_kind(windows, windows.grace, zone)), []
    plan = opened.plan.windowed_by(_kind(windows, "0s", zone)).count()
    replay = Replay.of(plan, opened.table)
    grace_ms = smallest_round_grace_ms(plan, replay)
    shown = show_duration(grace_ms)
    why = "with it no record comes too late" if not grace_ms else "the smallest round one that keeps every record"
    causes = order_advice(plan, replay, lambda rest: smallest_round_grace_ms(plan, rest))
    remarks = [f"The grace is {shown}: {why}. --grace sets another.", *causes]
    return opened.plan.windowed_by(_kind(windows, duration_code(grace_ms), zone)), remarks


def _kind(given: Windows, grace: str, zone: str | None) -> WindowKind:
    from sessionkit.windows.calendar import CalendarWindows, Unit
    from sessionkit.windows.hopping import TimeWindows
    from sessionkit.windows.session import SessionWindows
    from sessionkit.windows.sliding.windows import SlidingWindows

    if given.gap is not None:
        return SessionWindows(inactivity_gap=given.gap, grace=grace)
    if given.size is not None:
        return TimeWindows(size=given.size, advance=given.advance, offset=given.window_offset, grace=grace)
    if given.calendar is not None:
        one_of("--calendar", given.calendar, get_args(Unit))
        if zone is None:  # where the times have one of their own
            want = "--timezone Europe/Berlin, or another"
            raise InvalidArgument(problem("a calendar is that of a zone", f"--calendar {given.calendar}", want))
        return CalendarWindows(cast("Any", given.calendar), timezone=zone, grace=grace)
    return SlidingWindows(time_difference=given.time_difference, grace=grace)
