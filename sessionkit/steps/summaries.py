"""What each step of a partition adds to what is said and drawn of a run: few rows, or one for each record or merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, Rows, arrow_array, distinct, numpy_array
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import DAY
from sessionkit.engine.outcome import Outcome
from sessionkit.steps.job import Job
from sessionkit.steps.views import ChangelogView, TraceView, View, columns_of, trace_of
from sessionkit.trace.trace import Trace
from sessionkit.views.drop_calendar.drop_calendar import quarters_of
from sessionkit.views.explain.clock import FOLLOWING
from sessionkit.views.lineage.lineage import as_sessions, merges_table
from sessionkit.views.over_time.over_time import final_rows, open_rows, opened_so_far
from sessionkit.windows.contract import WindowKind

_COUNT = pa.int64()
KEYS = pa.schema(dict.fromkeys(("partition", "offset", "records", "late", "merges", "worth", "windows"), _COUNT))
QUARTERS = pa.schema(dict.fromkeys(("start_ms", "records", "dropped", "missed"), _COUNT))
PARTITIONS = pa.schema(
    dict.fromkeys(("partition", "records", "usable", "stream_time_ms", "newest_ms", "day_rest", "open"), _COUNT)
)
MOVERS = pa.schema(dict.fromkeys(("partition", "offset", "timestamp_ms", "moved_ms", "ahead_ms", "late"), _COUNT))
NO_REST, SEVERAL_RESTS = -1, -2


def _keys(trace: Trace, _: WindowKind) -> pa.Table:
    """What there is to see of each key, and its first record."""
    known = np.flatnonzero(trace.batch.key >= 0)
    key, size, windows = trace.batch.key[known], len(trace.keys), trace.window_columns
    first = np.full(size, -1)
    first[key[::-1]] = trace.batch.offset[known[::-1]]
    is_late, is_merge, worth = (
        each[known] for each in (trace.late_for_some, trace.decision == MERGED, trace.worth_seeing)
    )
    counts = {
        "offset": first,
        "records": np.bincount(key, minlength=size),
        "late": np.bincount(key[is_late], minlength=size),
        "merges": np.bincount(key[is_merge], minlength=size),
        "worth": np.bincount(key, worth, size).astype(np.int64),
        "windows": np.bincount(windows.key[windows.loaded_count :], minlength=size),
    }
    seen = np.flatnonzero(first >= 0)
    partition = np.full(len(seen), trace.batch.partitions[0])
    keys = trace.keys.take(arrow_array(seen))
    return pa.table({"key": keys, "partition": partition, **{name: each[seen] for name, each in counts.items()}})


class OpenView(View):
    """How many windows of the partition are open after each record."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._open = 0

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace = trace_of(outcome)
        counts = self._open + opened_so_far(trace)
        self._open = int(counts[-1]) if len(counts) else self._open
        return columns_of(open_rows(trace, counts))


