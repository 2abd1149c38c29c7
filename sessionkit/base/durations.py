"""Times and durations as int64 milliseconds: reading them, printing them, adding them without wrapping."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

from sessionkit.errors import InvalidArgument, NumberOverflow, problem, shorten

Duration = int | str | dt.timedelta

INT64_MAX = 2**63 - 1
# Half of the range: a stream time of -1 minus a gap and a grace of this size still cannot wrap.
MAX_DURATION_MS = 2**62
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_MILLISECOND = dt.timedelta(milliseconds=1)
_LONGEST_TEXT = 100  # what is longer is no duration, and int() refuses thousands of digits in words of its own
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*")
_SHOWN = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def duration_ms(value: Duration, name: str) -> int:
    """The length of `value` in milliseconds; `name` is the parameter's name in an error.

    Args:
        value: milliseconds as an int, a text such as "90s", "1h 30m" or "250ms" (units ms, s, m or min, h, d),
            or a `datetime.timedelta`.
    Raises:
        InvalidArgument: it is negative, too long (2**62 ms), not a whole number of ms, or not a duration at all.
    Example:
        >>> duration_ms("1h 30m", "gap")
        5400000
    """
    if isinstance(value, bool) or not isinstance(value, int | str | dt.timedelta):
        want = 'give milliseconds as an int, a text such as "30s", or a timedelta'
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


def _parse(text: str, name: str) -> int:
    body = text.strip().removeprefix("-")
    parts = _PART.findall(body) if len(body) <= _LONGEST_TEXT else []
    if not parts or _PART.sub("", body):
        want = 'a number with a unit (ms, s, m, h, d), such as "30s" or "1h 30m"'
        raise InvalidArgument(problem(f"{name} must be a duration", shorten(repr(text)), want))
    ms = sum((Fraction(number) * UNITS_MS[unit] for number, unit in parts), Fraction())
    if ms.denominator != 1:
        raise InvalidArgument(problem(f"{name} must be a whole number of milliseconds", repr(text), "round it"))
    return -int(ms) if text.strip().startswith("-") else int(ms)


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


def show_time(ms: int) -> str:
    """An event time as "2013-07-01 05:15:00" (with milliseconds only where there are any); UTC, or the clock given."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds" if ms % 1000 else "seconds")


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
