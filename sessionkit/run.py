"""`Run`: what happened when a plan met its data, and every view of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.aggregations.contract import decimal_remarks
from sessionkit.base.calls import answers_calls, called_as, not_offered
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import show_duration
from sessionkit.base.moments import Moment, Timezone, moment_ms
from sessionkit.base.text import plural
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import InvalidArgument, NotKept, problem, shorten
from sessionkit.records.order import order_remarks
from sessionkit.stores.contract import Store
from sessionkit.views import tables
from sessionkit.views.charts.methods import Pictures
from sessionkit.views.downstream import Downstream
from sessionkit.windows.contract import WindowKind, do_overlap

# each view is loaded when it is first asked for: most runs are asked for their table alone
if TYPE_CHECKING:
    from sessionkit.engine.processor_run import Deployed
    from sessionkit.views.comparison import Comparison
    from sessionkit.views.explain.record import Explanation
    from sessionkit.views.membership.lineage import Lineage
    from sessionkit.views.over_time import Latency, OpenWindows


@answers_calls("run")
@not_offered("all_lanes", "changelog_columns", "deployed", "late_remarks", "outcome", "store", "table_columns")
@dataclass(frozen=True, repr=False)
class Run(Downstream, Pictures):
    """What happened: every view of one run of a plan, as frames of the kind that was given.

    Example:
        >>> run = plan.run(monday)
        >>> run
        Run: 3 records in 2 sessions (0 closed, 2 open) · 0 merges · 0 dropped · gap 30 s, grace 10 s
        >>> run.timezone, run.remarks(), run.summary() in repr(run)
        ('UTC', [], True)
    """

    plan: Any  # the Plan that it is a run of
    outcome: Outcome
    deployed: Deployed | None = None  # rules="kafka": what the deployment sent on, refused and looked for
    store: Store | None = None  # what a query would have asked at the end: the store, with the cache in front of it

    @cached_property
    def _table(self) -> Mapping[str, tables.Column]:
        return tables.whole_table(self.outcome)

    def table(self) -> Any:
        """One row per window: the key columns, window_start, window_end, the aggregations, status, partition.

        Ordered by partition, key bytes and start. A window that no record has closed has status "open". Times are
        timestamps in milliseconds in the run's `timezone`; `sk.group_by_key(…, times="ms")` gives them, here and in
        all other views, as integers in columns that end in `_ms`, and the key joined in the column `key`.

        Example:
            >>> list(plan.run(monday).table().columns)
            ['key', 'window_start_ms', 'window_end_ms', 'count', 'status', 'partition']
        """
        return tables.frame_of(self._table, self.outcome.batch)

    @property
    def table_columns(self) -> Mapping[str, tables.Column]:
        """The columns of `table()`, as Arrow or NumPy arrays, whatever the kind of frame."""
        return self._table

    @property
    def trace(self) -> Any:
        """Every decision.

        Raises:
            NotKept: the run was started with `trace=False`.
        Example:
            >>> plan.run(monday).trace.records().column_names[:4]
            ['partition', 'offset', 'key', 'timestamp_ms']
        """
        self._check_trace()
        return self.outcome.kept_trace

    def _check_trace(self) -> None:
        if self.outcome.kept_trace is None:
            raise NotKept(problem("this run kept no trace", "trace=False", "run it again without trace=False"))

    def dropped(self, *, missing_grace: bool = True) -> Any:
        """What was dropped, with the reason; late records with the grace that would have kept them.

        For sessions a row is a record. For time and sliding windows a row is a window that was closed when its record
        came: a record can have several, and still count in other windows.

        Args:
            missing_grace: for sessions, False leaves out `missing_grace_ms` and `enough_grace_ms`, which cost a replay
                of the record's key each.
        Example:
            >>> waves.run(flights).dropped(missing_grace=False)["reason"].value_counts().to_dict()
            {'late': 955}
        """
        from sessionkit.views.dropped import dropped_table

        table = dropped_table(self.trace, self._windows, missing_grace=missing_grace)
        return tables.frame_of(table, self.outcome.batch)

    @called_as("run.losses(10)")
    def losses(self, most: int | None = None) -> Any:
        """Which keys lose the most records: with key, records, late, share (of late records) and merges of each.

        With time and sliding windows a record is late if it missed one, even if it counts in others.

        Args:
            most: at most this many keys; all by default.
        Example:
            >>> waves.run(flights).losses(1)[["key", "records", "late"]].values.tolist()
            [['EV@EWR', 3556, 140]]
        """
        return tables.frame_of(tables.losses(self.trace, most), self.outcome.batch)

    @called_as("run.assign(data)")
    def assign(self, data: Any) -> Any:
        """The rows of `data`, which the run was made of, with the session or tumbling window that each is in.

        The columns of `sk.sessionize` come behind its own; those of tumbling windows have "window" in their names. All
        but `late` are null where a record counts in no window. Over a store, the records of earlier runs count as well:
        they are among the rows of a window, and the positions of this run's records follow theirs.

        Raises:
            InvalidArgument: these are not its rows, they have such a column already, or the windows overlap.
        Example:
            >>> plan.run(monday).assign(monday)["session_id"].tolist()
            [0, 0, 1]
        """
        from sessionkit.views.membership.assignment import assign

        return assign(data, self.trace, self._windows, self.plan.source, self.outcome.earlier_rows)

    def merges(self) -> Any:
        """Which records joined two sessions: a row for each merge, in order of arrival.

        With the record (partition, offset, the key columns, timestamp), the bounds of the two sessions before it
        (earlier_start, earlier_end, later_start, later_end), and those of the session that they are part of at the end
        (window_start, window_end), which `run.lineage` takes.

        Raises:
            InvalidArgument: the windows of this run do not merge.
        Example:
            >>> merge = waves.run(flights).merges().iloc[0]
            >>> merge["key"], int(merge["window_start_ms"])
            ('EV@EWR', 1372668720000)
        """
        from sessionkit.views.membership.merges import TIMES_OF_MERGES, merges_table

        return tables.frame_of(merges_table(self.trace), self.outcome.batch, TIMES_OF_MERGES)

    def metrics(self) -> dict[str, int]:
        """Counters by Kafka's names (`dropped-records-total`, `window-aggregate-final-emit-total`, …) and our own.

        `dropped-records-total` and `dropped-late` count a late record once for each window that it misses, as Kafka
        does; `records-dropped` counts the records that are in no window.

        Example:
            >>> plan.run(monday).metrics()["windows-open"]
            2
        """
        finals = 0
        if self.plan.strategy == "on_window_close":
            kept = self.outcome.kept_trace is not None
            finals = len(self._changelog["offset"]) if kept else self.outcome.closed_count
        drops_null = not self._windows.takes_null_values
        refused = 0 if self.deployed is None else len(self.deployed.refused)
        return tables.metrics(self.outcome, finals, refused, null_values=drops_null)

    def kafka_metrics(self, *, level: str = "info") -> Any:
        """What Kafka Streams would count of this run: a row for each metric of each task (here: each partition).

        Columns: name, group, level, thread_id, task_id, processor_node_id, value. At level "debug" also what the node
        that aggregates counts of final results, by Kafka 4.3.1's names (`window-aggregate-final-emit-…`) and by
        KIP-825's (`emit-final-…`), how late records are, and what suppress sent and held at most (bytes are known under
        rules="kafka"; its store stands in the column of the node). Rates are events a second over the last minute of
        the clock (Kafka's samples shift a little), latencies in ms, and both are null without a clock, which is
        `plan.run(data, rules="kafka", wall_clock=…)`; lateness then is that of all records.

        Source:
            StreamsMetricsImpl; TaskMetrics, ProcessorNodeMetrics; KIP-825.
        Example:
            >>> plan.run(monday).kafka_metrics()["name"].tolist()
            ['dropped-records-total', 'dropped-records-rate']
        """
        from sessionkit.views.kafka_metrics import kafka_metrics

        finals = np.asarray(self._changelog["partition"] if self.plan.strategy == "on_window_close" else [])
        held = None if self.plan.suppression is None else self._held_by_suppress()
        return tables.frame_of(kafka_metrics(self.trace, finals, self.deployed, level, held), self.outcome.batch)

    @property
    def timezone(self) -> Timezone:
        """The zone of the records' times: the plan's, else the column's, else "UTC". Moments without a zone use it."""
        return Timezone(self.outcome.batch.timezone)

    def _key(self, given: Any) -> Any:
        return self.plan.source.key_of(given)

    def _moment_ms(self, name: str, given: Moment | None) -> int | None:
        return None if given is None else moment_ms(given, name, self.timezone)

    @called_as('run.explain(offset=13), or run.explain(key="ada", window_start="2024-07-01 00:10")')
    def explain(
        self,
        *,
        offset: int | None = None,
        key: Any = None,
        window_start: Moment | None = None,
        partition: int | None = None,
    ) -> Explanation:
        """One decision in words: why a record did what it did, or what happened to a window.

        With `offset`: why that record opened, joined, bridged or was dropped. With `key` and `window_start`: what the
        window grew from, what closed it, or why it has not closed yet.

        Args:
            key: its value; for several key columns a tuple of their values, or the joined text.
            window_start: a time (a Timestamp, a datetime, or ISO text, in the run's `timezone` if it has none) or
                milliseconds.

        Raises:
            UnknownRecord: it is not in this run, or there are several partitions and none is named.
            InvalidArgument: neither an offset alone, nor a key and a start.
        Example:
            >>> plan.run(monday).explain(offset=1)
            Record 1 (key ada), event time 2024-01-01 09:00:20, joined the session at 2024-01-01 ...
        """
        trace = self.trace
        start_ms = self._moment_ms("window_start", window_start)
        of_window = [each for each in (key, start_ms) if each is not None]
        if len(of_window) != (2 if offset is None else 0):
            got = f"offset={offset!r}, key={shorten(repr(key))}, window_start={start_ms!r}"
            want = "offset= alone, or key= and window_start="
            raise InvalidArgument(problem("explain takes a record or a window", got, want))
        if offset is None:
            from sessionkit.views.explain.life import explain_life

            return explain_life(trace, self._windows, self._key(key), int(start_ms or 0), partition)
        from sessionkit.views.explain.decision import explain_decision

        return explain_decision(trace, self._windows, trace.index_of(offset, partition))

    @called_as('run.lineage("ada", "2024-07-01 00:10")')
    def lineage(self, key: Any, window_start: Moment | None = None, *, partition: int | None = None) -> Lineage:
        """Which sessions became one in this session, merge by merge, and which records they brought.

        Args:
            key, window_start: as in `explain`.
        Raises:
            UnknownRecord: the run has no such session, or several partitions have one and none is named.
            InvalidArgument: the windows of this run do not merge, or there is no such start.
        Example:
            >>> run = waves.run(flights)
            >>> merge = run.merges().iloc[0]
            >>> print(str(run.lineage(merge["key"], merge["window_start_ms"])).splitlines()[0])
            Session of key EV@EWR, 2013-07-01 08:52:00 to 2013-07-01 13:18:00: 28 records
        """
        from sessionkit.views.membership.lineage import lineage_of

        start_ms = self._moment_ms("window_start", window_start)
        if start_ms is None:
            want = 'run.lineage("ada", "2024-07-01 00:10")'
            raise InvalidArgument(problem("lineage takes a key and a start", f"key={shorten(repr(key))}", want))
        return lineage_of(self.trace, self._key(key), start_ms, partition)

    def latency(self) -> Latency:
        """How long after its end each window became final.

        Example:
            >>> print(waves.run(flights).latency().words()[1])
            7 sessions are still open: nothing has closed them.
        """
        from sessionkit.views.over_time import Latency

        return Latency(self.trace, self._windows)

    def open_windows(self) -> OpenWindows:
        """How many windows are open after each record: what a store has to hold.

        Example:
            >>> plan.run(monday).open_windows().most
            2
        """
        from sessionkit.views.over_time import OpenWindows

        return OpenWindows(self.trace, self._windows)

    @called_as("run.compare(other_run)")
    def compare(self, other: Run) -> Comparison:
        """What changes from this run to another one of the same records: records, windows, values.

        Raises:
            InvalidArgument: the records differ, or the windows are of another kind.
        Example:
            >>> print(*waves.run(flights).compare(waves.with_windows(grace="1h").run(flights)).words()[:1])
            From gap 1 h, grace 30 min to gap 1 h, grace 1 h: 391 records gained, 0 lost.
        """
        from sessionkit.views.comparison import compare

        return compare(self, other)

    @property
    def _windows(self) -> WindowKind:
        windows: WindowKind = self.plan.windows
        return windows

    def summary(self) -> str:
        """The run in one line of numbers."""
        from sessionkit.views.words import drops_in_words

        m, windows = self.metrics(), self._windows
        parts = [
            f"{plural(m['process-total'], 'record')} in {plural(m['windows'], windows.noun)} "
            f"({m['windows-closed']:,} closed, {m['windows-open']:,} open)",
            *([plural(m["windows-merged"], "merge")] if windows.holds == "sessions" else []),  # nothing else merges
            drops_in_words(m),
            *([f"{m['replayed-records']:,} replayed"] if m["replayed-records"] else []),
        ]
        rule = self.outcome.batch.idle
        idle = "" if rule is None else f" · partitions idle after {show_duration(rule.after_ms)} (not Kafka's)"
        return f"{' · '.join(parts)} · {windows.in_words()}{idle}"

    def remarks(self) -> list[str]:
        """What may be a mistake: guessed types, and why many records came too late, where a cause is found.

        Also which partitions were idle, and that the rule that moved them on is none of Kafka's.
        """
        from sessionkit.views.words import idle_remarks

        batch = self.outcome.batch
        types = {name: column.type for name, column in batch.values.items()}
        floats = decimal_remarks(self.plan.aggregations, types)
        said = [*batch.remarks, *floats, *self.late_remarks, *idle_remarks(batch)]
        if unknown := int((self.outcome.earlier_rows < 0).sum()) if not do_overlap(self._windows) else 0:
            windows = plural(unknown, self._windows.noun)
            said.append(f"The store does not say how many records {windows} had before: `assign` leaves that empty.")
        return said

    @cached_property
    def late_remarks(self) -> list[str]:
        """Why many of the records came too late, where a cause is found."""
        outcome, late = self.outcome, self.outcome.dropped.get(LATE, 0)
        before_ms = None if outcome.kept_trace is None else outcome.kept_trace.first_stream_time_ms
        return order_remarks(outcome.batch, self.plan.source, self._windows.close_lag_ms, late, before_ms)

    def __repr__(self) -> str:
        return "\n".join([f"Run: {self.summary()}", *self.remarks()])

    def _repr_html_(self) -> str:
        from sessionkit.views.html import run_html

        return run_html(self.summary(), self._table, self.remarks(), self.outcome.batch.form, self.timezone)