class PartitionsView(OpenView):
    """One row: how many records the partition has, how far it came, and what is left open."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._row = {"records": 0, "usable": 0, "stream_time_ms": -1, "newest_ms": -1, "day_rest": NO_REST}

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        super().step(outcome, left)
        trace, row = trace_of(outcome), self._row
        times_ms = trace.batch.timestamp_ms[trace.batch.usable]
        row["records"] += trace.record_count
        row["usable"] += len(times_ms)
        row["stream_time_ms"] = int(trace.last_stream_time_ms.max(initial=-1))
        row["newest_ms"] = int(times_ms.max(initial=row["newest_ms"]))
        rests = {row["day_rest"], *distinct(times_ms % DAY)[:2].tolist()} - {NO_REST}
        row["day_rest"] = SEVERAL_RESTS if len(rests) > 1 else int(min(rests, default=NO_REST))
        return None

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        numbers = {"partition": int(outcome.batch.partitions[0]), **self._row, "open": self._open}
        return {name: [number] for name, number in numbers.items()}


@dataclass
class _Moved:
    """A record that moved stream time, the times of those that came next, and how many are lost to it."""

    row: dict[str, Any]
    following: list[int]
    late: int


class MoversView(View):
    """The records that moved stream time to where late ones met it: each once another one has moved it on."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._waiting: list[_Moved] = []  # for those that come next; the last one is where stream time stands

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace, batch = trace_of(outcome), outcome.batch
        before_ms = np.append(trace.first_stream_time_ms[0], trace.stream_time_ms)
        rises = np.diff(before_ms) > 0
        usable, at = np.flatnonzero(trace.decision <= LATE), np.flatnonzero(rises)
        lost = np.bincount(np.cumsum(rises)[trace.late_for_some], minlength=len(at) + 1)
        for moved in self._waiting:
            moved.following += batch.timestamp_ms[usable[: FOLLOWING - len(moved.following)]].tolist()
        if self._waiting:
            self._waiting[-1].late += int(lost[0])
        seen = distinct(np.append(np.flatnonzero(lost[1:]), len(at) - 1)) if len(at) else at
        for number in seen.tolist():
            row = int(at[number])
            told = {
                "partition": int(batch.partitions[0]),
                "offset": int(batch.offset[row]),
                "key": batch.key_at(row),
                "timestamp_ms": int(batch.timestamp_ms[row]),
                "moved_ms": int(trace.stream_time_ms[row] - before_ms[row]) if before_ms[row] >= 0 else -1,
            }
            first = int(np.searchsorted(usable, row, side="right"))
            following = batch.timestamp_ms[usable[first : first + FOLLOWING]].tolist()
            self._waiting.append(_Moved(told, following, int(lost[number + 1])))
        now = self._waiting[-1:]
        done = [moved for moved in self._waiting[:-1] if len(moved.following) == FOLLOWING or not moved.late]
        self._waiting = [moved for moved in self._waiting[:-1] if len(moved.following) < FOLLOWING and moved.late] + now
        return self._rows(done)

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return self._rows(self._waiting)

    def _rows(self, moved: list[_Moved]) -> Mapping[str, Any] | None:
        rows = [
            {**each.row, "late": each.late, "ahead_ms": each.row["timestamp_ms"] - int(np.median(each.following))}
            for each in moved
            if each.late
        ]
        return columns_of(pa.Table.from_pylist(rows, self._job.schema)) if rows else None


class MergesView(View):
    """Each merge, once the session that it made can no longer be found: then its bounds are known."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._waiting: pa.Table | None = None

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace = as_sessions(trace_of(outcome))
        columns, absorbed = trace.window_columns, np.flatnonzero(trace.window_columns.merged_into >= 0)
        new = merges_table(trace).append_column("into", arrow_array(columns.opened_by[trace.merges.into]))
        waiting = pa.concat_tables([new] if self._waiting is None else [self._waiting, new])
        into = numpy_array(waiting["into"])
        place = _places(into, columns.opened_by[absorbed])
        into = np.where(place < 0, into, np.append(columns.opened_by[trace.ended_in[absorbed]], -1)[place])
        waiting = waiting.set_column(waiting.column_names.index("into"), "into", arrow_array(into))
        place = _places(into, columns.opened_by[left])
        done = place >= 0
        self._waiting, row = waiting.filter(arrow_array(~done)), left[place[done]]
        told = columns_of(waiting.filter(arrow_array(done)))
        return {**told, "window_start_ms": columns.start_ms[row], "window_end_ms": columns.end_ms[row]}

    finish = step


def _places(ids: Longs, known: Longs) -> Longs:
    """The place of each of these ids among those that are known, -1 where it is not."""
    order = np.argsort(known)
    at = np.append(order, -1)[np.searchsorted(known, ids, sorter=order)]
    return np.where(np.append(known, -1)[at] == ids, at, -1)


class WaitingView(ChangelogView):
    """What waits in the buffer of suppress at the end of the partition."""

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        super().step(outcome, left)
        return None

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        waiting = self.stage and self.stage.waiting
        return waiting.columns if waiting else None


class MostWaitingView(WaitingView):
    """The most that waited in the buffer of suppress at once, as results and as bytes."""

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        most = [self.stage.most_records, self.stage.most_bytes] if self.stage else [0, 0]
        return {"partition": [int(outcome.batch.partitions[0])] * 2, "name": ["most", "bytes"], "count": most}


SUMMARIES: dict[str, Any] = {
    "keys": partial(TraceView, rows=_keys),
    "quarters": partial(TraceView, rows=lambda trace, _: pa.table(quarters_of(trace)._asdict())),
    "finals": partial(TraceView, rows=final_rows),
    "open": OpenView,
    "partitions": PartitionsView,
    "movers": MoversView,
    "merges": MergesView,
    "waiting": WaitingView,
    "most_waiting": MostWaitingView,
}
