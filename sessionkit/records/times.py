"""A column of times as int64 milliseconds since the epoch, or a clear refusal."""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
import warnings
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, arrow_array, is_null, numpy_array
from sessionkit.base.calls import level_of_user
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.moments import no_such_zone
from sessionkit.base.text import literal, plural
from sessionkit.errors import InvalidArgument, InvalidData, UnsupportedData, attempted, errors_as, problem
from sessionkit.records.inputs.plain_columns import whole_numbers
from sessionkit.records.row_names import counted_rows, row_name
from sessionkit.records.source import TIME_UNITS, Source
from sessionkit.records.time_statistics import FEW
from sessionkit.records.time_text import formats_for, is_text_type, lacks_day, of_text

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
FINER = {"us": 1_000, "ns": 1_000_000}  # than a millisecond, and how much
_PLAUSIBLE_S = (631_152_000, 4_102_444_800)  # 1990 to 2100
_DAYS_OF_EXCEL = (20_000, 80_000)  # 1954 to 2119
_BY_ORDER = ', and "infer" goes by the order of the rows'
_TWICE = 'ambiguous="earliest" or "latest" choose one' + _BY_ORDER
_NEVER = 'nonexistent="earliest" or "latest" choose one'
_UNRESOLVED = {  # which times of a clock, and the way
    "ambiguous": ("that clocks showed twice, as they were set back", _TWICE),
    "nonexistent": ("that no clock showed, as they were set forward", _NEVER),
}
_LAST_S = 253_402_300_799  # of the year 9999
_YEAR_S = 366 * 86_400
_SAMPLE = 1_000


def to_milliseconds(
    column: pa.ChunkedArray, source: Source, remarks: list[str] | None = None
) -> tuple[Longs, Flags | None]:
    """(milliseconds, mask of rows without a time or None); below 0 where there is none.

    A time finer than a millisecond is rounded down, as Kafka's own resolution is the millisecond.

    Args:
        remarks: gets a sentence on each way of writing times that was recognised.
    Raises:
        InvalidArgument: there is no such time zone, or another unit fits where this one means years beyond 9999.
        UnsupportedData: no times, floats with a fraction, a unit or a time zone that is not given.
        InvalidData: missing or negative times and texts that are none, with `on_bad_time="refuse"`.
    """
    name, given = source.timestamp, column.type
    if pa.types.is_null(column.type) or (pa.types.is_floating(column.type) and column.null_count == len(column)):
        column = pa.chunked_array([pa.nulls(len(column), pa.timestamp("ms", "UTC"))])  # not one time tells its type
    if source.format is not None and pa.types.is_integer(column.type):
        column = column.cast(pa.large_string())
    if is_text_type(column.type):
        column = _of_text(column, source, remarks)
    if pa.types.is_decimal(column.type) and source.unit == "s":
        column = column.cast(pa.float64())
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))  # midnight
    if pa.types.is_timestamp(column.type):
        column, unit = _aware(column, source, given), column.type.unit
    elif _are_parts_of_seconds(column, source):
        _given_unit(column, source)
        column, unit = _in_milliseconds(column, name), "ms"
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        column, unit = _whole_numbers(column, source), _given_unit(column, source)
    else:
        want = "a column of timestamps, dates or ISO 8601 text, or of integers with unit="
        if pa.types.is_time(column.type):
            want = lacks_day(name)
        raise UnsupportedData(problem(f"column {name!r} must hold times", column.type, want))
    missing = is_null(column) if column.null_count else None
    numbers = _as_int64(column, name)
    if missing is None and unit in FINER and (scaled := _scaled_in_parts(numbers, FINER[unit])) is not None:
        times_ms = scaled
    else:
        raw: Longs = numpy_array(numbers, absent=-1)
        has_negative = not source.before_1970 and len(raw) > 0 and int(raw.min()) < 0
        _refuse_bad(raw, missing, has_negative=has_negative, source=source)
        missing = np.zeros(len(raw), np.bool_) if missing is None and has_negative else missing
        times_ms = _scale(raw, unit)
    if remarks is not None:
        remarks += years_of_two_digits(times_ms, name, source.format)
        if pa.types.is_timestamp(given):
            remarks += _numbers_as_times(times_ms, name)
    return times_ms, missing


