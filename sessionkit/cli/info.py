"""`info`: what is in a file, and how to go on."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sessionkit.base.text import ONE_KEY, literal, percent, plural
from sessionkit.cli import options as of
from sessionkit.cli.opening import zone_for
from sessionkit.cli.saying import say, with_options
from sessionkit.errors import SessionkitError, attempted, shorten

if TYPE_CHECKING:
    import pyarrow as pa

    from sessionkit.advice.file_columns import Column, FileColumns
    from sessionkit.plan import Plan
    from sessionkit.records.lateness.causes import Cause

DEFAULT_GAPS = ("30m", "5m", "1m", "10s", "1s", "1ms")
NAME_LENGTH = 24


def info(
    file: of.File,
    types: of.Types = None,
    separator: of.Separator = None,
    no_header: of.NoHeader = False,
    format: of.Format = None,
    timezone: of.Timezone = None,
) -> None:
    """Say what is in a file: columns, keys, times, how to go on.

    \b
    Example:
      sessionkit info clicks.csv
    """
    from sessionkit.base.moments import known_zone

    form, zone = of.text_form(separator, no_header), timezone and known_zone(timezone)
    table, remarks, found = _read(file, of.types_of(types), form, zone, format)
    print(f"{shorten(file, 500)}: {plural(found.rows, 'row')}, {plural(len(found.columns), 'column')}")
    print(*_listed(found), sep="\n")
    gap, why = _gap(table, found)
    causes, lag = _causes(table, found, gap)
    whys = [with_options(cause.words(None, lag)) for cause in causes]
    print(*_order(table, found), *whys, *_without_time(file, found, form), sep="\n")
    options = [*(["--separator", separator] if separator else []), *([] if form["header"] else ["--no-header"])]
    is_order = any(cause.is_order for cause in causes)
    places = found.places | ({"offset": None, "sort": True} if is_order else {})  # by time
    named = [word for name in ("partition", "offset") if places.get(name) for word in (f"--{name}", places[name])]
    words = [*named, "--gap", gap, *(["--sort"] if places.get("sort") else [])]
    print(*(_lacking(file, table, found, form) or _next(file, table, found, options, words, why)), sep="\n")
    if form["header"] == no_header:
        say("The first line looks like a record, so columns are called c1, c2 and so on, as with --no-header.")
    say(*remarks)


def _read(
    file: str, types: dict[str, str], form: dict[str, Any], zone: str | None, format: str | None
) -> tuple[pa.Table, list[str], FileColumns]:
    """The rows of a file: empty texts are missing, as in a key; `form` has no header if its first line is a record."""
    import pyarrow.compute as pc

    from sessionkit.advice.file_columns import begins_with_a_record, file_columns
    from sessionkit.records.files.found import find
    from sessionkit.records.files.tables import read_file
    from sessionkit.records.files.text import names_of
    from sessionkit.records.inputs.nested import with_all_fields
    from sessionkit.records.inputs.pandas_columns import is_a_value
    from sessionkit.records.time_text import is_text_type

    content = dataclasses.replace(find(file).contents[0], **form)
    names = names_of(content) if content.kind == "CSV" else []
    # two columns of one name are refused, where they are names
    form["header"] = form["header"] and not (len(set(names)) < len(names) and any(map(is_a_value, names)))
    table, remarks = read_file(file, None, (), types, timezone=zone, **form)
    if content.kind == "CSV":
        texts = [name for name in table.column_names if is_text_type(table[name].type)]
        if blank := [name for name in texts if pc.any(pc.equal(table[name], "")).as_py()]:
            table = read_file(file, None, blank, types, **form).table
    found = file_columns(table := with_all_fields(table), zone, format)
    if content.kind == "CSV" and form["header"] and begins_with_a_record(table, found):
        form["header"] = False
        return _read(file, types, form, zone, format)
    return table, remarks, _placed(table, found)


def _listed(found: FileColumns) -> list[str]:
    rows = [("column", "type", "missing", "could be")]
    for column in found.columns:
        could_be = with_options(f"{column.could_be}: {column.why}" if column.could_be else column.why)
        name = shorten(column.name, NAME_LENGTH) or "''"
        rows.append((name, shorten(column.type, 34), f"{column.missing:,}", could_be))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return [
        f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {missing:>{widths[2]}}  {words}".rstrip()
        for name, kind, missing, words in rows
    ]


def _order(table: pa.Table, found: FileColumns) -> list[str]:
    from sessionkit.base.durations import about
    from sessionkit.base.moments import show_time

    if found.time is None or found.time.times_ms is None or not len(found.time.times_ms):
        return ["No column holds times, so there is no order to speak of."]
    ms, name = found.time.times_ms, shorten(found.time.name)
    clocks = found.timezone or getattr(table[found.time.name].type, "tz", None) or "UTC"
    beside, said_so = _zone_beside(table, found.time)
    read_as, said = zone_for(table, found.time.name, None, found.time.format)
    lacks = "" if found.timezone or said_so or read_as is None else said[-1]
    first, last = int(ms.min()), int(ms.max())
    share = found.step_back_share
    steps = f"{percent(share)} of the rows step back in time" if share else "no row steps back in time"
    zone = (beside or clocks) + (", as the times have no zone; --timezone names one" if "have no zone" in lacks else "")
    arrived = "The name of {} seems to say when a record arrived, so {} is taken for the event time."
    return [
        *(arrived.format(shorten(each), name) for each in found.arrivals),
        f"Order by {name}: {steps}",
        f"Span: {show_time(first, clocks)} to {show_time(last, clocks)} ({about(last - first)}), in {zone}",
        *([lacks] if "without a zone" in lacks else []),
        *([found.time.century] if found.time.century else []),
    ]


def _without_time(file: str, found: FileColumns, form: dict[str, Any]) -> list[str]:
    """A remark on the texts in rows without an event time: the reader takes words such as "n/a" for nothing."""
    from sessionkit.records.files.tables import read_file

    if found.time is None or found.time.no_time is None or found.time.early is None:
        return []
    name, bad, early = found.time.name, found.time.no_time, found.time.early
    column = read_file(file, [name], types={name: "string"}, **form).table[name]
    said = []
    for what, rows in (("Without a time in", bad & ~early), ("Before 1970, which Kafka refuses, in", early)):
        if rows.any():
            values = column.filter(rows).unique().to_pylist()
            texts = [shorten(repr("" if each is None else str(each))) for each in values]
            shown = f"{plural(int(rows.sum()), 'row')} ({', '.join(texts[:3])}{', …' if texts[3:] else ''})"
            said.append(f"{what} {shorten(name)}: {shown}, which --on-bad-time drop counts as dropped.")
    if early.any() and found.time.moved:
        said[-1] = f"{said[-1].removesuffix('.')}; or {found.time.moved}"
    return said


def _zone_beside(table: pa.Table, time: Column) -> tuple[str | None, list[str]]:
    """The zone of times that the column behind them holds, as in a log whose fields are parted by spaces."""
    from sessionkit.base.moments import known_zone

    beside = "".join(table.column_names[table.column_names.index(time.name) + 1 :][:1])
    zones = table[beside].unique().to_pylist() if beside else []
    if time.type != "string" or not zones or not all(re.fullmatch(r"[+-]\d{4}\]?", str(each)) for each in zones):
        return None, []
    if len(zones) == 1:
        return known_zone(zones[0].rstrip("]").replace("+0000", "UTC")), [
            f"{beside} holds the zone of {time.name}, which --timezone names."
        ]
    way = f"df[{time.name!r}] = df[{time.name!r}] + ' ' + df[{beside!r}]"
    return None, [f"{beside} holds the zone of {time.name}, which changes: join them first, in pandas: {way}"]


def _causes(table: pa.Table, found: FileColumns, gap: str) -> tuple[list[Cause], int]:
    """Why many of the rows lie behind those before them by more than a gap, as in a report, or at all; by what."""
    from sessionkit.advice.replay import Replay
    from sessionkit.base.durations import duration_ms
    from sessionkit.records.lateness.order import late_causes

    if found.time is None or found.key is None:
        return [], 0
    plan, lag_ms = _plan(table, found), duration_ms(gap, "gap")
    replay = attempted(Replay.of, plan, table, but=SessionkitError)
    if replay is None:
        return [], 0
    if late := late_causes(replay.batch, plan.source, lag_ms):
        return [each.with_guard(next(iter(found.arrivals), None)) for each in late], lag_ms
    behind = late_causes(replay.batch, plan.source, 0)  # the gap keeps what is ahead
    return [each for each in behind if each.to_leave_out is None or each.is_behind], 0


def _lacking(file: str, table: pa.Table, found: FileColumns, form: dict[str, Any]) -> list[str]:
    """Advice on what has to be done before sessionkit can go on."""
    from sessionkit.advice.joined_parts import joined_parts
    from sessionkit.records.files.found import find
    from sessionkit.records.files.text import PARTED_BY, names_of, separator_of, way_of_a_log
    from sessionkit.records.inputs.pandas_columns import parted_name
    from sessionkit.records.time_text import with_day

    day = found.time or next((each for each in found.columns if each.has_only_days), None)
    clock = next((each.name for each in found.columns if each.is_clock), None)
    if clock is not None and day is not None and day.has_only_days:
        what = f"The day is in {shorten(day.name)}, the time of day in {shorten(clock)}: join them first, in pandas:"
        if day.format in ("%Y%m%d", "%y%m%d") and "int" in str(table[clock].type):
            joined = " + ".join(f"df[{each!r}].astype(str).str.zfill(6)" for each in (day.name, clock))
            return [what, f"  df['at'] = pandas.to_datetime({joined}, format='{day.format}%H%M%S')"]
        return [what, f"  {with_day('at', day.name, clock)}"]
    content = dataclasses.replace(find(file).contents[0], **form)
    is_bare = content.kind == "CSV" and not content.header
    names = is_bare and f"sep={literal(separator_of(content))}, names={json.dumps(names_of(content))}"
    read = f", after df = pandas.read_csv({literal(file)}, {names})" if is_bare else ""
    if found.time is None and (line := joined_parts(table, clock)):
        return [f"The parts of the times are in several columns: join them first, in pandas{read}:", f"  {line}"]
    if found.time is not None and found.key is not None:
        return []
    if way := way_of_a_log(content):
        return [f"To go on, {way}."]
    if found.time is None:
        for each in found.columns:
            if f"df[{each.name!r}] = " in each.why and "number of it" not in each.why:
                return [f"To go on, make times of {shorten(each.name)} with the line of pandas beside it{read}."]
            if "json_normalize" in each.why:
                return [f"To go on, take {each.why}."]
        if content.kind == "CSV" and len(found.columns) == 1 and (parted := parted_name(found.columns[0].name)):
            return [f"To go on, if the fields are separated by {PARTED_BY[parted]}: --separator {literal(parted)}"]
        return ["To go on, sessionkit needs a column of times. The option --time-format says how texts write them."]
    return [f"No column looks like a key. To go on, sessionkit needs a column whose values repeat; {ONE_KEY}."]


def _next(file: str, table: pa.Table, found: FileColumns, options: list[str], gap: list[str], why: str) -> list[str]:
    """The command that goes on, and why its gap is what it is."""
    assert found.time is not None and found.key is not None
    zone, remarks = _zone_beside(table, found.time)
    chosen = {"--unit": found.time.unit, "--time-format": found.time.format, "--timezone": found.timezone or zone}
    words = ["sessionkit", "report", file, *options, "--key", found.key.name, "--timestamp", found.time.name]
    words += [word for option, value in chosen.items() if value for word in (option, value)]
    words += [] if found.time.no_time is None else ["--on-bad-time", "drop"]
    if found.key_is_a_guess:
        named = f"{shorten(found.key.name)} ({found.key.why})"
        remarks.append(f"No name of a column says whom or what a row is about, so {named} is a guess; {ONE_KEY}.")
    return [*remarks, f"To go on ({why}):", f"  {shlex.join([*words, *gap])}"]


def _plan(table: pa.Table, found: FileColumns) -> Plan:
    """The start of a plan over the columns that look most like a key and a time."""
    from sessionkit.plan import group_by_key

    assert found.key is not None and found.time is not None
    unit, form = found.time.unit, found.time.format
    zone, _ = zone_for(table, found.time.name, found.timezone, form)
    clocks = {"ambiguous": "earliest", "nonexistent": "earliest"}  # an hour either way changes no advice
    read: dict[str, Any] = {"unit": unit, "format": form, "timezone": zone, "on_bad_time": "drop", **clocks}
    return group_by_key(found.key.name, timestamp=found.time.name, **read, **found.places)


def _placed(table: pa.Table, found: FileColumns) -> FileColumns:
    """What was found, with those of the options for partition and offset with which the records can be read."""
    from sessionkit.advice.replay import Replay

    both = found.places if found.key is not None and found.time is not None else {}
    for places in (both, both | {"sort": True}, {"partition": both["partition"]}) if both else ():
        with suppress(SessionkitError):
            Replay.of(_plan(table, placed := dataclasses.replace(found, places=places)), table)
            return placed
    return dataclasses.replace(found, places={})


def _gap(table: pa.Table, found: FileColumns) -> tuple[str, str]:
    import numpy as np

    from sessionkit.advice.suggest import BEATS, suggest_gap
    from sessionkit.advice.valleys import rounded
    from sessionkit.base.durations import DAY, duration_code, duration_ms, show_duration

    if found.time is None or found.key is None or found.time.times_ms is None:
        return DEFAULT_GAPS[0], ""
    suggestion = attempted(lambda: suggest_gap(_plan(table, found), table), but=SessionkitError)
    if suggestion is not None and suggestion.gap_ms is None and suggestion.beat_gap_ms is not None:
        return duration_code(suggestion.beat_gap_ms), "the gap parts the records where reports are missing"
    if suggestion is None or suggestion.gap_ms is None:  # a gap as long as the whole file parts nothing
        span_ms = int(np.ptp(found.time.times_ms))
        gaps = ("7d", "1d") if found.time.has_only_days else DEFAULT_GAPS
        start = next((each for each in gaps if duration_ms(each, "gap") < span_ms), gaps[-1])
        logs, counts = suggestion.curve if suggestion else (np.empty(0), np.empty(0, np.int64))
        if 10 * counts[logs <= np.log10(duration_ms(start, "gap"))].sum() < counts.sum():  # each would stand alone
            usual_ms = 10 ** float(logs[np.searchsorted(counts.cumsum(), counts.sum() / 2)])
            longer_ms = BEATS * usual_ms if 10 * BEATS * usual_ms < span_ms else usual_ms
            step = DAY if found.time.has_only_days else 1
            start = duration_code(rounded(longer_ms) // step * step) if 2 * longer_ms < span_ms else start
        return start, f"the pauses show no clear gap; {show_duration(duration_ms(start, 'gap'))} is only a start"
    return duration_code(suggestion.gap_ms), "the gap lies where pauses are rare"
