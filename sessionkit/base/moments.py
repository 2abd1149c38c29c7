"""Moments: as people write them, as milliseconds since the epoch, and as the clocks of a zone show them."""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import DAY
from sessionkit.errors import InvalidArgument, attempted, problem, shorten

Moment = int | str | dt.date | np.datetime64  # a datetime is a date; timestamps of Arrow are taken, too


class Timezone(str):
    """The zone in which a run tells its times: that of the plan (`timezone=`), else that of the column, else "UTC".

    Moments without a zone, such as "2024-07-02 00:10", are read in it.
    """

    __slots__ = ()


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_WEEK_MS = 7 * DAY  # no zone changes its clocks twice in a week
_LAST_MS = 253_402_128_000_000  # two days before the year 10000
SHORT_HISTORY_MS = 30 * DAY  # toy data counts from the epoch: "27 min" reads better than a date in 1970
_BEFORE_ALL = -(2**62)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?([0-5]\d))?")
_FIXED = re.compile(r"([+-])(\d\d):?(\d\d)")
_FINER = re.compile(r"[.,]\d{3}\d*[1-9]")  # a digit that is not 0 behind the milliseconds


def moment_ms(value: Moment, name: str, timezone: str = "UTC") -> int:
    """The moment in milliseconds since the epoch; `name` is the parameter's name in an error.

    Args:
        value: a `pd.Timestamp`, a `datetime`, a `date` (its midnight), a `np.datetime64`, a timestamp of Arrow, ISO
            8601 text ("2024-07-01 00:10", "2024-07-01", "2024-07-01T00:10+02:00"), or milliseconds as an int.
        timezone: the zone of a moment that names none.
    Raises:
        InvalidArgument: no moment, one finer than a millisecond, or one that a change of clocks makes ambiguous.
    Example:
        >>> moment_ms("2024-07-02 00:10", "start", "Europe/Berlin"), moment_ms("2024-07-01T22:10Z", "start")
        (1719871800000, 1719871800000)
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, pa.TimestampScalar):  # of an Arrow table
        value = value.as_py()
    got = shorten(repr(value))
    if isinstance(value, np.datetime64) and not np.isnat(value):
        moment: dt.datetime | None = _of_numpy(value, name)
    elif isinstance(value, str):
        moment = _of_text(value, name)
    elif isinstance(value, dt.datetime):
        moment = value if value == value else None  # NaT is not equal to itself
    else:
        moment = dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else None
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


def show_time(ms: int, timezone: str = "UTC") -> str:
    """The moment as clocks in the zone show it, with milliseconds only where there are any.

    Where clocks are set back and show an hour twice, the offset says which of the two it is.

    Example:
        >>> show_time(1372655700000), show_time(1372655700000, "America/New_York")
        ('2013-07-01 05:15:00', '2013-07-01 01:15:00')
        >>> show_time(1729990800000, "Europe/Berlin")
        '2024-10-27 02:00:00+01:00'
    """
    zone = dt.UTC if timezone == "UTC" else zone_of(timezone)
    try:
        moment = (_EPOCH + dt.timedelta(milliseconds=ms)).astimezone(zone)
    except OverflowError:
        return f"{ms} ms"
    if moment.replace(fold=0).utcoffset() == moment.replace(fold=1).utcoffset():
        moment = moment.replace(tzinfo=None)
    return moment.isoformat(sep=" ", timespec="milliseconds" if ms % 1000 else "seconds")


def cut_time(shown: str, letters: int | None) -> str:
    """The text of `show_time` cut after its first letters; the zone's offset behind them stays."""
    return shown if letters is None else shown[:letters] + shown[letters:].lstrip(":.0123456789")