def _numbers_as_times(times_ms: Longs, name: str) -> list[str]:
    """The remark that all times lie close together in 1970, as whole numbers do that are read in too fine a unit."""
    low, high = _PLAUSIBLE_S
    if len(times_ms) and times_ms[0] > high:  # as nearly always: the others need no look
        return []
    known = times_ms[times_ms >= 0]
    first, last = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    units = {10**9: "s", 10**6: "ms", 10**3: "s"}  # by how much larger the times should be
    for times, unit in units.items():
        if low * 1000 <= first * times <= last * times <= high * 1000 and 10 * (last - first) < last:
            what = (
                f"All times in column {name!r} lie in the first weeks of 1970, as numbers do that are read in too fine"
            )
            return [f"{what} a unit: pandas.to_datetime(…, unit={unit!r}) reads them in a coarser one."]
    return []


def years_of_two_digits(times_ms: Longs, name: str, form: str | None) -> list[str]:
    """The remark that times whose years have two digits lie in the future, where many do; else none."""
    if "%y" not in (form or ""):
        return []
    later, count = (int(np.count_nonzero(times_ms > ms)) for ms in ((time.time() + _YEAR_S) * 1000, -1))
    if later <= FEW * count:
        return []
    zone = ", utc=True" if "%z" in str(form) else ""
    line = f"at = pandas.to_datetime(df[{name!r}], format={literal(str(form))}, errors='coerce'{zone}); "
    line += f"df[{name!r}] = at.where(at > pandas.Timestamp.now(at.dt.tz), at + pandas.DateOffset(years=100))"
    what = f"Years of two digits in column {name!r} are read as 1969 to 2068, as in pandas, so that {later:,} of "
    what += f"{plural(count, 'time')} lie more than a year after today. If 100 years earlier are meant, which Kafka "
    return [f"{what}refuses where they are before 1970, this line of pandas puts all 100 years later: {line}"]


def to_arrivals(column: pa.ChunkedArray, name: str, source: Source) -> Longs:
    """When each record arrived, in milliseconds, from the column of this name; one without an arrival is refused."""
    clock = dataclasses.replace(source, timestamp=name, on_bad_time="drop")
    arrival_ms, missing = to_milliseconds(column, clock)
    bad = arrival_ms < 0 if missing is None else missing | (arrival_ms < 0)
    if bad.any():
        want = "the time at which each record arrived, 1970 or later"
        raise InvalidData(problem(f"column {name!r} lacks arrivals", counted_rows(bad), want))
    return arrival_ms


def without_zone(column: pa.ChunkedArray, source: Source, remarks: list[str]) -> tuple[int, int, int]:
    """(number of times of a clock, or days, that have no zone; number of times; row of the first without a zone).

    `remarks` gets a sentence on each way of writing times that was recognised.
    """
    zoned, local = None, column
    if is_text_type(column.type) or (source.format is not None and pa.types.is_integer(column.type)):
        zoned, local = of_text(column, source, remarks)
    elif not pa.types.is_date(column.type) and getattr(column.type, "tz", "") is not None:
        return 0, 0, 0
    count, rest = (0 if each is None else len(each) - each.null_count for each in (local, zoned))
    return count, count + rest, pc.index(local.is_valid(), True).as_py() if count else 0


def _of_text(column: pa.ChunkedArray, source: Source, remarks: list[str] | None) -> pa.ChunkedArray:
    zoned, local = of_text(column, source, remarks)
    if zoned is None or local is None:
        return local if zoned is None else zoned
    if source.timezone is None:
        row = int(np.flatnonzero(np.asarray(local.is_valid()))[0])
        got = f"{local[row].as_py()} without a zone in {row_name(row)}"
        want = 'give all of them a zone, or pass timezone="UTC", or the zone of those without one'
        raise UnsupportedData(problem(f"column {source.timestamp!r} has times with and without a zone", got, want))
    return pc.coalesce(zoned, _aware(local, source, column.type).cast(zoned.type))


