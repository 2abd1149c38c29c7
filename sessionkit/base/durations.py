"""Times and durations as int64 milliseconds: reading them, printing them, adding them without wrapping."""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sessionkit.errors import InvalidArgument, NumberOverflow, problem, shorten

Duration = str | dt.timedelta | np.timedelta64 | Literal[0]  # any other number would need a unit

INT64_MAX = 2**63 - 1
# Half of the range: a stream time of -1 minus a gap and a grace of this size still cannot wrap.
MAX_DURATION_MS = 2**62
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000  # in ms
ROUND_MS = (  # lengths that a person would choose
    0,
    *(seconds * SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 3, 7, 14, 30, 60, 90, 180)),
    *(365 * DAY * 2**power for power in range(27)),
)
_SHOWN = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", 1))
# How people write each unit, in any case. "M" alone is a month to some and a minute to others.
_NAMES_OF_UNITS = (
    (Fraction(1, 1_000_000), ("ns", "nsec", "nsecs", "nano", "nanos", "nanosecond", "nanoseconds")),
    (Fraction(1, 1_000), ("us", "µs", "μs", "usec", "usecs", "micro", "micros", "microsecond", "microseconds")),
    (1, ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds")),
    (SECOND, ("s", "sec", "secs", "second", "seconds")),
    (MINUTE, ("m", "min", "mins", "minute", "minutes")),
    (HOUR, ("h", "hr", "hrs", "hour", "hours")),
    (DAY, ("d", "day", "days")),
    (7 * DAY, ("w", "wk", "wks", "week", "weeks")),
)
UNITS_MS = {name: ms for ms, names in _NAMES_OF_UNITS for name in names}
_MICROSECOND = dt.timedelta(microseconds=1)
_LONGEST_TEXT = 100  # a longer text is no duration, and int() would refuse thousands of digits with an error of its own
_LONGEST_NUMBER = 20  # characters of the text that the advice may repeat
_LARGEST_SHOWN = 10**_LONGEST_NUMBER
_NUMBER_AND_UNIT = 'a number with a unit (ms, s, m, h, d, weeks), such as "30s", "1h 30m" or "2 hours"'
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
            hours, minutes and seconds ("01:30:00"); a `datetime.timedelta`, `pd.Timedelta` or `np.timedelta64`; or 0.
    Raises:
        InvalidArgument: it is a number without a unit, negative, too long (2**62 ms), not a whole number of ms, or not
            a duration at all.
    Example:
        >>> duration_ms("1h 30m", "gap"), duration_ms("90 minutes", "gap"), duration_ms("PT1H30M", "gap")
        (5400000, 5400000, 5400000)
    """
    ms = exact_ms(value, name)
    if ms.denominator != 1:
        raise InvalidArgument(problem(f"{name} must be a whole number of milliseconds", repr(value), "round it"))
    return int(ms)


def exact_ms(value: Duration, name: str) -> Fraction:
    """The length as `duration_ms` has it, which may be a part of a millisecond, such as "500us" or "20 ns"."""
    given: Any = value
    if isinstance(given, str):
        ms = _parse(given, name)
    elif isinstance(given, np.timedelta64):
        ms = _of_numpy(given, name)
    elif isinstance(given, dt.timedelta):
        ms = Fraction(given // _MICROSECOND, 1_000) + Fraction(getattr(given, "nanoseconds", 0), 1_000_000)
    elif isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
        ms = Fraction(_of_number(given, name))
    else:
        want = 'give text such as "30s" or "2 hours", or a timedelta'
        raise InvalidArgument(problem(f"{name} must be a duration", shorten(repr(given)), want))
    return Fraction(_in_bounds(int(ms) if ms.denominator == 1 else ms, given, name, f'{name}="0s"'))


def length_ms(value: Duration | None, value_ms: int | None, name: str) -> int:
    """The length in milliseconds of a parameter with two spellings: `name` takes a duration, `name`_ms a number.

    Raises:
        InvalidArgument: both are given or neither is, or the one that is given is no such thing.
    Example:
        >>> length_ms("30s", None, "grace"), length_ms(None, 30_000, "grace")
        (30000, 30000)
    """
    given: Any = value_ms
    if given is None:
        if value is None:
            want = f'{name}="5m" or other text, or {name}_ms=300000 in milliseconds'
            raise InvalidArgument(problem(f"{name} must be given", f"neither {name} nor {name}_ms", want))
        return duration_ms(value, name)
    if value is not None:
        got = f"{name}={_shown(value)} and {name}_ms={_shown(given)}"
        raise InvalidArgument(problem(f"{name} and {name}_ms cannot both be given", got, "leave one out"))
    if isinstance(given, bool | np.timedelta64) or not isinstance(given, int | np.integer):
        want = f'whole milliseconds such as {name}_ms=300000, or {name}="5m"'
        raise InvalidArgument(problem(f"{name}_ms must be an int", shorten(repr(given)), want))
    return _in_bounds(int(given), None, f"{name}_ms", f"{name}_ms=0")


def of_two_names(inactivity_gap: Duration | None, gap: Duration | None) -> Duration | None:
    """The gap, which was given under Kafka's name or the short one."""
    if inactivity_gap is not None and gap is not None:
        got = f"inactivity_gap={_shown(inactivity_gap)} and gap={_shown(gap)}"
        raise InvalidArgument(problem("inactivity_gap and gap are two names of one length", got, "leave one out"))
    return inactivity_gap if gap is None else gap


def as_duration(ms: int) -> Duration:
    """`ms` for a parameter that takes a duration, exactly."""
    return np.timedelta64(ms, "ms")


def _in_bounds(ms: Any, value: Any, name: str, smallest: str) -> Any:
    if 0 <= ms <= MAX_DURATION_MS:
        return ms
    got = f"{_shown(ms if isinstance(ms, int) else float(ms))} ms"
    got += "" if value is None else f" ({shorten(repr(value))})"
    if ms < 0:
        raise InvalidArgument(problem(f"{name} must be 0 ms or more", got, f"{smallest} is allowed"))
    raise InvalidArgument(problem(f"{name} must be at most 2**62 ms", got, "shorten it"))


def _shown(value: Any) -> str:
    """The value as an error quotes it; of a number of 128 bits or more only its length."""
    if isinstance(value, int) and value.bit_length() >= 128:
        return f"(a number of {value.bit_length():,} bits)"
    return shorten(str(value) if isinstance(value, np.generic) else repr(value))


def _of_number(number: Any, name: str) -> int:
    """0 milliseconds for the number 0; refuses every other number, as it needs a unit."""
    if number == 0:
        return 0
    if number < 0:
        raise InvalidArgument(problem(f"{name} must be 0 ms or more", _shown(number), f'{name}="0s" is allowed'))
    if not number < _LARGEST_SHOWN:  # or not a number
        raise InvalidArgument(problem(f"{name} must be a duration", _shown(number), _NUMBER_AND_UNIT))
    text = np.format_float_positional(number, trim="-") if isinstance(number, float | np.floating) else str(number)
    raise _without_unit(text, text, name)


def _without_unit(number: str, got: str, name: str) -> InvalidArgument:
    want = f'"{number}ms" for milliseconds, "{number}s" for seconds, "{number}m" for minutes'
    return InvalidArgument(problem(f"{name} needs a unit", got, want))


def _of_numpy(value: np.timedelta64, name: str) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    length_ns = _NUMPY_UNITS_NS.get(unit)
    if np.isnat(value) or length_ns is None:
        want = "give one in weeks, days, hours, minutes, seconds or a part of a second"
        raise InvalidArgument(problem(f"{name} must be a duration", repr(value), want))
    return Fraction(int(value.astype(np.int64)) * count * length_ns, 1_000_000)


def _parse(text: str, name: str) -> Fraction:
    body = text.strip()
    sign, body = (-1, body[1:].strip()) if body.startswith("-") else (1, body)
    ms = _read(body) if len(body) <= _LONGEST_TEXT else None
    if ms is None:
        if len(body) <= _LONGEST_NUMBER and re.fullmatch(_NUMBER, body):
            raise _without_unit(body, repr(text), name)
        raise InvalidArgument(problem(f"{name} must be a duration", shorten(repr(text)), _meant(body)))
    return sign * ms


def _read(body: str) -> Fraction | None:
    """The duration that the text names, in milliseconds; None if it names none."""
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
    """Advice on what to write instead of a text that is no duration."""
    short = body if len(body) <= _LONGEST_NUMBER else ""
    if found := re.fullmatch(r"(\d{1,3}):([0-5]?\d)", short):
        first, second = int(found[1]), int(found[2])
        return f'write "{first}h {second}m" for hours and minutes, or "{first}m {second}s" for minutes and seconds'
    if found := re.fullmatch(rf"({_NUMBER})\s*M", short):
        return f'write "{found[1]}min" for minutes; a month has no fixed length: write its days, such as "30d"'
    if _WITHOUT_A_LENGTH.search(short.lower()) or re.match(r"P[^T]*[YM]", short):
        return 'months and years have no fixed length: write days, such as "30d" or "365d"'
    return _NUMBER_AND_UNIT


def about(ms: int, *, at_least: bool = False) -> str:
    """A length of time as a person says it: in its two largest units, in one from ten of it on; or one not shorter."""
    step_ms = _step_ms(ms)
    return show_duration((ms + (step_ms - 1 if at_least else step_ms // 2)) // step_ms * step_ms)


def enough_ms(ms: int) -> int:
    """A length that is hardly longer and takes few words: whole seconds from a minute on, minutes from an hour on."""
    step_ms = next((step for least, step in ((HOUR, MINUTE), (MINUTE, SECOND)) if ms >= least), 1)
    return -(-ms // step_ms) * step_ms


def smallest_round_ms(is_enough: Callable[[int], bool]) -> int:
    """The smallest of the round lengths that is enough, as every longer one is, too.

    Example:
        >>> smallest_round_ms(lambda ms: ms >= 70_000)
        120000
    """
    steps = [step for step in ROUND_MS if step < MAX_DURATION_MS // 4]
    return steps[min(bisect_left(steps, True, key=is_enough), len(steps) - 1)]


def lacked(missing_ms: int) -> str:
    """The grace that a dropped record lacked, in words; rounded up, so never less than it was."""
    return show_duration(enough_ms(missing_ms))


def grace_with(grace_ms: int, missing_ms: int) -> str:
    """A grace that would have kept a record that lacked so much: this one and what `lacked` says."""
    return show_duration(grace_ms + enough_ms(missing_ms))


def _step_ms(ms: int) -> int:
    """The smallest unit in which a length is said that is not said to the millisecond."""
    units = [unit_ms for _, unit_ms in _SHOWN]
    for unit_ms, next_ms in zip(units, [*units[1:-1], 100], strict=False):
        if ms >= unit_ms:
            return unit_ms if ms >= 10 * unit_ms else next_ms
    return 1


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
    """Refuses records whose windows would end beyond 64 bits; Kafka wraps there and quietly stops merging."""
    if latest_timestamp_ms > INT64_MAX - reach_ms:
        got = f"timestamp {latest_timestamp_ms} with {what} {reach_ms} ms"
        want = "times up to 2**62 ms are safe"
        raise NumberOverflow(problem("a window would end after the largest 64-bit time", got, want))
