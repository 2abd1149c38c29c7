"""Which records a page carries: all of a run's, or those of whole keys; and which runs no page can recompute."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.durations import show_duration
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, problem, shorten
from sessionkit.trace.trace import Trace
from sessionkit.views.charts.scenes.key_rows import key_code
from sessionkit.views.words import idle_rule
from sessionkit.windows.contract import WindowKind

MOST_EXACT = 2**53  # up to here each integer is a number of JavaScript
SEED = 20  # of the keys that are drawn where not all fit


class Sample(NamedTuple):
    """Records of whole keys, as rows of the trace in order of arrival, with how many there are in all."""

    rows: npt.NDArray[np.intp]
    keys: npt.NDArray[np.intp]  # codes, in the order of the keys
    all_keys: int
    all_records: int
    was_asked: bool  # for these keys

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
) -> Sample:
    """All records, or those of `keys`, or of as many keys drawn at random as have at most `most_records`.

    A page that needs a choice has the key with most to see; the others are drawn, so that shares stay about right.

    Args:
        by_name: the keys are in the order of their names; else in that of the data, which does not tell of them.
    Raises:
        InvalidArgument: less than one record, or no key fits.
        UnknownRecord: the run holds no such key.
    """
    if most_records < 1:
        raise InvalidArgument(problem("most_records is a number of records", most_records, "1 or more"))
    key, count = trace.batch.key, len(trace.keys)
    ordered = partial(_by_name, trace) if by_name else np.sort
    if keys is not None:
        asked = np.unique(np.array([key_code(trace, each) for each in keys], np.intp))
        found = _of_keys(key, asked, count)
        if len(found) > most_records:
            want = f"fewer keys, or most_records={len(found)}"
            got = f"{len(found):,} records with most_records={most_records:,}"
            raise InvalidArgument(problem("the records of these keys are too many for a page", got, want))
        return Sample(found, ordered(asked), count, trace.record_count, was_asked=True)
    if trace.record_count <= most_records:
        rows = np.flatnonzero(trace.is_record)
        return Sample(rows, ordered(np.arange(count)), count, len(rows), was_asked=False)
    drawn = _drawn(np.bincount(key[key >= 0], minlength=count), key_code(trace, most_eventful), most_records)
    if not len(drawn):
        fewest = int(np.bincount(key[key >= 0], minlength=count).min())
        want = f"most_records={fewest} or more: a page carries all records of a key"
        raise InvalidArgument(problem("no key has so few records", f"most_records={most_records}", want))
    return Sample(_of_keys(key, drawn, count), ordered(drawn), count, trace.record_count, was_asked=False)


def _by_name(trace: Trace, codes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    names = trace.keys.to_pylist()
    return np.array(sorted(codes.tolist(), key=names.__getitem__), np.intp)


def _of_keys(key: npt.NDArray[np.int32], chosen: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    is_chosen = np.zeros(count + 1, np.bool_)  # the last is of records without a key
    is_chosen[chosen] = True
    return np.flatnonzero(is_chosen[key])


def _drawn(records: npt.NDArray[np.int64], first: int, most: int) -> npt.NDArray[np.intp]:
    """Keys with at most so many records together: `first` if it fits, then others at random, each that still fits."""
    others = np.random.default_rng(SEED).permutation(len(records))
    order = np.append(first, others[others != first])
    kept, room = [], most
    for code in order.tolist():
        if records[code] <= room:
            kept.append(code)
            room -= int(records[code])
    return np.sort(np.array(kept, np.intp))


def check_can_be_a_page(run: Any, windows: WindowKind, call: str) -> None:
    """Refuses a run whose decisions the page's engine cannot make again.

    Raises:
        NotBuilt: windows of another kind, Kafka's own rules, or windows that were there before the run.
        InvalidData: times that are no exact numbers in JavaScript.
    """
    what, want = f"{call} cannot recompute this run in the browser", ""
    parameters = windows.arguments()[1]
    if not {"inactivity_gap_ms", "size_ms"} & parameters.keys():
        want = "sessions, tumbling or hopping windows; run.lanes() and run.plane() draw sliding ones"
        raise NotBuilt(problem(what, windows.code(), want))
    if not windows.is_ever_closed:
        raise NotBuilt(problem(what, windows.code(), "windows with a grace: what never closes has no price to show"))
    if run.deployed is not None:
        raise NotBuilt(problem(what, 'rules="kafka"', 'plan.run(data), whose rules="sessionkit" the page knows'))
    trace: Trace = run.trace
    if trace.batch.idle is not None:
        got, want = (
            f"a plan with idle_after= ({idle_rule(trace.batch)})",
            "a plan without it; the page moves by records",
        )
        raise NotBuilt(problem(what, got, want))
    if trace.window_columns.loaded_count or bool((trace.first_stream_time_ms >= 0).any()):
        want = "a run of all records without a store; the page does not hold what the store had"
        raise NotBuilt(problem(what, "a run that goes on from what a store held", want))
    latest = int(max(trace.last_stream_time_ms.max(initial=0), trace.batch.offset.max(initial=0)))
    lengths = [ms for name, ms in parameters.items() if name.endswith("_ms")]
    if latest + sum(lengths) >= MOST_EXACT:
        got = f"times or offsets up to {latest}, with lengths of {shorten(', '.join(map(show_duration, lengths)), 100)}"
        raise InvalidData(problem(f"{call} needs numbers that JavaScript has exactly", got, "together below 2**53"))