def _aware(column: pa.ChunkedArray, source: Source, given: pa.DataType) -> pa.ChunkedArray:
    if column.type.tz is not None:
        return column
    if source.timezone is None:
        want = 'pass timezone="UTC", or the zone of the clock that wrote it, such as "America/New_York"'
        raise UnsupportedData(problem(f"column {source.timestamp!r} has times without a zone", given, want))
    if source.timezone == "UTC":
        return column
    some_time = arrow_array(np.zeros(1, np.int64)).cast(pa.timestamp("s"))
    if not _is_read(some_time, source.timezone, {"ambiguous": "earliest", "nonexistent": "earliest"}):
        raise no_such_zone(source.timezone)
    infer = source.ambiguous == "infer"
    how = {"ambiguous": "earliest" if infer else source.ambiguous, "nonexistent": source.nonexistent}
    try:
        found = pc.assume_timezone(column, source.timezone, **how)
    except pa.ArrowInvalid as error:
        zone = source.timezone
        row = bisect_left(range(len(column)), True, key=lambda row: not _is_read(column.slice(0, row + 1), zone, how))
        kinds = sorted(_UNRESOLVED, reverse=not _is_read(column.slice(row, 1), zone, how | {"ambiguous": "earliest"}))
        (what, want), (also, rest) = (_UNRESOLVED[kind] for kind in kinds)
        is_all = _is_read(column, zone, how | {kinds[0]: "earliest"})
        want += "" if is_all else f"; for a time {also}, {rest}"
        want = want if _is_told_by_order(column, source) else want.replace(_BY_ORDER, "")
        raise _unresolved(column, row, source, what, want) from error
    return _inferred(column, found, source, how) if infer else found


def _unresolved(column: pa.ChunkedArray, row: int, source: Source, what: str, want: str) -> InvalidData:
    got = f"{row_name(row)}: {column[row].as_py()} in {source.timezone}"
    return InvalidData(problem(f"column {source.timestamp!r} has a time {what}", got, want))


def _inferred(
    column: pa.ChunkedArray, earliest: pa.ChunkedArray, source: Source, how: dict[str, str]
) -> pa.ChunkedArray:
    """Of rows in an hour that clocks show twice, those behind the one place where time steps back lie in the second.

    pandas reads `ambiguous="infer"` like this, and takes two equal times for such a step, too.
    """
    latest = pc.assume_timezone(column, source.timezone, **how | {"ambiguous": "latest"})
    first, second = (numpy_array(each.cast(pa.int64()), absent=0) for each in (earliest, latest))
    rows = np.flatnonzero(first != second)
    if not len(rows):
        return earliest
    instants = first.copy()
    place = np.cumsum(numpy_array(column.is_valid()))  # among the rows that have a time
    for group in np.split(rows, np.flatnonzero(np.diff(place[rows]) != 1) + 1):
        back = np.flatnonzero(np.diff(first[group]) < 0) + 1
        if len(back) != 1:
            what = "that clocks showed twice, and the order of the rows does not tell which is meant"
            want = 'rows in order of time around the change, or ambiguous="earliest" or "latest"'
            raise _unresolved(column, int(group[0 if not len(back) else back[1]]), source, what, want)
        instants[group[back[0] :]] = second[group[back[0] :]]
    return pa.chunked_array([arrow_array(instants, is_null(column) if column.null_count else None).cast(earliest.type)])


def _is_told_by_order(column: pa.ChunkedArray, source: Source) -> bool:
    """True if `ambiguous="infer"` reads these times."""
    how = dict.fromkeys(("ambiguous", "nonexistent"), "earliest")
    first = pc.assume_timezone(column, source.timezone, **how)
    return source.sort is not True and attempted(_inferred, column, first, source, how, but=InvalidData) is not None


def _is_read(column: pa.ChunkedArray, timezone: str, how: dict[str, str]) -> bool:
    return attempted(pc.assume_timezone, column, timezone, but=pa.ArrowInvalid, **how) is not None


def refuse_mixed_zones(values: Iterable[Any], name: str) -> None:
    """Refuses Python datetimes of which some have a time zone and some have none: Arrow reads those without as UTC."""
    rows: dict[bool, int] = {}
    for row, value in enumerate(values):
        if isinstance(value, dt.datetime) and value == value:  # NaT is a datetime that is not equal to itself
            rows.setdefault(value.tzinfo is None, row)
    if len(rows) == 2:
        got = f"none in row {rows[True]}, one in row {rows[False]}"
        want = "give all of them a zone, such as value.replace(tzinfo=datetime.timezone.utc)"
        raise UnsupportedData(problem(f"column {name!r} has times with and without a zone", got, want))


