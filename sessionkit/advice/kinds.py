"""Tumbling, hopping, sliding and session windows beside each other, over the same records of one key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias

import numpy as np
import numpy.typing as npt

from sessionkit.advice.replay import Replay
from sessionkit.advice.suggest import gap_of
from sessionkit.advice.valleys import rounded
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.decisions import DROPPED, LATE, PARTLY_LATE
from sessionkit.base.durations import Duration, duration_ms, of_two_names
from sessionkit.base.text import of_key, plural
from sessionkit.engine.chosen_keys import chosen_records, named_keys
from sessionkit.errors import InvalidArgument, UnknownRecord, problem
from sessionkit.plan import group_by_key
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.frames import Frame
from sessionkit.records.keys import code_of_key
from sessionkit.run import Run
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

Matrix: TypeAlias = npt.NDArray[np.intp]
USUAL_PAUSES, HOPS = 3, 4  # a gap in usual pauses, hops in a size


@answers_calls("kinds")
@dataclass(frozen=True, repr=False)
class Kinds(Pictured, Generic[Frame]):
    """What becomes of the records of a key, or of a few, under each kind of window; `runs` has a run for each kind.

    Example:
        >>> beside = sk.kinds(flights, "carrier", "scheduled", timezone="UTC", keys=["HA"], grace="30m")
        >>> list(beside.runs), beside.table()["windows"].tolist()
        (['tumbling', 'hopping', 'sliding', 'session'], [30, 123, 30, 31])
        >>> print(beside.words()[3])
        31 session windows, no record dropped.
        >>> figure = beside.figure(theme="dark")
    """

    runs: Mapping[str, Run[Frame]]
    keys: tuple[Any, ...]

    def table(self) -> Frame:
        """One row for each kind of window: kind, settings, windows, records, dropped, and missed.

        `dropped` counts records that are in no window, `missed` those that missed a window but count in others.
        """
        return frame_of(self._columns, next(iter(self.runs.values()))._outcome.batch, {})

    def words(self) -> list[str]:
        """How many windows each kind makes and how many records it drops; and how many records fare differently."""
        said = []
        for name, _, windows, _, dropped, missed in zip(*self._columns.values(), strict=True):
            drops = f"{plural(dropped, 'record')} dropped" if dropped else "no record dropped"
            partly = f" and {missed:,} missed a window" if missed else ""
            said.append(f"{plural(windows, f'{name} window')}, {drops}{partly}.")
        is_dropped = self._fates == DROPPED
        differ = int((is_dropped.any(axis=0) & ~is_dropped.all(axis=0)).sum())
        whole = f"{plural(is_dropped.shape[1], 'record')} of {' and '.join(map(of_key, self.keys))}"
        same = f"all kinds keep the same {np.count_nonzero(~is_dropped.any(axis=0)):,}"
        return [*said, f"Of the {whole}, {f'some kinds keep and others drop {differ:,}' if differ else same}."]

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """A band for each kind over one axis of event time; a record names its windows of all kinds on hover."""
        from sessionkit.advice.kinds_figure import kinds_figure

        return kinds_figure(self, theme=theme)

    @cached_property
    def _rows(self) -> Matrix:
        """The rows of the records of these keys in the trace of each kind: all have them in the same order."""
        traces = [run.trace for run in self.runs.values()]
        return np.stack([np.flatnonzero((trace.batch.key >= 0) & (trace.decision <= LATE)) for trace in traces])

    @cached_property
    def _fates(self) -> Matrix:
        """What became of each record under each kind, a row a kind: it is KEPT, PARTLY_LATE or DROPPED."""
        traces = zip((run.trace for run in self.runs.values()), self._rows, strict=True)
        return np.stack([np.where(trace.accepted, trace.late_for_some, DROPPED)[rows] for trace, rows in traces])

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        runs, fates = self.runs.values(), self._fates
        return {
            "kind": [*self.runs],
            "settings": [run._windows.in_words() for run in runs],
            "windows": [run.metrics()["windows"] for run in runs],
            "records": [fates.shape[1] for _ in runs],
            "dropped": (fates == DROPPED).sum(axis=1).tolist(),
            "missed": (fates == PARTLY_LATE).sum(axis=1).tolist(),
        }


@called_as('sk.kinds(df, key="user", timestamp="at")')
def kinds(
    data: Any,
    key: str | Sequence[str],
    timestamp: str,
    *,
    keys: Iterable[Any] | None = None,
    size: Duration | None = None,
    advance: Duration | None = None,
    time_difference: Duration | None = None,
    inactivity_gap: Duration | None = None,
    grace: Duration | None = None,
    gap: Duration | None = None,
    **source: Any,
) -> Kinds[Any]:
    """The records of one key under tumbling, hopping, sliding and session windows, on one axis.

    Args:
        data: what `plan.run` takes, except Spark DataFrames.
        key: the column, or columns, whose values have windows of their own.
        timestamp: the column of times.
        keys: the values that are shown, without it the one with the most records. The others still move stream time.
        size, advance: of tumbling and hopping windows. Without them the gap, and a quarter of the size.
        time_difference: of sliding windows; without it the size.
        inactivity_gap: of sessions, or `gap`. Without it that of `sk.suggest_gap`, or three times the usual pause.
        grace: of all four; without it the gap.
        source: more arguments of `sk.group_by_key`, such as `timezone="UTC"`.
    Raises:
        InvalidArgument: a length is missing and the records have no pauses to take it from.
        UnknownRecord: there is no such key, or no record.
    Example:
        >>> print(sk.kinds(monday, "user", "at", size="1m", inactivity_gap="30s", grace="10s").words()[0])
        1 tumbling window, no record dropped.
    """
    names = (key,) if isinstance(key, str) else tuple(key)
    grouped = group_by_key(*names, timestamp=timestamp, **source)
    batch = read_records(data, grouped.source, ())
    usable = batch.key[batch.usable]
    codes = [int(np.bincount(usable, minlength=1).argmax())]
    if keys is not None:
        codes = sorted({code_of_key(batch.keys, each) for each in named_keys(grouped.source, keys)})
    if not np.isin(usable, codes).any():
        raise UnknownRecord(problem("there is no key to show", "no records with a key and a time", "some records"))
    windows = _windows(
        batch, ", ".join(names), size=size, advance=advance, time_difference=time_difference,
        inactivity_gap=of_two_names(inactivity_gap, gap), grace=grace,
    )  # fmt: skip
    plans = {name: grouped.windowed_by(each).count() for name, each in windows.items()}
    runs = {name: plan._run_batch(chosen_records(batch, codes, plan._complete_windows)) for name, plan in plans.items()}
    return Kinds(runs, tuple(batch.keys[code].as_py() for code in codes))


def _windows(batch: RecordBatch, keys: str, **given: Duration | None) -> dict[str, WindowKind]:
    """One of each kind, with the lengths that were given, or those of the gap, which pauses of the records can tell."""
    found = {name: duration_ms(value, name) for name, value in given.items() if value is not None}
    if "inactivity_gap" not in found:
        suggested = gap_of(replay := Replay(batch), keys)
        if not suggested.pauses:
            got = f"{plural(len(batch), 'record')} without two times of one key"
            raise InvalidArgument(problem("there are no pauses to take a gap from", got, 'inactivity_gap="30m"'))
        found["inactivity_gap"] = suggested.gap_ms or rounded(USUAL_PAUSES * replay.pauses().median)
    gap_ms = found["inactivity_gap"]
    size_ms, grace_ms = found.get("size", gap_ms or 1), found.get("grace", gap_ms)
    advance_ms, difference_ms = found.get("advance", max(size_ms // HOPS, 1)), found.get("time_difference", size_ms)
    return {
        "tumbling": TimeWindows(size_ms=size_ms, grace_ms=grace_ms),
        "hopping": TimeWindows(size_ms=size_ms, advance_ms=advance_ms, grace_ms=grace_ms),
        "sliding": SlidingWindows(time_difference_ms=difference_ms, grace_ms=grace_ms),
        "session": SessionWindows(inactivity_gap_ms=gap_ms, grace_ms=grace_ms),
    }
