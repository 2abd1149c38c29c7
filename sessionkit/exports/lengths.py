"""Lengths of time as a person writes them in the language of each export, exact to the millisecond."""

from __future__ import annotations

from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND, show_duration
from sessionkit.errors import InvalidArgument, problem

_UNITS_MS = {"day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1}
_JAVA = {"day": "Days", "hour": "Hours", "minute": "Minutes", "second": "Seconds", "millisecond": "Millis"}
_LARGEST_INT = 2**31 - 1
_MOST_FLINK_DAYS = 999_999


def java_duration(ms: int) -> str:
    """A `java.time.Duration`."""
    parts = [(count, unit, "" if count <= _LARGEST_INT else "L") for count, unit in _in_units(ms, "day")]
    return "Duration.of" + ".plus".join(f"{_JAVA[unit]}({count}{end})" for count, unit, end in parts)


def ksql_length(ms: int) -> str:
    """A length in the largest unit of ksqlDB that divides it, as it takes one unit only."""
    count, unit = _in_one_unit(ms)
    return _counted(count, unit).upper()


def flink_interval(ms: int) -> str:
    """An INTERVAL of Flink SQL; `InvalidArgument` for one that is too long for Flink."""
    count, unit = _in_one_unit(ms)
    if count < 100 and unit != "millisecond":  # two digits, unless a precision is given
        return f"INTERVAL '{count}' {unit.upper()}"
    days, rest = divmod(ms, _UNITS_MS["day"])
    if days > _MOST_FLINK_DAYS:
        want = f"at most {_MOST_FLINK_DAYS:,} days"
        raise InvalidArgument(problem("a duration is too long for Flink's intervals", show_duration(ms), want))
    hours, rest = divmod(rest, _UNITS_MS["hour"])
    minutes, rest = divmod(rest, _UNITS_MS["minute"])
    seconds, milliseconds = divmod(rest, _UNITS_MS["second"])
    text = f"{days} {hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
    return f"INTERVAL '{text}' DAY({len(str(days))}) TO SECOND(3)"


def spark_interval(ms: int) -> str:
    """The text of an interval of Spark; without days, as one of those follows the clock of the session's zone."""
    return " ".join(_counted(count, unit) for count, unit in _in_units(ms, "hour"))


def _in_units(ms: int, largest: str) -> list[tuple[int, str]]:
    """The parts that make up a length of time, the longest first."""
    parts, units = [], list(_UNITS_MS)
    for unit in units[units.index(largest) :]:
        count, ms = divmod(ms, _UNITS_MS[unit])
        if count:
            parts.append((count, unit))
    return parts or [(0, "second")]


def _in_one_unit(ms: int) -> tuple[int, str]:
    """A whole length of time in the largest unit that divides it."""
    if ms == 0:
        return 0, "second"
    return next((ms // length, unit) for unit, length in _UNITS_MS.items() if ms % length == 0)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