def without_fraction(column: pa.ChunkedArray, name: str, unit: str | None) -> str:
    """The line of pandas that makes whole numbers of times in this unit, and keeps the milliseconds of seconds.

    Where the numbers are usual times in another unit only, it is this unit that counts.
    """
    fits = typical_time(column)[1]
    meant, far = unit if unit in fits or not fits else fits[0], "" if fits else "; such times lie outside 1990 to 2100"
    if meant in ("s", None):
        return (
            f"df[{name!r}] = (df[{name!r}] * 1000).round().astype('Int64'), with unit=\"ms\", keeps milliseconds{far}"
        )
    named = "" if meant == unit else f', with unit="{meant}"'
    return f"df[{name!r}] = df[{name!r}].round().astype('Int64'){named}{far}"


def way_from_excel(column: pa.ChunkedArray, name: str) -> str:
    """The line of pandas that makes times of days as Excel counts them, if nearly all numbers may be some; else ""."""
    usual = pc.quantile(pc.cast(_sample(column), pa.float64(), safe=False), q=[0.05, 0.95]).to_pylist()
    if not all(each is not None and _DAYS_OF_EXCEL[0] <= each <= _DAYS_OF_EXCEL[1] for each in usual):
        return ""
    made = f"pandas.to_datetime(df[{name!r}], unit='D', origin='1899-12-30').dt.round('ms')"
    return f"df[{name!r}] = {made}, if these are days as Excel counts them"


def _whole_numbers(column: pa.ChunkedArray, source: Source) -> pa.ChunkedArray:
    if pa.types.is_integer(column.type):
        return column
    name = source.timestamp
    want = way_from_excel(column, name)
    want = want or f"round them to integers: {without_fraction(column, name, source.unit)}"
    return _as_int64(whole_numbers(column, name, "column", ("times with a fraction", want)), name)


def _are_parts_of_seconds(column: pa.ChunkedArray, source: Source) -> bool:
    """True for seconds of which some have a fraction; floats of 32 bits are too coarse for times of today."""
    if not pa.types.is_float64(column.type) or way_from_excel(column, source.timestamp):
        return False
    fits = typical_time(column)[1]
    unit = source.unit or next(iter(fits), None)
    return unit == "s" and (not fits or unit in fits) and bool(pc.any(pc.not_equal(pc.floor(column), column)).as_py())


