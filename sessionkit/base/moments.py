"""A moment as people write it, as milliseconds since the epoch."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

import numpy as np

from sessionkit.errors import InvalidArgument, problem, shorten

Moment = int | str | dt.datetime | np.datetime64

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_FIXED = re.compile(r"([+-])(\d\d):?(\d\d)")
_FINER = re.compile(r"[.,]\d{3}\d*[1-9]")  # a digit that is not 0 behind the milliseconds


def moment_ms(value: Moment, name: str, timezone: str = "UTC") -> int:
    """The moment in milliseconds since the epoch; `name` is the parameter's name in an error.

    Args:
        value: a `pd.Timestamp`, a `datetime`, a `np.datetime64`, ISO 8601 text ("2024-07-01 00:10", "2024-07-01",
            "2024-07-01T00:10+02:00"), or milliseconds as an int.
        timezone: the zone of a moment that names none.
    Raises:
        InvalidArgument: no moment, one finer than a millisecond, or one that a change of clocks makes ambiguous.
    Example:
        >>> moment_ms("2024-07-02 00:10", "start", "Europe/Berlin"), moment_ms("2024-07-01T22:10Z", "start")
        (1719871800000, 1719871800000)
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    got = shorten(repr(value))
    if isinstance(value, np.datetime64) and not np.isnat(value):
        moment: dt.datetime | None = _of_numpy(value, name)
    elif isinstance(value, str):
        moment = _of_text(value, name)
    else:
        moment = value if isinstance(value, dt.datetime) and value == value else None  # NaT is not equal to itself
    if moment is None:
        want = 'a time such as "2024-07-01 00:10", a Timestamp or datetime, or milliseconds as an int'
        raise InvalidArgument(problem(f"{name} must be a moment", got, want))
    if moment.tzinfo is None:
        moment = _placed(moment, name, timezone)
    since = moment.astimezone(dt.UTC).replace(tzinfo=dt.UTC) - _EPOCH
    nanoseconds: int = getattr(value, "nanosecond", 0)  # of a pd.Timestamp
    if since % _MILLISECOND or nanoseconds:
        raise _too_fine(name, got)
    return since // _MILLISECOND


def zone_of(timezone: str) -> dt.tzinfo:
    """The zone of a name, or of an offset such as "+02:00", as Arrow's types have them."""
    fixed = _FIXED.fullmatch(timezone)
    if fixed is None:
        return ZoneInfo(timezone)
    ahead = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
    return dt.timezone(ahead if fixed[1] == "+" else -ahead)


def _too_fine(name: str, got: str) -> InvalidArgument:
    return InvalidArgument(problem(f"{name} is finer than a millisecond", got, "round it down to milliseconds"))


def _of_numpy(value: np.datetime64, name: str) -> dt.datetime:
    ms = value.astype("datetime64[ms]")
    if ms != value:
        raise _too_fine(name, repr(value))
    return dt.datetime(1970, 1, 1) + int(ms.astype(np.int64)) * _MILLISECOND


def _of_text(text: str, name: str) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if _FINER.search(text):
        raise _too_fine(name, shorten(repr(text)))
    return moment


def _placed(moment: dt.datetime, name: str, timezone: str) -> dt.datetime:
    """The moment in its zone, if clocks there show it once."""
    zone = zone_of(timezone)
    early, late = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if early.utcoffset() != late.utcoffset():
        is_there = early.astimezone(dt.UTC).astimezone(zone).replace(tzinfo=None) == moment.replace(fold=0)
        what = "twice" if is_there else "never"
        want = f'name the offset, such as "{early.isoformat(timespec="minutes")}"'
        raise InvalidArgument(problem(f"{name} is a time that clocks in {timezone} show {what}", str(moment), want))
    return early
