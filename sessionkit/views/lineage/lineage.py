"""What a session grew from: the sessions that became one, merge by merge, with their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Longs, arrow_array, arrow_table
from sessionkit.base.calls import answers_calls
from sessionkit.base.result_columns import TIMES
from sessionkit.base.text import of_key, plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.frames import Frame
from sessionkit.trace.loops import last_touches
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.explain.life import find_window
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone, span_words

MOST_NAMED = 40  # of a tree in words


class Node(NamedTuple):
    """A session between two merges: as it was opened, or as a bridge made it, until the next bridge or the end.

    `own` counts the records that came to it as such, `total` those of the sessions that it was made of as well.
    `bridge` is the offset of the record that made it, -1 where none did, `bridge_ms` its time; `children` are places in
    the list of nodes.
    """

    start_ms: int
    end_ms: int
    own: int
    total: int
    bridge: int
    children: tuple[int, ...]
    depth: int  # merges below it
    bridge_ms: int = -1


@answers_calls("lineage")
@dataclass(frozen=True, repr=False)
class Lineage(Pictured, Generic[Frame]):
    """The tree of a session; the last of `nodes` is the session as it is in the end.

    Example:
        >>> run = waves.run(flights)
        >>> merge = run.merges().iloc[0]
        >>> lineage = run.lineage((merge.carrier, merge.origin), merge.window_start)
        >>> lineage.nodes[-1].total == len(lineage.records())
        True
        >>> lineage.title
        'Session of key EV@EWR, 2013-07-01 08:52:00 to 2013-07-01 13:18:00'
        >>> figure = lineage.figure()
    """

    trace: SessionTrace
    row: int
    nodes: tuple[Node, ...]

    def records(self) -> Frame:
        """Every record that is in the session in the end: offset, time, decision, the session that it came to."""
        trace = self.trace
        mine = pa.array((trace.survivor == self.row)[trace.is_record])
        table = trace.records().filter(mine).drop_columns(["reason"])
        return frame_of(table, trace.batch)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The tree: bars over event time, those below became the one above."""
        from sessionkit.views.lineage.figure import lineage_figure

        return lineage_figure(self, theme=theme)

    @property
    def title(self) -> str:
        """The session by its key and bounds. Not escaped."""
        at, root = clock(self.trace), self.nodes[-1]
        key = self.trace.keys[int(self.trace.window_columns.key[self.row])].as_py()
        return f"Session of {of_key(key)}, {span_words(at, root.start_ms, root.end_ms)}"

    def __repr__(self) -> str:
        lines = [f"{self.title}: {plural(self.nodes[-1].total, 'record')}"]
        at, waiting = clock(self.trace), [(len(self.nodes) - 1, "")]
        while waiting and len(lines) <= MOST_NAMED:  # a loop: trees can be deep
            place, indent = waiting.pop()
            node = self.nodes[place]
            how = f"bridged by record {node.bridge}" if node.bridge >= 0 else "opened"
            lines.append(f"{indent}{span_words(at, node.start_ms, node.end_ms)}  {plural(node.total, 'record')}  {how}")
            waiting += [(child, indent + "  ") for child in reversed(node.children)]
        left = len(self.nodes) + 1 - len(lines)
        return "\n".join([*lines, *([f"… and {left:,} more"] if left > 0 else []), *in_zone(self.trace)])


def lineage_of(trace: Trace, key: Any, start_ms: int, partition: int | None) -> Lineage:
    """The tree of the session of `key` that starts then."""
    sessions = as_sessions(trace)
    row = find_window(sessions, key, start_ms, partition)
    return Lineage(sessions, row, tuple(_nodes(sessions, row)))


def as_sessions(trace: Trace) -> SessionTrace:
    """The trace, if its windows merge."""
    if not isinstance(trace, SessionTrace):
        raise InvalidArgument(problem("only sessions merge", "time or sliding windows", "a plan with SessionWindows"))
    return trace


def _nodes(trace: SessionTrace, root: int) -> list[Node]:
    rows = np.flatnonzero(trace.ended_in == root)
    touched = {row: np.flatnonzero(trace.window == row) for row in rows.tolist()}
    nodes: list[Node] = []
    begun = dict.fromkeys(rows.tolist(), 0)  # the record from which the present node of a row counts
    made: dict[int, tuple[int, tuple[int, ...]]] = {}  # bridge (its row) and children of the present node of a row
    merges = trace.merges

    def finish(row: int, at: int) -> int:
        bounds = trace.bounds_before(row, at)
        own = int(np.searchsorted(touched[row], at) - np.searchsorted(touched[row], begun[row]))
        bridge, children = made.get(row, (-1, ()))
        total = own + sum(nodes[child].total for child in children)
        depth = 1 + max((nodes[child].depth for child in children), default=-1)
        told = (-1, -1) if bridge < 0 else (int(trace.batch.offset[bridge]), int(trace.batch.timestamp_ms[bridge]))
        nodes.append(Node(*bounds, own, total, told[0], children, depth, told[1]))
        return len(nodes) - 1

    for k in np.flatnonzero(trace.ended_in[merges.into] == root).tolist():
        at, into, absorbed = int(merges.at[k]), int(merges.into[k]), int(merges.absorbed[k])
        children = finish(into, at), finish(absorbed, at)
        made[into], begun[into] = (at, children), at
    finish(root, len(trace))
    return nodes


_BOUNDS = ("earlier_start_ms", "earlier_end_ms", "later_start_ms", "later_end_ms")
TIMES_OF_MERGES = {**TIMES, **{name: name.removesuffix("_ms") for name in _BOUNDS}}


def merges_table(any_trace: Trace) -> pa.Table:
    """One row for each merge, in order: the record, the two sessions that it joined, and the session in the end.

    Columns: partition, offset, key, timestamp_ms, the bounds of the earlier and of the later session before the record,
    and (window_start_ms, window_end_ms) the bounds of the session that they are part of at the end of the run.
    """
    trace = as_sessions(any_trace)
    merges, batch, columns = trace.merges, trace.batch, trace.window_columns
    at, end = merges.at, trace.ended_in[merges.into]
    earlier, later = _before(trace, at, merges.into), _before(trace, at, merges.absorbed)
    return arrow_table(
        {
            "partition": batch.partitions[batch.partition[at]],
            "offset": batch.offset[at],
            "key": trace.keys.take(arrow_array(batch.key[at])),
            "timestamp_ms": batch.timestamp_ms[at],
            **dict(zip(_BOUNDS, (*earlier, *later), strict=True)),
            "window_start_ms": columns.start_ms[end],
            "window_end_ms": columns.end_ms[end],
        }
    )


def _before(trace: SessionTrace, at: Longs, window: Codes) -> tuple[Longs, Longs]:
    """(start, end) of these sessions just before these records."""
    last = last_touches(trace.window, at, window)
    loaded = (trace.loaded_start_ms, trace.loaded_end_ms)
    count = trace.window_columns.loaded_count
    came = np.minimum(window, count)  # a session without a record before came from a store
    start, end = (
        np.where(last >= 0, after[last], np.append(first, -1)[came])
        for after, first in zip(trace.bounds_after, loaded, strict=True)
    )
    return start, end