@dataclass(frozen=True)
class ClockChanges:
    """The table of a zone's changes of clocks, which charts, boards and pages read.

    Axes are even in elapsed time; what is written along them is what clocks show.
    """

    changes_ms: Longs
    offsets_ms: Longs  # how far clocks are ahead of UTC before the first change, and from each on

    def local(self, times_ms: npt.ArrayLike) -> Longs:
        """Times of the zone's clocks, as milliseconds since 1970 in UTC: an hour that they show twice comes twice."""
        times = np.asarray(times_ms, np.int64)
        return times + self.offsets_ms[np.searchsorted(self.changes_ms, times, side="right")]

    def first_at(self, local_ms: npt.ArrayLike) -> Longs:
        """The first moments at which clocks show these local times; of times that they skip, the change."""
        local = np.asarray(local_ms, np.int64)
        piece = np.searchsorted(self.changes_ms + self.offsets_ms[:-1], local, side="right")
        return np.maximum(local - self.offsets_ms[piece], np.append(_BEFORE_ALL, self.changes_ms)[piece])

    def last_at(self, local_ms: npt.ArrayLike) -> Longs:
        """The last moments at which clocks show these local times; of times that they skip, the change."""
        local = np.asarray(local_ms, np.int64)
        piece = np.searchsorted(self.changes_ms + self.offsets_ms[1:], local, side="right")
        return np.minimum(local - self.offsets_ms[piece], np.append(self.changes_ms, -_BEFORE_ALL)[piece])

    def pieces(self, low_ms: int, high_ms: int) -> list[tuple[int, int, int]]:
        """(from, to, offset) of each stretch of a span, both included, in which clocks are not changed."""
        inside = self.changes_ms[(self.changes_ms > low_ms) & (self.changes_ms <= high_ms)].tolist()
        starts, ends = [low_ms, *inside], [*(ms - 1 for ms in inside), high_ms]
        offsets = (self.local(starts) - np.array(starts)).tolist()
        return list(zip(starts, ends, offsets, strict=True))


@lru_cache(maxsize=64)
def clock_changes(timezone: str, last_ms: int, first_ms: int = 0) -> ClockChanges:
    """The changes of clocks of a zone between two times, at most up to the last years that clocks show."""
    zone, last_ms = zone_of(timezone), min(last_ms, _LAST_MS)

    def offset(ms: int) -> int:
        ahead = (_EPOCH + ms * _MILLISECOND).astimezone(zone).utcoffset()
        return (ahead or dt.timedelta()) // _MILLISECOND

    at, changes, offsets = first_ms, [], [offset(first_ms)]
    while at < last_ms and timezone != "UTC":
        behind = min(at + _WEEK_MS, last_ms)
        if offset(behind) != offsets[-1]:
            behind = at + 1 + bisect_left(range(at + 1, behind), True, key=lambda ms: offset(ms) != offsets[-1])
            changes.append(behind)
            offsets.append(offset(behind))
        at = behind
    return ClockChanges(np.array(changes, np.int64), np.array(offsets, np.int64))


def known_zone(timezone: str) -> str:
    """The zone under the name that Arrow knows: that of the IANA database, or an offset such as "+02:00"."""
    if timezone == "Z":
        return "UTC"
    offset = _OFFSET.fullmatch(timezone)
    if offset is not None and int(offset[2]) <= 18:  # Java's and Arrow's limit
        return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: a folder of the database
        raise no_such_zone(timezone) from error
    return timezone


def no_such_zone(timezone: str) -> InvalidArgument:
    """The error for a zone that is not known."""
    town = timezone.replace(" ", "_").casefold()
    alike = [f'timezone="{each}"' for each in sorted(available_timezones()) if each.casefold().endswith(f"/{town}")]
    want = " or ".join(alike[:3]) or 'a name such as "UTC" or "America/New_York"'
    return InvalidArgument(problem("timezone must be a zone of the IANA database", shorten(repr(timezone)), want))


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
    moment = attempted(dt.datetime.fromisoformat, text.strip(), but=ValueError)
    if moment is not None and _FINER.search(text):
        raise _too_fine(name, shorten(repr(text)))
    return moment


def _placed(moment: dt.datetime, name: str, timezone: str) -> dt.datetime:
    """The moment in its zone; refuses one that clocks there show twice or never."""
    zone = zone_of(timezone)
    early, late = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if early.utcoffset() != late.utcoffset():
        is_there = early.astimezone(dt.UTC).astimezone(zone).replace(tzinfo=None) == moment.replace(fold=0)
        often = "twice" if is_there else "never"
        want = f'name the offset, such as "{early.isoformat(timespec="minutes")}"'
        raise InvalidArgument(problem(f"{name} is a time that clocks in {timezone} show {often}", str(moment), want))
    return early