def _in_milliseconds(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Seconds as milliseconds, rounded down; what lies below a microsecond is an error of floats."""
    column = pc.if_else(pc.is_nan(column), None, column)
    what = f"column {name!r} has a time that is too large"
    with errors_as(InvalidData, what, "seconds since 1970 within 64 bits of microseconds", pa.ArrowInvalid):
        micros = pc.round(pc.multiply(column, 1e6)).cast(pa.int64())
    return pa.chunked_array([arrow_array(numpy_array(micros) // 1_000, is_null(micros))])


def _as_int64(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    what = f"column {name!r} has a time that is too large"
    with errors_as(InvalidData, what, "times within 64 bits", pa.ArrowInvalid):
        return column if column.type == pa.int64() else column.cast(pa.int64())


def _sample(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.take(arrow_array(np.arange(0, len(column), max(1, len(column) // _SAMPLE)))).drop_null()


def typical_time(column: pa.ChunkedArray) -> tuple[float, list[str]]:
    """(the typical number of a column, the units in which it is a time between 1990 and 2100); NaN if there is none."""
    found = pc.approximate_median(pc.cast(_sample(column), pa.float64(), safe=False)).as_py()
    typical = float("nan") if found is None else found
    first_s, last_s = _PLAUSIBLE_S
    return typical, [unit for unit in TIME_UNITS if first_s <= typical / PER_SECOND[unit] <= last_s]


def _day(number: float, unit: str) -> dt.date:
    return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=number / PER_SECOND[unit])).date()


def are_clocks(column: pa.ChunkedArray) -> bool:
    """True if whole numbers are hours, minutes and seconds, as 93015 is half past nine."""
    found = numpy_array(pc.drop_null(column).cast(pa.int64(), safe=False))
    parts = (found >= 0) & (found < 240_000) & (found % 100 < 60) & (found // 100 % 100 < 60)
    return bool(parts.all()) and int(found.max(initial=0)) > 2_359


def are_short_days(column: pa.ChunkedArray) -> bool:
    """True if whole numbers are year, month and day in two digits each, as 81109 is the ninth of November 2008."""
    found = numpy_array(pc.drop_null(column).cast(pa.int64(), safe=False))
    month, day = found // 100 % 100, found % 100
    parts = (found > 9_999) & (found < 1_000_000) & (month > 0) & (month < 13) & (day > 0) & (day < 32)
    return bool(len(found) and parts.all())


def _given_unit(column: pa.ChunkedArray, source: Source) -> str:
    typical, fits = typical_time(column)
    if source.unit is not None and source.unit in fits:
        return source.unit
    sample = _sample(column)
    dates = [form for each in sample for form in formats_for(str(each))]
    way = f'format="{dates[0]}" reads them' if 0 < len(dates) == len(sample) else ""
    if source.unit is None:
        excel = way_from_excel(column, source.timestamp)
        want = way or 'pass unit="s", "ms", "us" or "ns"' + (f"; or {excel}" if excel else "")
        if not fits and pa.types.is_integer(column.type) and are_clocks(column):
            name = literal(source.timestamp)
            joined = f'df["day"].astype(str) + " " + df[{name}].astype(str).str.zfill(6)'
            want = f"the day as well, if it is a time of day: df[{name}] = pandas.to_datetime({joined}); or {want}"
        if fits and not way:
            want = f'pass unit="{fits[0]}", as which {int(typical)} is {_day(typical, fits[0])}; or another unit'
        raise UnsupportedData(problem(f"column {source.timestamp!r} has plain numbers as times", column.type, want))
    if fits and typical / PER_SECOND[source.unit] > _LAST_S:
        day = _day(typical, fits[0])
        what = f"column {source.timestamp!r} read as {source.unit} lies after the year 9999"
        raise InvalidArgument(problem(what, int(typical), f'unit="{fits[0]}", as which it is {day}'))
    if fits or way:
        rest = f"; as {fits[0]} it would not" if fits else f", and the numbers look like dates; {way}"
        finding = f"column {source.timestamp!r} read as {source.unit} lies outside 1990 to 2100{rest}"
        warnings.warn(finding, stacklevel=level_of_user())
    return source.unit


def _refuse_bad(raw: Longs, missing: Flags | None, *, has_negative: bool, source: Source) -> None:
    if source.on_bad_time != "refuse":
        return
    name, want = source.timestamp, 'drop them, or pass on_bad_time="drop" to count them as dropped'
    if missing is not None and missing.any():
        raise InvalidData(problem(f"column {name!r} has missing timestamps", counted_rows(missing), want))
    if has_negative:
        what = f"column {name!r} has times before 1970, which Kafka refuses"
        raise InvalidData(problem(what, counted_rows(raw < 0), want))


def _scaled_in_parts(numbers: pa.ChunkedArray, finer: int) -> Longs | None:
    """The times in milliseconds, of which each is `finer` units, made chunk by chunk; None where one is negative."""
    scaled, at = np.empty(len(numbers), np.int64), 0
    for chunk in numbers.chunks:
        part = scaled[at : at + len(chunk)]
        at += len(chunk)
        np.floor_divide(numpy_array(chunk), finer, out=part)
        if len(part) and part.min() < 0:
            return None
    return scaled


def _scale(raw: Longs, unit: str) -> Longs:
    if unit == "ms":
        return raw
    if unit == "s":
        most = INT64_MAX // 1000
        if len(raw) and raw.max() > most:
            raise InvalidData(problem("a time in seconds is too large", int(raw.max()), "check the unit"))
        return np.maximum(raw, -most) * 1000  # a time far before 1970 must not wrap into one after it
    return raw // (PER_SECOND[unit] // 1000)
