"""`Run`: what happened when a plan met its data, and every view of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np

from sessionkit.aggregations.contract import decimal_remarks
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import show_duration
from sessionkit.base.moments import Moment, Timezone, moment_ms
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.engine.apart import sessions_apart
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import InvalidArgument, NotBuilt, NotKept, UnknownRecord, problem, shorten
from sessionkit.records.frames import ArrowData, Frame, PandasData, PolarsFrame
from sessionkit.records.keys import code_of_key, list_of_keys
from sessionkit.records.labels import NO_LABELS
from sessionkit.records.lateness.causes import Cause
from sessionkit.records.lateness.order import order_causes
from sessionkit.stores.contract import Store
from sessionkit.views import tables
from sessionkit.windows.contract import WindowKind, do_overlap

# each view is loaded when it is first asked for: most runs are asked for their table alone
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from sessionkit.deployed.processor_run import Deployed
    from sessionkit.plan import Plan
    from sessionkit.suppression.stage import Suppressor
    from sessionkit.trace.trace import Trace
    from sessionkit.views.comparison.comparison import Comparison
    from sessionkit.views.drawing.palettes import Figure, Theme
    from sessionkit.views.drop_calendar.drop_calendar import DropCalendar
    from sessionkit.views.emissions.emissions import Emissions, SuppressBuffer
    from sessionkit.views.explain.clock import Clock
    from sessionkit.views.explain.record import Explanation
    from sessionkit.views.kafka_metrics import Held, Level
    from sessionkit.views.key_steps import Steps
    from sessionkit.views.lanes.lanes import Sort
    from sessionkit.views.lineage.lineage import Lineage
    from sessionkit.views.over_time.over_time import Latency, OpenWindows
    from sessionkit.views.partition_times import PartitionTimes
    from sessionkit.views.stable_ids import Ids


@answers_calls("run")
@dataclass(frozen=True, repr=False)
class Run(Generic[Frame]):
    """What happened: every view of one run of a plan, as frames of the kind that was given.

    With a deployment `run.deployed` has what it sent, refused and looked for. Where that starts the application again,
    `changelog`, `metrics` and `summary` are of all its lives; `run.deployed.lives` has a run with every view for each.

    Example:
        >>> run = plan.run(monday)
        >>> run
        Run: 3 records in 2 sessions (0 closed, 2 open) · 0 merges · 0 dropped · gap 30 s, grace 10 s
        >>> run.timezone, run.remarks(), run.summary() in repr(run)
        ('UTC', [], True)
    """

    plan: Plan
    _outcome: Outcome
    deployed: Deployed | None = None  # with a deployment: what it sent on, refused and looked for
    _store: Store | None = None  # what a query would have asked at the end: the store, with the cache in front of it

    @property
    def _lives(self) -> Sequence[Run]:
        """The runs that this one consists of, where the application was started again."""
        return () if self.deployed is None or not self.deployed.restarts else self.deployed.lives

    def _check_one_life(self) -> None:
        if self._lives:
            got, want = f"{len(self._lives):,} lives", "run.deployed.lives[-1], which has every view, or another life"
            raise NotBuilt(problem("this view is of one life of an application", got, want))

    @cached_property
    def _table(self) -> Mapping[str, tables.Column]:
        self._check_one_life()
        return tables.whole_table(self._outcome)

    def table(self) -> Frame:
        """One row per window: the key columns, window_start, window_end, the aggregations, status, partition.

        Ordered by partition, key bytes and start. A window that no record has closed has status "open". Times are
        timestamps in milliseconds in the run's `timezone`; `run.trace.windows()` has them as integers.

        Example:
            >>> list(plan.run(monday).table().columns)
            ['user', 'window_start', 'window_end', 'count', 'status', 'partition']
        """
        return tables.frame_of(self._table, self._outcome.batch)

    def changelog(self, *, old_values: bool = False) -> Frame:
        """What goes downstream, in order: updates and tombstones, or finals, as the plan's emit strategy says.

        `offset` is that of the record that caused it; a tombstone's values are null. Where a deployment was started
        again, `life` is the number of the start, from 0; after a kill the results of the records that were read again
        are there twice.

        Args:
            old_values: also shows the value that each value replaces, in a column with the prefix `old_`.
        Raises:
            InvalidArgument: a result already has that name.
        Example:
            >>> plan.run(monday).changelog()["what"].tolist()
            ['update', 'tombstone', 'update', 'update']
        """
        results = self._outcome.folds
        if old_values and self.plan._suppression is not None:
            want = "leave it out; the values that suppress sends replace those that it sent before"
            raise InvalidArgument(problem("with suppress no old values are sent", "old_values=True", want))
        if old_values and (clash := [name for name in results if f"old_{name}" in results]):
            got, want = f"{clash[0]!r} and {f'old_{clash[0]}'!r}", "another name for the second"
            raise InvalidArgument(problem("a column would appear twice beside the replaced values", got, want))
        columns = self._changelog_with(old_values=True) if old_values else self._changelog
        return tables.frame_of(columns, self._outcome.batch)

    @cached_property
    def _changelog(self) -> Mapping[str, tables.Column]:
        return self._changelog_with(old_values=False)

    def _changelog_with(self, *, old_values: bool) -> Mapping[str, tables.Column]:
        if self._lives:
            from sessionkit.deployed.lives import one_after_another

            parts = [life._changelog_with(old_values=old_values) for life in self._lives]
            return one_after_another(parts, self.plan.source.keys)
        if self.deployed is not None:
            return tables.forwarded_table(self._outcome, self.deployed.forwarded, old_values=old_values)
        if self.plan._suppression is not None:
            return self._suppressed[0]
        self._check_trace()
        return tables.changelog(self._outcome, self.plan._strategy, old_values=old_values)

    @cached_property
    def _suppressed(self) -> tuple[Mapping[str, tables.Column], Suppressor]:
        """(what suppress let go, its buffers)."""
        return self._through_suppress(weighed=self._suppression.counts_bytes)

    @property
    def _suppression(self) -> Any:
        """The settings of suppress, where the plan has it."""
        return self.plan._suppression

    def _through_suppress(self, *, weighed: bool) -> tuple[Mapping[str, tables.Column], Suppressor]:
        from sessionkit.suppression.stage import Suppressor

        self._check_trace()
        plan: Any = self.plan
        outcome, named = self._outcome, dict(plan._aggregations)
        sent = tables.weighed_updates(outcome, named) if weighed else tables.changelog(outcome, plan._strategy)
        stage = Suppressor(plan._suppression, plan._complete_windows, named)
        return stage.step(sent), stage

    def suppress_buffer(self) -> SuppressBuffer[Frame]:
        """What waits in the buffers of suppress at the end of the run, and the most that did.

        Raises:
            InvalidArgument: the plan has no suppress.
        Example:
            >>> run = waves.suppress("until_window_closes").run(flights)
            >>> run.suppress_buffer()
            buffer of suppress: 14 results wait; no partition held more than 90 at once
        """
        from sessionkit.suppression.stage import without_weights
        from sessionkit.views.emissions.emissions import SuppressBuffer

        if self.plan._suppression is None:
            want = 'plan.suppress("until_window_closes"), or plan.suppress("until_time_limit", "10s")'
            raise InvalidArgument(problem("this plan holds no results back", "no suppress", want))
        if self.deployed is None:
            stage = self._suppressed[1]
            assert stage.waiting is not None
            return SuppressBuffer(stage.most_records, without_weights(stage.waiting.columns), self)
        most_records = max((buffer.most_records for buffer in self.deployed.buffers), default=0)
        columns = tables.forwarded_table(self._outcome, self.deployed.waiting, old_values=False)
        return SuppressBuffer(most_records, columns, self)

    def _held_by_suppress(self) -> Held:
        from sessionkit.views.kafka_metrics import Held

        sent, numbers = np.asarray(self._changelog["partition"]), self._outcome.batch.partitions.tolist()
        if self.deployed is None:
            stage = self._suppressed[1]
            sizes = stage.most_bytes_in_each if self._suppression.counts_bytes else {}
            return Held(sent, {number: (most, sizes.get(number)) for number, most in stage.most_in_each.items()})
        buffers = zip(numbers, self.deployed.buffers, strict=True)
        return Held(sent, {number: (buffer.most_records, buffer.most_size) for number, buffer in buffers})

    @called_as('run.emissions("ada")')
    def emissions(self, key: Any = None, *, partition: int | None = None) -> Emissions[Frame]:
        """What went downstream for one key, and what is pending: which results were retracted, which are still to come.

        Without `key`, it shows the key with the most events.

        Raises:
            UnknownRecord: the run holds no such key, or several partitions hold it and none is named.
            InvalidArgument: no such partition.
            NotKept: the run was started with `trace=False`.
        Source:
            KIP-825 (emit strategies); SessionTupleForwarder's tombstones.
        Example:
            >>> run = plan.run(monday)
            >>> run.emissions("ada").table()["what"].tolist()
            ['update', 'tombstone', 'update', 'pending']
        """
        from sessionkit.views.emissions.emissions import emissions_of

        chosen = self.most_eventful_key() if key is None else self._key(key)
        return emissions_of(self, chosen, partition, chosen=key is None)

    @property
    def trace(self) -> Trace:
        """Every decision.

        Raises:
            NotKept: the run was started with `trace=False`.
        Example:
            >>> plan.run(monday).trace.records().column_names[:4]
            ['partition', 'offset', 'key', 'timestamp_ms']
        """
        self._check_trace()
        return self._outcome.kept_trace

    def _check_trace(self) -> None:
        self._check_one_life()
        if self._outcome.kept_trace is None:
            raise NotKept(problem("this run kept no trace", "trace=False", "run it again without trace=False"))

    def dropped(self, *, missing_grace: bool = True) -> Frame:
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
        return tables.frame_of(table, self._outcome.batch)

    @called_as("run.losses(10)")
    def losses(self, most: int | None = None) -> Frame:
        """Which keys lose the most records: with key, records, late, share (of late records) and merges of each.

        With time and sliding windows a record is late if it missed one, even if it counts in others.

        Args:
            most: at most this many keys; all by default.
        Example:
            >>> waves.run(flights).losses(1)[["carrier", "origin", "records", "late"]].values.tolist()
            [['EV', 'EWR', 3556, 140]]
        """
        return tables.frame_of(tables.losses(self.trace, most), self._outcome.batch)

    @overload
    def assign(self, data: PandasData, *, ids: Ids = ...) -> pd.DataFrame: ...
    @overload
    def assign(self, data: PolarsFrame, *, ids: Ids = ...) -> pl.DataFrame: ...
    @overload
    def assign(self, data: ArrowData, *, ids: Ids = ...) -> pa.Table: ...

    @called_as("run.assign(data)")
    def assign(self, data: Any, *, ids: Ids = "number") -> pd.DataFrame | pl.DataFrame | pa.Table:
        """The rows of `data`, which the run was made of, with the session or tumbling window that each is in.

        The columns of `sk.sessionize` come behind its own; those of tumbling windows have "window" in their names. All
        but `late` are null where a record counts in no window. Over a store, the records of earlier runs count as well:
        they are among the rows of a window, and the positions of this run's records follow theirs.

        Args:
            ids: as in `sk.sessionize`.
        Raises:
            InvalidArgument: these are not its rows, they have such a column already, or the windows overlap.
        Example:
            >>> plan.run(monday).assign(monday)["session_id"].tolist()
            [0, 0, 1]
        """
        from sessionkit.views.assignment import assign

        return assign(data, self.trace, self._windows, self.plan.source, self._outcome.earlier_rows, ids)

    def merges(self, *, ids: Ids = "number") -> Frame:
        """Which records joined two sessions: a row for each merge, in order of arrival.

        With the record (partition, offset, the key columns, timestamp), the bounds of the two sessions before it
        (earlier_start, earlier_end, later_start, later_end), and those of the session that they are part of at the end
        (window_start, window_end), which `run.lineage` takes.

        Args:
            ids: "key" or "hash", as in `sk.sessionize`: the ids that the two had before the record (earlier_id,
                later_id) and the one that has taken their place (session_id). A number is that of a whole run.
        Raises:
            InvalidArgument: the windows of this run do not merge, or these are no ids.
        Example:
            >>> merge = waves.run(flights).merges().iloc[0]
            >>> merge["carrier"], merge["origin"], str(merge["window_start"])
            ('EV', 'EWR', '2013-07-01 08:52:00+00:00')
        """
        from sessionkit.views.lineage.lineage import TIMES_OF_MERGES, merges_table
        from sessionkit.views.stable_ids import with_ids_of_merges

        batch, parts = self._outcome.batch, ["key", *(["partition"] if self.plan.source.partition else [])]
        merges = with_ids_of_merges(merges_table(self.trace), parts, batch.form, ids)
        return tables.frame_of(merges, batch, TIMES_OF_MERGES)

    def metrics(self) -> dict[str, int]:
        """Counters by Kafka's names (`dropped-records-total`, `window-aggregate-final-emit-total`, …) and our own.

        `dropped-records-total` and `dropped-late` count a late record once for each window that it misses, as Kafka
        does; `records-dropped` counts the records that are in no window. Where a deployment was started again they are
        added up, which Kafka begins anew; what a life holds of windows is not.

        Example:
            >>> plan.run(monday).metrics()["windows-open"]
            2
        """
        if self._lives:
            each = [life.metrics() for life in self._lives]
            return {name: sum(one[name] for one in each) for name in each[0] if not name.startswith("windows")}
        finals = 0
        if self.plan._strategy == "on_window_close":
            finals = self._outcome.closed_count
            if self.deployed is not None:
                finals = len(self.deployed.forwarded)
            elif self._outcome.kept_trace is not None:
                finals = tables.final_count(self._outcome)
        refused = 0 if self.deployed is None else len(self.deployed.refused)
        return tables.metrics(self._outcome, finals, refused, self._windows, self.plan.source)

    def kafka_metrics(self, *, level: Level = "info") -> Frame:
        """What Kafka Streams would count of this run: a row for each metric of each task (here: each partition).

        Columns: name, group, level, thread_id, task_id, processor_node_id, value. At level "debug" also what the node
        that aggregates counts of final results, by Kafka 4.4.0's names (`window-aggregate-final-emit-…`) and by
        KIP-825's (`emit-final-…`), how late records are, and what suppress sent and held at most (bytes are known
        with a deployment or `max_bytes`; its store stands in the column of the node). Rates are events a second over
        the last minute of the clock (Kafka's samples shift a little), latencies in ms, and both are null without a
        clock, which is a column: `sk.Deployment(clock="arrived")`; lateness then is that of all records.

        Source:
            StreamsMetricsImpl; TaskMetrics, ProcessorNodeMetrics; KIP-825.
        Example:
            >>> plan.run(monday).kafka_metrics()["name"].tolist()
            ['dropped-records-total', 'dropped-records-rate']
        """
        from sessionkit.views.kafka_metrics import kafka_metrics

        finals = np.asarray(self._changelog["partition"] if self.plan._strategy == "on_window_close" else [])
        held = None if self.plan._suppression is None else self._held_by_suppress()
        return tables.frame_of(kafka_metrics(self.trace, finals, self.deployed, level, held), self._outcome.batch)

    @property
    def timezone(self) -> Timezone:
        """The zone of the records' times: the plan's, else the column's, else "UTC". Moments without a zone use it."""
        return Timezone(self._outcome.batch.timezone)

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
            offset: that of the data, else the number of a row from 0; under `sort="timestamp"` that in order of time.
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
        key = self._key(key) if offset is None else key
        of_window = [each for each in (key, start_ms) if each is not None]
        if len(of_window) != (2 if offset is None else 0):
            got = f"offset={offset!r}, key={shorten(repr(key))}, window_start={start_ms!r}"
            want = "offset= alone, or key= and window_start="
            raise InvalidArgument(problem("explain takes a record or a window", got, want))
        if offset is None:
            from sessionkit.views.explain.life import explain_life

            return explain_life(trace, self._windows, key, int(start_ms or 0), partition)
        from sessionkit.views.explain.record import explain_decision

        return explain_decision(trace, self._windows, trace.index_of(offset, partition))

    @called_as('run.lineage("ada", "2024-07-01 00:10")')
    def lineage(self, key: Any, window_start: Moment | None = None, *, partition: int | None = None) -> Lineage[Frame]:
        """Which sessions became one in this session, merge by merge, and which records they brought.

        Args:
            key, window_start: as in `explain`.
        Raises:
            UnknownRecord: the run has no such session, or several partitions have one and none is named.
            InvalidArgument: the windows of this run do not merge, or there is no such start.
        Example:
            >>> run = waves.run(flights)
            >>> merge = run.merges().iloc[0]
            >>> print(str(run.lineage("EV@EWR", merge["window_start"])).splitlines()[0])
            Session of key EV@EWR, 2013-07-01 08:52:00 to 2013-07-01 13:18:00: 28 records
        """
        from sessionkit.views.lineage.lineage import lineage_of

        start_ms = self._moment_ms("window_start", window_start)
        if start_ms is None:
            want = 'run.lineage("ada", "2024-07-01 00:10")'
            raise InvalidArgument(problem("lineage takes a key and a start", f"key={shorten(repr(key))}", want))
        return lineage_of(self.trace, self._key(key), start_ms, partition)

    @called_as('run.steps("ada")')
    def steps(self, key: Any) -> Steps[Frame]:
        """The windows of a key as their steps: the labels of the records in each, in the order of their times.

        A record is a step of each window that holds it; one that was dropped is none. Printed, a window is a line, such
        as "09:00 home · search · 41 s · cart · pay", and `steps(key).table()` has a row for each step.

        Args:
            key: as in `explain`.
        Raises:
            InvalidArgument: the plan names no `label`.
            UnknownRecord: the run holds no such key.
            NotKept: the run was started with `trace=False`.
        Example:
            >>> visits = sk.group_by_key("user", timestamp="at", label="page").windowed_by(plan.windows).count()
            >>> visits.run(monday).steps("ada")
            Key ada: 2 steps in 1 session on 2024-01-01.
            09:00 home · shop
            Times are in UTC.
        """
        from sessionkit.views.key_steps import Steps

        if self.plan.source.label is None:
            want = 'sk.group_by_key("user", timestamp="at", label="page"), with the column that says what a record is'
            raise InvalidArgument(problem("steps are the labels of records", "a plan without label=", want))
        return Steps(self.trace, self._windows, code_of_key(self.trace.keys, self._key(key)))

    def latency(self) -> Latency[Frame]:
        """How long after its end each window became final.

        Example:
            >>> print(waves.run(flights).latency().words()[1])
            7 sessions are still open: nothing has closed them.
        """
        from sessionkit.views.over_time.over_time import Latency

        return Latency(self.trace, self._windows)

    def open_windows(self) -> OpenWindows[Frame]:
        """How many windows are open after each record: what a store has to hold.

        Example:
            >>> plan.run(monday).open_windows().most
            2
        """
        from sessionkit.views.over_time.over_time import OpenWindows

        return OpenWindows(self.trace, self._windows)

    @called_as("run.compare(other_run)")
    def compare(self, other: Run) -> Comparison[Frame]:
        """What changes from this run to another one of the same records: records, windows, values.

        Raises:
            InvalidArgument: the records differ, or the windows are of another kind.
        Example:
            >>> print(*waves.run(flights).compare(waves.with_windows(grace="1h").run(flights)).words()[:1])
            From gap 1 h, grace 30 min to gap 1 h, grace 1 h: 391 records gained, 0 lost.
        """
        from sessionkit.views.comparison.comparison import compare

        return compare(self, other)

    def _showing(self, label: bool) -> Run:
        """This run, or one whose records have no labels."""
        if label or self.plan.source.label is None:
            return self
        batch = self.trace.batch.replace(labels=NO_LABELS)
        return replace(self, _outcome=replace(self._outcome, kept_trace=replace(self.trace, batch=batch)))

    @property
    def _windows(self) -> WindowKind:
        return self.plan._complete_windows

    def summary(self) -> str:
        """The run in one line of numbers."""
        from sessionkit.views.words import drops_in_words

        m, windows = self.metrics(), self._windows
        if self._lives and self.deployed is not None:
            when = ", ".join(f"row {each.row:,} ({each.kind})" for each in self.deployed.restarts)
            records, lives = plural(m["process-total"], "record"), f"{len(self._lives):,} lives"
            return f"{records} in {lives} · started again after {when} · {drops_in_words(m)}"
        parts = [
            f"{plural(m['process-total'], 'record')} in {plural(m['windows'], windows.noun)} "
            f"({m['windows-closed']:,} closed, {m['windows-open']:,} open)",
            *([plural(m["windows-merged"], "merge")] if windows.holds == "sessions" else []),  # nothing else merges
            drops_in_words(m),
            *([f"{m['replayed-records']:,} replayed"] if m["replayed-records"] else []),
        ]
        rule = self._outcome.batch.idle
        idle = "" if rule is None else f" · partitions idle after {show_duration(rule.after_ms)} (not Kafka's)"
        return f"{' · '.join(parts)} · {windows.in_words()}{idle}"

    @called_as('run.plane("ada")')
    def plane(
        self,
        key: Any = None,
        *,
        partition: int | None = None,
        from_offset: int | None = None,
        until_offset: int | None = None,
        last: int | None = None,
        playback: bool = False,
        theme: Theme | None = None,
        clock: str | None = None,
        width: int | None = None,
        label: bool = True,
    ) -> Figure:
        """The history of one key: event time across, arrival upward. Without `key`, of the key with most events.

        Args:
            partition: where to look; by default the one with most of the key's records.
            from_offset, until_offset: the offsets of the first and the last row, both included.
            last: how many records of the key, the newest, in place of offsets. Without any of these the picture has
                the stretch with most to see, if not all fits.
            playback: True adds a slider that replays the arrivals, also in a saved page.
            theme: "light" or "dark"; without it that of `sk.options`.
            clock: names the clock of the axis.
            width: in pixels, 600 or more; without it the picture is as wide as the room that it is given.
            label: False leaves out the records' labels, if the plan names some.
        Raises:
            UnknownRecord: the run holds no such key, or no record between these offsets.
            InvalidArgument: no such partition or theme; or `last` is below 1, or stands beside an offset.
        Example:
            >>> figure = plan.run(monday).plane("ada")
        """
        from sessionkit.views.plane.plane import draw_plane, plane_scene

        key = self._most_eventful_key if key is None else self._key(key)
        look: Any = {"theme": theme, "clock": clock, "width": width}
        stretch: Any = {"from_offset": from_offset, "until_offset": until_offset, "last": last}
        scene = plane_scene(self._showing(label).trace, self._windows, key, partition=partition, **stretch, **look)
        return draw_plane(scene, playback=playback)

    @called_as("run.lanes()")
    def lanes(
        self,
        *,
        keys: Iterable[Any] | None = None,
        most: int = 40,
        sort: Sort | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        theme: Theme | None = None,
        clock: str | None = None,
        width: int | None = None,
        label: bool = True,
    ) -> Figure:
        """The windows of many keys, a lane each.

        Args:
            keys: which, in this order; without it at most `most`, those with the most to see.
            sort: "drops", "merges", "activity" or "key".
            start, end: the span of event time, both included: times as in `explain`, or milliseconds; without them the
                part with the most to see, and `start=0` shows everything.
            theme, clock, width, label: as in `plane`.
        Raises:
            InvalidArgument: an unknown theme or order, or a span that ends before it starts.
            UnknownRecord: the run holds no such key.
        Example:
            >>> figure = plan.run(monday).lanes(theme="dark")
        """
        from sessionkit.views.lanes.lanes import draw_lanes, lane_scene

        named = None if keys is None else [self._key(key) for key in list_of_keys(keys)]
        span: Any = {"start": self._moment_ms("start", start), "end": self._moment_ms("end", end)}
        run = self._showing(label)
        look: Any = {"theme": theme, "clock": clock, "width": width, "whole": run._all_lanes}
        scene = lane_scene(run.trace, self._windows, keys=named, most=most, sort=sort, **span, **look)
        return draw_lanes(scene)

    def drop_calendar(self) -> DropCalendar[Frame]:
        """From when the dropped records are: a calendar, days by hour or weeks by day, in the run's `timezone`.

        Raises:
            NotKept: the run was started with `trace=False`.
        Example:
            >>> print(waves.run(flights).drop_calendar().words()[0])
            955 of 28,491 records (3.35%) were dropped.
        """
        from sessionkit.views.drop_calendar.drop_calendar import DropCalendar, quarters_of

        trace, batch = self.trace, self.trace.batch

        def shown(columns: Mapping[str, Any], times: Mapping[str, str]) -> Any:
            return tables.frame_of(columns, batch, times)

        return DropCalendar(quarters_of(trace), batch.timezone, self._windows, shown)

    def clock(self) -> Clock[Frame]:
        """Which records moved stream time, ranked by how many others came too late because of each.

        Raises:
            NotKept: the run was started with `trace=False`.
            InvalidArgument: the run is of some keys.
        Example:
            >>> print(waves.run(flights).clock().words()[0])
            955 of 28,491 records (3.35%) were dropped as late.
        """
        from sessionkit.views.explain.clock import Clock

        self.trace.check_all_keys("clock")
        return Clock(self.trace, self._windows)

    def partition_times(self) -> PartitionTimes[Frame]:
        """How far the stream time of each partition is behind the newest one, and which partitions stand still.

        Raises:
            NotKept: the run was started with `trace=False`.
            InvalidArgument: the run is of some keys.
        Example:
            >>> plan.run(monday).partition_times()
            There is one partition: nothing is ahead of it or behind it.
        """
        from sessionkit.views.partition_times import PartitionTimes

        self.trace.check_all_keys("partition_times")
        return PartitionTimes(self.trace, self._windows)

    @called_as('run.write_html("clicks.html")')
    def write_html(
        self,
        path: str | Path,
        *,
        keys: Iterable[Any] | None = None,
        most_records: int = 100_000,
        hide_keys: bool = False,
        label: bool | None = None,
        title: str | None = None,
    ) -> Path:
        """Writes a page with sliders that needs no kernel and no network: who opens it can ask "what if".

        Its sliders move the lengths of the windows, and the browser decides the records anew: windows, merges, drops,
        the lanes of many keys, the plane of one, and what the settings cost. The page carries the times of the records
        and their keys, so it is as private as these; it says so at its top. An existing file is replaced.

        Args:
            path: the file.
            keys: only the records of these keys.
            most_records: of more, the page takes the key with most to see (a stretch of it, if it alone has more) and
                other keys, drawn at random, that have at most so many records together. It says in red what it leaves
                out, with the largest keys by name. Each record keeps the stream time of the whole run.
            hide_keys: numbers the keys, "key 1", instead of naming them.
            label: False leaves out the records' labels; by default they are in the page unless it hides the keys.
            title: of the page; without it, the key columns and the windows.
        Returns:
            The path.
        Raises:
            NotBuilt: the page cannot recompute this run: sliding windows, windows without a grace, a deployment,
                windows that a store held before, or windows with an offset that would begin before 1970.
            InvalidData: times from 2**53 ms on, which are no exact numbers in JavaScript.
            InvalidArgument: the records of `keys` are more than `most_records`, or the path is not one of HTML.
            UnknownRecord: the run holds no such key.
            WriteFailed: the folder is not there, or cannot be written to.
            NotKept: the run was started with `trace=False`.
        Example:
            >>> plan.run(monday).write_html("monday.html").name
            'monday.html'
        """
        from sessionkit.base.result_folders import write_whole
        from sessionkit.views.page.html import Page, page_html

        if Path(path).suffix not in ("", ".html", ".htm"):
            raise InvalidArgument(problem("a page is HTML", shorten(path), 'a path such as "clicks.html"'))
        named = None if keys is None else [self._key(key) for key in list_of_keys(keys)]
        page = Page(self._showing(not hide_keys if label is None else label), named, most_records, hide_keys)
        said = f"{self.plan.source.by}: {self._windows.in_words()}" if title is None else title
        text, place = page_html(page, said, self.plan), Path(path)
        write_whole(place, lambda aside: aside.write_text(text, encoding="utf-8"))
        return place

    @called_as('run.write_png("card.png")')
    def write_png(self, path: str | Path, *, title: str | None = None, theme: Theme | None = None) -> Path:
        """Writes a picture of 1,200 x 630 pixels for a chat or a slide: the finding, its numbers, the run over time.

        The finding says how much was dropped, why if a cause is found, and what would keep it. Needs the package
        kaleido, and Chrome or Chromium. An existing file is replaced.

        Args:
            path: the file, whose name ends in .png.
            title: above the finding; without it, the key columns and the windows.
            theme: as in `plane`.
        Returns:
            The path.
        Raises:
            PicturesUnavailable: there is no kaleido, or no browser for it.
            InvalidArgument: the path is not one of PNG, or an unknown theme.
            WriteFailed: the folder is not there, or cannot be written to.
        Example:
            >>> plan.run(monday).write_png("card.png").name  # doctest: +SKIP
            'card.png'
        """
        from sessionkit.views.over_time.card_figure import write_card

        if Path(path).suffix.lower() != ".png":
            raise InvalidArgument(problem("the picture is a PNG", shorten(path), 'a path such as "card.png"'))
        return write_card(self, Path(path), title, theme)

    @cached_property
    def _all_lanes(self) -> Any:
        """What every picture of lanes of this run starts from."""
        from sessionkit.views.scenes.board import everything

        return everything(self.trace, self._windows.trailing_only)

    def most_eventful_key(self) -> Any:
        """The key with most drops, merges and rescues, or with most windows where nothing had any of these.

        Of equal ones it is the one with most records, and of these the first in the data.

        Example:
            >>> waves.run(flights).most_eventful_key()
            'EV@EWR'
        """
        return self._most_eventful_key

    @cached_property
    def _most_eventful_key(self) -> Any:
        trace = self.trace
        weight = np.where(trace.batch.key >= 0, trace.worth_seeing, 0)
        if not len(trace.keys):
            raise UnknownRecord(problem("the run has no key", "no records", "run the plan on some records"))
        score = np.bincount(np.maximum(trace.batch.key, 0), weights=weight, minlength=len(trace.keys))
        if not score.any():
            score = np.bincount(trace.window_columns.key, minlength=len(trace.keys))
        records = np.bincount(trace.batch.key[trace.batch.key >= 0], minlength=len(trace.keys))
        return trace.keys[int(np.argmax(np.where(score == score.max(), records, -1)))].as_py()

    def remarks(self) -> list[str]:
        """What may be a mistake: guessed types, and why many records came too late, where a cause is found.

        Also which partitions were idle, and that the rule that moved them on is none of Kafka's; that windows of days
        do not begin at midnight in the zone of the run; that times are further apart than windows are long; and in how
        many windows `first` or `last`, which go by arrival, are not what event time would choose.
        """
        from sessionkit.views.words import day_remarks, finer_remarks, idle_remarks, unit_remarks

        if self._lives:
            return list(dict.fromkeys(said for life in self._lives for said in life.remarks()))
        batch = self._outcome.batch
        types = {name: column.type for name, column in batch.values.items()}
        floats = decimal_remarks(self.plan._aggregations, types)
        late = [*(self._late_remarks or unit_remarks(self._windows, batch)), *finer_remarks(self._windows, batch)]
        late += self._arrival_remarks
        said = [
            *batch.remarks,
            *self.plan.source.renamed,
            *floats,
            *late,
            *idle_remarks(batch),
            *day_remarks(self._windows, int(batch.timestamp_ms.max(initial=-1)), batch.timezone),
        ]
        if unknown := int((self._outcome.earlier_rows < 0).sum()) if not do_overlap(self._windows) else 0:
            windows = plural(unknown, self._windows.noun)
            said.append(f"The store does not say how many records {windows} had before: `assign` leaves that empty.")
        return said

    @cached_property
    def _said(self) -> list[str]:
        """The remarks, and how many sessions stay apart from another within reach, which is no mistake."""
        if self._lives:
            return self.remarks()
        apart = sessions_apart(self._outcome, self._windows)
        return [*self.remarks(), *apart.words(self._windows, self._outcome.dropped.get(LATE, 0))]

    @cached_property
    def _arrival_remarks(self) -> list[str]:
        """Where `first` and `last` are not what event time would choose, if all windows are of this run's records.

        Nothing of rows that are to be sorted by time: nothing is late then.
        """
        from sessionkit.views.words import arrival_remarks

        trace = self._outcome.kept_trace
        goes_on = trace is not None and (trace.first_stream_time_ms >= 0).any()
        if self.deployed is not None or goes_on or any(cause.is_order for cause in self._late_causes):
            return []
        return arrival_remarks(self.plan._aggregations, self._windows, self._outcome)

    @cached_property
    def _late_causes(self) -> list[Cause]:
        """Why many of the records came too late, where a cause is found."""
        outcome, late = self._outcome, self._outcome.dropped.get(LATE, 0)
        before_ms = None if outcome.kept_trace is None else outcome.kept_trace.first_stream_time_ms
        return order_causes(outcome.batch, self.plan.source, self._windows.close_lag_ms, late, before_ms)

    @property
    def _late_remarks(self) -> list[str]:
        dropped, lag_ms = self._outcome.dropped.get(LATE, 0), self._windows.close_lag_ms
        return [cause.words(cause.late if cause.is_behind else dropped, lag_ms) for cause in self._late_causes]

    def __repr__(self) -> str:
        return "\n".join([f"Run: {self.summary()}", *self._said])

    def _repr_html_(self) -> str:
        from sessionkit.views.html import run_html

        if self._lives:
            return html_block("".join(f"<p>{escape_html(each)}</p>" for each in [*repr(self).splitlines()]))
        return run_html(self.summary(), self._table, self._said, self._outcome.batch.form, self.timezone)
