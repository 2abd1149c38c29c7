"""The windows of a key as their steps: the labels of the records in each, in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Generic

import numpy as np

from sessionkit.base.arrays import Longs, arrow_array
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import about
from sessionkit.base.text import escape_html, html_block, of_key, plural
from sessionkit.records.frames import Frame
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone
from sessionkit.windows.contract import WindowKind

MOST_LINES, MOST_STEPS = 40, 20  # of the text: windows, and words of one
UNUSUAL = 2  # a pause is said that is at least so many times as long as the median of all in the key's windows


@answers_calls("steps")
@dataclass(frozen=True, repr=False)
class Steps(Generic[Frame]):
    """The windows of a key as their steps, without records of earlier runs that a store counted.

    As text it has a line for each window: its labels, and between them the pauses that are at least twice as long as
    the key's usual one (the median). Equal labels in a row are counted, and a missing one is a dash.

    Example:
        >>> visits = sk.group_by_key("user", timestamp="at", label="page").windowed_by(plan.windows).count()
        >>> visits.run(monday).steps("ada").table()["label"].tolist()
        ['home', 'shop']
    """

    trace: Any  # SessionTrace or WindowTrace
    windows: WindowKind
    key: int  # its code

    @cached_property
    def _found(self) -> tuple[Longs, Longs, Longs]:
        """(window, record, pause in ms or -1) of each step."""
        trace, columns, times = self.trace, self.trace.window_columns, self.trace.batch.timestamp_ms
        mine = (columns.key == self.key) & trace.is_standing & columns.are_results(self.windows.trailing_only)
        found = [trace.records_in(each) for each in np.flatnonzero(mine).tolist()]
        window = np.repeat(np.flatnonzero(mine), [len(rows) for rows in found])
        row = np.concatenate([np.empty(0, np.int64), *found])
        order = np.lexsort((row, times[row], window, columns.start_ms[window], columns.partition[window]))
        window, row = window[order], row[order]
        return window, row, np.where(np.diff(window, prepend=-1) != 0, -1, np.diff(times[row], prepend=0))

    def table(self) -> Frame:
        """One row for each step.

        Columns: the key columns, window_start, position (from 1 in each window), timestamp, label, pause_ms (since the
        step before, null at the first), offset and partition.
        """
        (window, row, pause_ms), batch = self._found, self.trace.batch
        place, begins = np.arange(len(row)), pause_ms < 0
        columns = {
            "key": self.trace.keys.take(arrow_array(np.full(len(row), self.key))),
            "window_start_ms": self.trace.window_columns.start_ms[window],
            "position": place - np.maximum.accumulate(np.where(begins, place, 0)) + 1,
            "timestamp_ms": batch.timestamp_ms[row],
            "label": batch.labels.at(row).column,
            "pause_ms": arrow_array(pause_ms, begins),
            "offset": batch.offset[row],
            "partition": batch.partitions[batch.partition[row]],
        }
        return frame_of(columns, batch)

    def __repr__(self) -> str:
        trace, (window, row, pause_ms) = self.trace, self._found
        usual_ms = np.median(pause_ms[pause_ms >= 0]) if (pause_ms >= 0).any() else 0
        said = [about(ms) if ms > 0 and ms >= UNUSUAL * usual_ms else "" for ms in pause_ms.tolist()]
        bounds, show = [*np.flatnonzero(pause_ms < 0).tolist(), len(row)], clock(trace)
        starts = [show(int(trace.window_columns.start_ms[window[low]])) for low in bounds[:-1]][:MOST_LINES]
        steps, windows = plural(len(row), "step"), plural(len(bounds) - 1, self.windows.noun)
        head = f"{of_key(trace.keys[self.key].as_py(), first=True)}: {steps} in {windows}"
        if in_zone(trace) and len({each[:10] for each in starts}) == 1:
            head, starts = f"{head} on {starts[0][:10]}", [each[11:] for each in starts]
        if all(each.endswith(":00") and each.count(":") == 2 for each in starts):
            starts = [each[:-3] for each in starts]
        lines = [f"{head}."]
        for start, low, high in zip(starts, bounds, bounds[1:], strict=False):
            found = list(islice(trace.batch.labels.steps(row[low:high].tolist(), said[low:high]), MOST_STEPS))
            left = high - low - sum(count for _, count in found)
            more = [f"… {plural(left, 'more step')}"] if left else []
            lines.append(f"{start} {' · '.join([*(words for words, _ in found), *more])}")
        if left := len(bounds) - 1 - len(starts):
            lines.append(f"… and {plural(left, f'more {self.windows.noun}')}; table() has all.")
        return "\n".join([*lines, *in_zone(trace)])

    def _repr_html_(self) -> str:
        return html_block(f'<pre style="white-space:pre-wrap">{escape_html(self)}</pre>')
