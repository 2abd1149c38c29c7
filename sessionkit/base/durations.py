"""Times and durations as int64 milliseconds: reading them, printing them, adding them without wrapping."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from sessionkit.errors import InvalidArgument, NumberOverflow, problem, shorten

Duration = int | str | dt.timedelta | np.timedelta64

INT64_MAX = 2**63 - 1
# Half of the range: a stream time of -1 minus a gap and a grace of this size still cannot wrap.
MAX_DURATION_MS = 2**62
_SHOWN = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
# How people write each unit, in any case. "M" alone is a month to some and a minute to others.
_NAMES_OF_UNITS = (
    (1, ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds")),
    (1_000, ("s", "sec", "secs", "second", "seconds")),
    (60_000, ("m", "min", "mins", "minute", "minutes")),
    (3_600_000, ("h", "hr", "hrs", "hour", "hours")),
    (86_400_000, ("d", "day", "days")),
    (604_800_000, ("w", "wk", "wks", "week", "weeks")),
)
UNITS_MS = {name: ms for ms, names in _NAMES_OF_UNITS for name in names}
_MILLISECOND = dt.timedelta(milliseconds=1)
_LONGEST_TEXT = 100  # what is longer is no duration, and int() refuses thousands of digits in words of its own
_NUMBER = r"\d+(?:\.\d+)?"
_PART = re.compile(rf"({_NUMBER})\s*({'|'.join(sorted(UNITS_MS, key=len, reverse=True))})(?![a-z])\s*(?:,\s*|and\s+)?")
_ISO = re.compile(rf"P(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?")
_CLOCK = re.compile(r"(?:(\d+) days?,? )?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)")
_MONTH_OR_MINUTE = re.compile(r"\d\s*M(?![A-Za-z])")
_WITHOUT_A_LENGTH = re.compile(r"(?<![a-z])(?:y|yr|year|month|quarter)s?(?![a-z])")

_NUMPY_UNITS_NS = {
    **{"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000},
    **{"h": 3_600_000_000_000, "D": 86_400_000_000_000, "W": 604_800_000_000_000},
}


def duration_ms(value: Duration, name: str) -> int:
    """The length of `value` in milliseconds; `name` is the parameter's name in an error.

    Args:
        value: a text: numbers with units ("90s", "1h 30m", "2 hours and 30 minutes", "1 week"), ISO 8601 ("PT2H") or
            hours, minutes and seconds ("01:30:00"); a `datetime.timedelta`, `pd.Timedelta` or `np.timedelta64`; or
            milliseconds as an int.
    Raises:
        InvalidArgument: it is negative, too long (2**62 ms), not a whole number of ms, or not a duration at all.
    Example:
        >>> duration_ms("1h 30m", "gap"), duration_ms("90 minutes", "gap"), duration_ms("PT1H30M", "gap")
        (5400000, 5400000, 5400000)
    """
    if isinstance(value, np.timedelta64):
        value = _of_numpy(value, name)
    if isinstance(value, bool) or not isinstance(value, int | str | dt.timedelta):
        want = 'give a text such as "30s" or "2 hours", a timedelta, or milliseconds as an int'
        raise InvalidArgument(problem(f"{name} must be a duration", shorten(repr(value)), want))
    if isinstance(value, str):
        ms = _parse(value, name)
    elif isinstance(value, dt.timedelta):
        if value % _MILLISECOND:
            raise InvalidArgument(problem(f"{name} must be a whole number of milliseconds", repr(value), "round it"))
        ms = value // _MILLISECOND
    else:
        ms = value
    if ms < 0:
        want = f'{name}="0s" is allowed'
        raise InvalidArgument(problem(f"{name} must be 0 ms or more", _said(ms, value), want))
    if ms > MAX_DURATION_MS:
        raise InvalidArgument(problem(f"{name} must be at most 2**62 ms", _said(ms, value), "shorten it"))
    return ms


def _said(ms: int, value: Duration) -> str:
    return f"{ms} ms ({value!r})" if ms.bit_length() < 128 else f"a number of {ms.bit_length():,} bits"


def _of_numpy(value: np.timedelta64, name: str) -> int:
    unit, count = np.datetime_data(value.dtype)
    length_ns = _NUMPY_UNITS_NS.get(unit)
    if np.isnat(value) or length_ns is None:
        want = "give one in weeks, days, hours, minutes, seconds or a part of a second"
        raise InvalidArgument(problem(f"{name} must be a duration", repr(value), want))
    ms = Fraction(int(value.astype(np.int64)) * count * length_ns, 1_000_000)
    if ms.denominator != 1:
        raise InvalidArgument(problem(f"{name} must be a whole number of milliseconds", repr(value), "round it"))
    return int(ms)


def _parse(text: str, name: str) -> int:
    body = text.strip()
    sign, body = (-1, body[1:].strip()) if body.startswith("-") else (1, body)
    ms = _read(body) if len(body) <= _LONGEST_TEXT else None
    if ms is None:
        raise InvalidArgument(problem(f"{name} must be a duration", shorten(repr(text)), _meant(body)))
    if ms.denominator != 1:
        raise InvalidArgument(problem(f"{name} must be a whole number of milliseconds", repr(text), "round it"))
    return sign * int(ms)


def _read(body: str) -> Fraction | None:
    """The milliseconds that the text says; None if it says none."""
    if body == "0":
        return Fraction()
    for form, units in ((_ISO, ("w", "d", "h", "m", "s")), (_CLOCK, ("d", "h", "m", "s"))):
        found = form.fullmatch(body.upper() if form is _ISO else body)
        if found and any(found.groups()):
            return _total(zip(found.groups(), units, strict=True))
    words = body.lower()
    parts = _PART.findall(words)
    if not parts or _PART.sub("", words) or words.endswith((",", "and")) or _MONTH_OR_MINUTE.search(body):
        return None
    return _total(parts)


def _total(parts: Iterable[tuple[str | None, str]]) -> Fraction:
    return sum((Fraction(number) * UNITS_MS[unit] for number, unit in parts if number), Fraction())


def _meant(body: str) -> str:
    """What to write instead."""
    short = body if len(body) <= 20 else ""
    if found := re.fullmatch(r"(\d{1,3}):([0-5]?\d)", short):
        first, second = int(found[1]), int(found[2])
        return f'write "{first}h {second}m" for hours and minutes, or "{first}m {second}s" for minutes and seconds'
    if found := re.fullmatch(rf"({_NUMBER})\s*M", short):
        return f'write "{found[1]}min" for minutes; a month has no fixed length: write its days, such as "30d"'
    if re.fullmatch(_NUMBER, short):
        return f'a number needs its unit: "{short}ms" for milliseconds, "{short}s" for seconds'
    if _WITHOUT_A_LENGTH.search(short.lower()) or re.match(r"P[^T]*[YM]", short):
        return 'months and years have no fixed length: write days, such as "30d" or "365d"'
    return 'a number with a unit (ms, s, m, h, d, weeks), such as "30s", "1h 30m" or "2 hours"'


def retention_ms(value: Duration | None, smallest_ms: int, smallest: str) -> int:
    """How long a store keeps windows: `value`, or the smallest that is allowed.

    Raises:
        InvalidArgument: it is shorter, which Kafka refuses, too.
    Example:
        >>> retention_ms(None, 40_000, "size + grace"), retention_ms("1m", 40_000, "size + grace")
        (40000, 60000)
    """
    ms = smallest_ms if value is None else duration_ms(value, "retention")
    if ms < smallest_ms:
        want = f"at least {smallest} = {show_duration(smallest_ms)}"
        raise InvalidArgument(problem("retention must cover the windows", show_duration(ms), want))
    return ms


def show_duration(ms: int) -> str:
    """`ms` as a person would say it, exact to the millisecond.

    Example:
        >>> show_duration(5_400_000), show_duration(420_000), show_duration(0)
        ('1 h 30 min', '7 min', '0 s')
    """
    if ms < 0:
        return "-" + show_duration(-ms)
    parts = []
    for unit, length in _SHOWN:
        if ms >= length:
            count, ms = divmod(ms, length)
            parts.append(f"{count:,} {unit}")
    return " ".join(parts) or "0 s"


def duration_code(ms: int) -> str:
    """`ms` as text that `duration_ms` reads back, for code: "1h30m"; "0s" for none."""
    return show_duration(ms).replace("min", "m").replace(" ", "").replace(",", "")


def check_reach(latest_timestamp_ms: int, reach_ms: int, what: str) -> None:
    """Refuses records whose windows would end beyond 64 bits; Kafka wraps there and quietly stops merging.

    Raises:
        NumberOverflow: `latest_timestamp_ms + reach_ms` does not fit into int64.
    """
    if latest_timestamp_ms > INT64_MAX - reach_ms:
        got = f"timestamp {latest_timestamp_ms} with {what} {reach_ms} ms"
        raise NumberOverflow(
            problem("a window would end after the largest 64-bit time", got, "times up to 2**62 ms are safe")
        )
