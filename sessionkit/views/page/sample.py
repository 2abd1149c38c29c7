"""Which records a page carries: all of a run's, or those of some keys; and which runs no page can recompute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import show_duration
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, problem, shorten
from sessionkit.records.keys import code_of_key
from sessionkit.trace.trace import Trace
from sessionkit.views.words import idle_rule
from sessionkit.windows.calendar import CalendarWindows
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows

MOST_EXACT = 2**53  # up to here each integer is a number of JavaScript
SEED = 20  # of the keys that are drawn where not all fit


class Sample(NamedTuple):
    """Records of whole keys and of a stretch of one, as rows of the trace in order of arrival, and how many there are.

    `cut` is the code of the key of which there is only a stretch, if there is one.
    """

    rows: npt.NDArray[np.intp]
    keys: npt.NDArray[np.intp]  # codes, in the order of the keys
    all_keys: int
    all_records: int
    was_asked: bool  # for these keys
    cut: int | None = None

    @property
    def is_whole(self) -> bool:
        """All records of the run are in it."""
        return len(self.rows) == self.all_records


def sample(
    trace: Trace,
    keys: Iterable[object] | None,
    most_records: int,
    most_eventful: object = None,
    *,
    by_name: bool = True,
    reach_ms: int = 0,
) -> Sample:
    """All records, or those of `keys`, or of as many keys drawn at random as have at most `most_records`.

    A page that needs a choice has the key with most to see, or a stretch of it if it alone is too large; the others
    are drawn, so that shares stay about right.

    Args:
        by_name: the keys are in the order of their names; else in that of the data, which does not tell of them.
        reach_ms: records of a key that are further apart have no window in common.
    """
    if most_records < 1:
        raise InvalidArgument(problem("most_records is a number of records", most_records, "1 or more"))
    key, count = trace.batch.key, len(trace.keys)
    cut = None
    if keys is not None:
        chosen = np.unique(np.array([code_of_key(trace.keys, each) for each in keys], np.intp))
        rows = _of_keys(key, chosen, count)
        if len(rows) > most_records:
            want = f"fewer keys, or most_records={len(rows)}"
            got = f"{len(rows):,} records with most_records={most_records:,}"
            raise InvalidArgument(problem("the records of these keys are too many for a page", got, want))
    elif trace.record_count <= most_records:
        rows, chosen = np.flatnonzero(trace.is_record), np.arange(count)
    elif not count:
        rows = chosen = np.array([], np.intp)
    else:
        records, first = np.bincount(key[key >= 0], minlength=count), code_of_key(trace.keys, most_eventful)
        if records[first] <= most_records:
            chosen = _drawn(records, [first], most_records)
            rows = _of_keys(key, chosen, count)
        else:
            drawn = _drawn(np.where(np.arange(count) == first, most_records, records), [], most_records // 2)
            own, chosen, cut = np.flatnonzero(key == first), np.append(drawn, first), first
            stretch = own[_stretch(trace, own, most_records - int(records[drawn].sum()), reach_ms)]
            rows = np.sort(np.append(_of_keys(key, drawn, count), stretch))
    order = trace.keys.to_pylist().__getitem__ if by_name else None
    codes = np.array(sorted(chosen.tolist(), key=order), np.intp)
    return Sample(rows, codes, count, trace.record_count, keys is not None, cut)


def _of_keys(key: npt.NDArray[np.int32], chosen: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    is_chosen = np.zeros(count + 1, np.bool_)  # the last is of records without a key
    is_chosen[chosen] = True
    return np.flatnonzero(is_chosen[key])


def _drawn(records: Longs, chosen: list[int], most: int) -> npt.NDArray[np.intp]:
    """Keys with at most so many records together: those chosen, then others at random, each that still fits."""
    others = np.random.default_rng(SEED).permutation(len(records))
    order = np.append(chosen, others[~np.isin(others, chosen)]).astype(np.intp)
    kept, room = [], most
    for code in order.tolist():
        if records[code] <= room:
            kept.append(code)
            room -= int(records[code])
    return np.sort(np.array(kept, np.intp))


def _stretch(trace: Trace, own: npt.NDArray[np.intp], size: int, reach_ms: int) -> slice:
    """Where the `size` records of a key with most to see lie among its records.

    They begin where no window of an earlier record is touched again, so that each is decided as in the whole run; if
    that costs more than half of what there is to see, they begin within a window.
    """
    worth = np.append(0, np.cumsum(trace.worth_seeing[own]))
    seen = worth[size:] - worth[:-size]
    kept, times = trace.accepted[own], trace.batch.timestamp_ms[own]
    newest = np.maximum.accumulate(np.where(kept, times, -MOST_EXACT))
    oldest = np.minimum.accumulate(np.where(kept, times, MOST_EXACT)[::-1])[::-1]
    fresh = np.append(0, 1 + np.flatnonzero(oldest[1 : len(seen)] - newest[: len(seen) - 1] > reach_ms))
    best, clean = np.flatnonzero(seen == seen.max()), int(fresh[np.argmax(seen[fresh])])
    first = clean if 2 * seen[clean] >= seen.max() else int(best[len(best) // 2])
    return slice(first, first + size)


def check_can_be_a_page(run: Any, windows: WindowKind, call: str) -> None:
    """Refuses a run whose decisions the page's engine cannot make again."""
    what = f"{call} cannot recompute this run in the browser"
    parameters = windows.arguments()[1]
    if type(windows) not in (SessionWindows, TimeWindows, CalendarWindows):
        want = "sessions, tumbling, hopping or calendar windows; run.lanes() and run.plane() draw others"
        raise NotBuilt(problem(what, windows.code(), want))
    if not windows.is_ever_closed:
        raise NotBuilt(problem(what, windows.code(), "windows with a grace: what never closes has no price to show"))
    if run.deployed is not None:
        want = "plan.run(data) without one, whose rules the page knows"
        raise NotBuilt(problem(what, "a run with a deployment", want))
    trace: Trace = run.trace
    if parameters.get("offset_ms") and bool((trace.batch.timestamp_ms[trace.accepted] < windows.reach_ms).any()):
        want = "times from their size on: the page cuts no window at 1970"
        raise NotBuilt(problem(what, windows.code(), want))
    if trace.batch.idle is not None:
        got = f"a plan with idle_after= ({idle_rule(trace.batch)})"
        raise NotBuilt(problem(what, got, "a plan without it; the page moves by records"))
    if trace.window_columns.loaded_count or bool((trace.first_stream_time_ms >= 0).any()):
        want = "a run of all records without a store; the page does not hold what the store had"
        raise NotBuilt(problem(what, "a run that goes on from what a store held", want))
    latest = int(max(trace.last_stream_time_ms.max(initial=0), trace.batch.offset.max(initial=0)))
    lengths = [ms for name, ms in parameters.items() if name.endswith("_ms")]
    if latest + sum(lengths) >= MOST_EXACT:
        got = f"times or offsets up to {latest}, with lengths of {shorten(', '.join(map(show_duration, lengths)), 100)}"
        raise InvalidData(problem(f"{call} needs numbers that JavaScript has exactly", got, "together below 2**53"))
