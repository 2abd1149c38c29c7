"""`info`: what is in a file, and how to go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from sessionkit.cli import options as of
from sessionkit.cli.opening import lists_places, say, zone_for
from sessionkit.cli.wording import with_options
from sessionkit.errors import SessionkitError, shorten

if TYPE_CHECKING:
    import pyarrow as pa

    from sessionkit.advice.file_columns import FileColumns
    from sessionkit.plan import Plan
    from sessionkit.records.order import Cause

DEFAULT_GAP = "30m"
NAME_LENGTH = 24


def info(file: of.File, types: of.Types = None, separator: of.Separator = None, no_header: of.NoHeader = False) -> None:
    """Say what is in a file: columns, keys, times, how to go on.

    \b
    Example:
      sessionkit info clicks.csv
    """
    from sessionkit.advice.file_columns import file_columns
    from sessionkit.base.text import plural

    form = of.text_form(separator, no_header)
    table, remarks = _read(file, of.types_of(types), form)
    found = file_columns(table)
    print(f"{shorten(file, 500)}: {plural(found.rows, 'row')}, {plural(len(found.columns), 'column')}")
    print(*_listed(found), sep="\n")
    cause = _cause(table, found)
    print(*_order(table, found), *([with_options(cause.words(None, 0))] if cause else []), sep="\n")
    options = [*(["--separator", separator] if separator else []), *([] if form["header"] else ["--no-header"])]
    print(*_next(file, table, found, options, sort=cause is not None and cause.is_order), sep="\n")
    say(*remarks)


def _read(file: str, types: dict[str, str], form: dict[str, Any]) -> tuple[pa.Table, list[str]]:
    """The rows of a file: empty texts are missing, as in a key, and a first line may be a record instead of names."""
    import pyarrow.compute as pc

    from sessionkit.advice.file_columns import begins_with_a_record
    from sessionkit.records.files.found import find
    from sessionkit.records.files.tables import read_file
    from sessionkit.records.time_text import is_text_type

    kind, said = find(file).contents[0].kind, []
    table, remarks = read_file(file, None, (), types, **form)
    if kind == "CSV" and form["header"] and begins_with_a_record(table):
        form["header"] = False
        said = ["The first line looks like a record, so columns are called c1, c2 and so on, as with --no-header."]
        table, remarks = read_file(file, None, (), types, **form)
    if kind == "CSV":
        texts = [name for name in table.column_names if is_text_type(table[name].type)]
        if blank := [name for name in texts if pc.any(pc.equal(table[name], "")).as_py()]:
            table = read_file(file, None, blank, types, **form).table
    return table, [*said, *remarks]


def _listed(found: FileColumns) -> list[str]:
    rows = [("column", "type", "missing", "could be")]
    for column in found.columns:
        could_be = with_options(f"{column.could_be}: {column.why}" if column.could_be else column.why)
        rows.append((shorten(column.name, NAME_LENGTH), shorten(column.type, 20), f"{column.missing:,}", could_be))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return [
        f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {missing:>{widths[2]}}  {words}".rstrip()
        for name, kind, missing, words in rows
    ]


def _order(table: pa.Table, found: FileColumns) -> list[str]:
    from sessionkit.base.durations import about
    from sessionkit.base.moments import show_time
    from sessionkit.base.text import percent

    if found.time is None or found.time.times_ms is None or not len(found.time.times_ms):
        return ["No column holds times, so there is no order to speak of."]
    ms, name = found.time.times_ms, shorten(found.time.name)
    zone = getattr(table.schema.field(found.time.name).type, "tz", None) or zone_for(table, name, None)[0] or "UTC"
    first, last = int(ms.min()), int(ms.max())
    share = found.step_back_share
    said = f"{percent(share)} of the rows step back in time" if share else "no row steps back in time"
    return [
        f"Order by {name}: {said}",
        f"Span: {show_time(first, zone)} to {show_time(last, zone)} ({about(last - first)}), in {zone}",
    ]


def _cause(table: pa.Table, found: FileColumns) -> Cause | None:
    """Why many of the rows lie behind those before them."""
    from sessionkit.advice.replay import Replay
    from sessionkit.records.order import late_cause

    if found.time is None or found.key is None:
        return None
    plan = _plan(table, found)
    try:
        return late_cause(Replay.of(plan, table).batch, plan.source, 0)
    except SessionkitError:
        return None


def _next(file: str, table: pa.Table, found: FileColumns, options: list[str], *, sort: bool) -> list[str]:
    """The command that goes on, and why its gap is what it is."""
    if found.time is None:
        return ["To go on, sessionkit needs a column of times."]
    if found.key is None:
        return ["To go on, sessionkit needs a column whose values repeat, to be the key."]
    gap, why = _gap(table, found)
    words = ["sessionkit", "report", file, *options, "--key", found.key.name, "--timestamp", found.time.name]
    words += ["--unit", found.time.unit] if found.time.unit else []
    words += ["--gap", gap, *(["--sort"] if sort else [])]
    return [f"To go on ({why}):", f"  {shlex.join(words)}"]


def _plan(table: pa.Table, found: FileColumns) -> Plan:
    """The start of a plan over the columns that look most like a key and a time."""
    from sessionkit.grouping import group_by_key

    assert found.key is not None and found.time is not None
    zone, _ = zone_for(table, found.time.name, None)
    read: dict[str, Any] = {"unit": found.time.unit, "timezone": zone, "on_bad_time": "drop"}
    if lists_places(table.column_names):
        read |= {"partition": "partition", "offset": "offset"}
    return group_by_key(found.key.name, timestamp=found.time.name, **read)


def _gap(table: pa.Table, found: FileColumns) -> tuple[str, str]:
    from sessionkit.advice.suggest import suggest_gap
    from sessionkit.base.durations import duration_code

    try:
        suggested = suggest_gap(_plan(table, found), table).gap_ms
    except SessionkitError:
        suggested = None
    if suggested is None:
        return DEFAULT_GAP, "the pauses show no clear gap; 30 minutes is only a start"
    return duration_code(suggested), "the gap lies where pauses are rare"
