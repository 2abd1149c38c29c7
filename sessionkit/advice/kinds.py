"""Tumbling, hopping, sliding and session windows beside each other, over the same records of one key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

import numpy as np

from sessionkit.advice.suggest import gap_of, pauses_of, rounded
from sessionkit.base.arrays import Flags, Longs, Rows
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import Duration, duration_ms
from sessionkit.base.text import key_name, plural
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

MOST_KEYS = 4
USUAL_PAUSES, LATE_SHARE, HOPS = 3, 0.01, 4  # a gap in usual pauses, records that the grace leaves out, hops in a size


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
        rows = [self._counted(name) for name in self.runs]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, next(iter(self.runs.values()))._outcome.batch, {})

    def words(self) -> list[str]:
        """How many windows each kind makes and how many records it drops; and how many records fare differently."""
        said = []
        for name in self.runs:
            row = self._counted(name)
            missed = f" and {row['missed']:,} missed a window" if row["missed"] else ""
            drops = f"{plural(row['dropped'], 'record')} dropped" if row["dropped"] else "no record dropped"
            said.append(f"{plural(row['windows'], f'{name} window')}, {drops}{missed}.")
        kept = [run.trace.accepted[self._rows[name]] for name, run in self.runs.items()]
        differ = int((np.any(kept, axis=0) & ~np.all(kept, axis=0)).sum())
        named = ", ".join(key_name(key) for key in self.keys)
        whole = f"the {plural(len(kept[0]), 'record')} of {'key' if len(self.keys) == 1 else 'keys'} {named}"
        how_many = f"{differ:,} of {whole} {'is' if differ == 1 else 'are'}"
        return [*said, f"{how_many if differ else f'None of {whole} is'} kept by some kinds and dropped by others."]

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """A band for each kind over one axis of event time; a record names its windows of all kinds on hover."""
        from sessionkit.advice.kinds_figure import kinds_figure

        return kinds_figure(self, theme=theme)

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        """The rows of the records of these keys in the trace of each kind: all have them in the same order."""
        traces = {name: run.trace for name, run in self.runs.items()}
        return {
            name: np.flatnonzero((trace.batch.key >= 0) & (trace.decision <= LATE)) for name, trace in traces.items()
        }

    @cached_property
    def _kept_and_late(self) -> tuple[Flags, Flags]:
        """Whether each record counts under some kind, and whether it came too late for a window of some kind."""
        traces = [(run.trace, self._rows[name]) for name, run in self.runs.items()]
        kept: Flags = np.any([trace.accepted[rows] for trace, rows in traces], axis=0)
        late: Flags = np.any([trace.late_for_some[rows] for trace, rows in traces], axis=0)
        return kept, late

    @cached_property
    def _times_ms(self) -> Longs:
        """The event time of each record."""
        name, run = next(iter(self.runs.items()))
        return run.trace.batch.timestamp_ms[self._rows[name]]

    def _counted(self, name: str) -> dict[str, Any]:
        run, rows = self.runs[name], self._rows[name]
        accepted, late = run.trace.accepted[rows], run.trace.late_for_some[rows]
        counts = {"windows": run.metrics()["windows"], "records": len(rows), "dropped": int((~accepted).sum())}
        return {"kind": name, "settings": run._windows.in_words(), **counts, "missed": int((late & accepted).sum())}


@called_as('sk.kinds(df, key="user", timestamp="at")')
def kinds(
    records: Any,
    key: str | Sequence[str],
    timestamp: str,
    *,
    keys: Iterable[Any] | None = None,
    size: Duration | None = None,
    advance: Duration | None = None,
    time_difference: Duration | None = None,
    inactivity_gap: Duration | None = None,
    grace: Duration | None = None,
    **source: Any,
) -> Kinds[Any]:
    """The records of one key under tumbling, hopping, sliding and session windows, on one axis.

    Args:
        records: what `plan.run` takes, except Spark DataFrames.
        key: the column, or columns, whose values have windows of their own.
        timestamp: the column of times.
        keys: the values that are shown, at most 4; without it the one with the most records. The others still move
            stream time.
        size, advance: of tumbling and hopping windows. Without them the gap, and a quarter of the size.
        time_difference: of sliding windows; without it the size.
        inactivity_gap: of sessions. Without it that of `sk.suggest_gap`, or three times the usual pause.
        grace: of all four; without it how late 99 of 100 records are at most, and not longer than the gap.
        source: more arguments of `sk.group_by_key`, such as `timezone="UTC"`.
    Raises:
        InvalidArgument: a length is missing and the records have no pauses to take it from, or too many keys are named.
        UnknownRecord: there is no such key, or no record.
    Example:
        >>> print(sk.kinds(monday, "user", "at", size="1m", inactivity_gap="30s", grace="10s").words()[0])
        1 tumbling window, no record dropped.
    """
    names = (key,) if isinstance(key, str) else tuple(key)
    grouped = group_by_key(*names, timestamp=timestamp, **source)
    named = None if keys is None else named_keys(grouped.source, keys)
    if named is not None and len(named) > MOST_KEYS:
        raise InvalidArgument(problem("a picture has room for few keys", len(named), f"at most {MOST_KEYS} in keys="))
    batch = read_records(records, grouped.source, ())
    given = {"size": size, "advance": advance, "time_difference": time_difference, "inactivity_gap": inactivity_gap}
    lengths_ms = _lengths_ms(batch, {**given, "grace": grace}, ", ".join(names))
    plans = {name: grouped.windowed_by(windows).count() for name, windows in _windows(**lengths_ms).items()}
    if not batch.usable.any():
        raise UnknownRecord(problem("there is no key to show", "no records with a key and a time", "some records"))
    largest = [int(np.bincount(batch.key[batch.usable]).argmax())]
    codes = largest if named is None else sorted({code_of_key(batch.keys, each) for each in named})
    runs = {name: plan._run_batch(chosen_records(batch, codes, plan._complete_windows)) for name, plan in plans.items()}
    return Kinds(runs, tuple(batch.keys[code].as_py() for code in codes))


def _windows(size: int, advance: int, time_difference: int, inactivity_gap: int, grace: int) -> dict[str, WindowKind]:
    """One of each kind, with these lengths in milliseconds."""
    return {
        "tumbling": TimeWindows(size_ms=size, grace_ms=grace),
        "hopping": TimeWindows(size_ms=size, advance_ms=advance, grace_ms=grace),
        "sliding": SlidingWindows(time_difference_ms=time_difference, grace_ms=grace),
        "session": SessionWindows(inactivity_gap_ms=inactivity_gap, grace_ms=grace),
    }


def _lengths_ms(batch: RecordBatch, given: Mapping[str, Duration | None], keys: str) -> dict[str, int]:
    """Every length in milliseconds: as it was given, or taken from the pauses and the lateness of the records."""
    found = {name: duration_ms(value, name) for name, value in given.items() if value is not None}
    if "inactivity_gap" not in found:
        pauses = pauses_of(batch)
        if not len(pauses):
            got = f"{plural(len(batch), 'record')} without two times of one key"
            want = 'sk.kinds(df, key="user", timestamp="at", inactivity_gap="30m", grace="5m")'
            raise InvalidArgument(problem("there are no pauses to take a gap from", got, want))
        found["inactivity_gap"] = gap_of(batch, keys).gap_ms or rounded(USUAL_PAUSES * float(np.median(pauses)))
    if "grace" not in found:
        behind = (batch.stream_times_ms(np.full(len(batch.partitions), -1)) - batch.timestamp_ms)[batch.usable]
        latest_ms = float(np.quantile(behind, 1 - LATE_SHARE, method="lower")) if len(behind) else 0
        found["grace"] = min(rounded(latest_ms), found["inactivity_gap"]) if latest_ms else 0
    size_ms = found.setdefault("size", max(found["inactivity_gap"], 1))
    return {"advance": max(size_ms // HOPS, 1), "time_difference": size_ms, **found}
