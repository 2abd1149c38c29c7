"""Runs a plan on a streaming DataFrame: the same engine over micro-batches, with its windows in Spark's state."""

from __future__ import annotations

import atexit
import dataclasses
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import pyarrow as pa

from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration, duration_ms
from sessionkit.base.text import escape_html, html_block
from sessionkit.errors import InvalidArgument, NotBuilt, UnsupportedData, problem
from sessionkit.run import Run
from sessionkit.spark import functions as F
from sessionkit.spark.dropped import ADDED, TIMES_OF_DROPPED, as_output, carrying_records
from sessionkit.spark.input import SparkInput
from sessionkit.spark.query.progress import OBSERVED, PACKED, QueryProgress
from sessionkit.spark.query.result_folders import BatchFolder, local_path, tell_changes
from sessionkit.spark.query.running import choice_in_words, chosen_for_start, warn_of_default
from sessionkit.spark.reading.tasks import mapped
from sessionkit.spark.types import SparkForm, column, spark_schema
from sessionkit.spark.worker.shared_files import SharedFiles
from sessionkit.spark.worker.shuffle import PACKED_SCHEMA, PACKED_US, RUN_SCHEMA, pack
from sessionkit.spark.worker.task_wrapper import worker_task
from sessionkit.steps.job import RECORD
from sessionkit.steps.views import ADDED_LATER
from sessionkit.views.kafka_metrics import Level, kafka_metrics_of_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sessionkit.spark.views.summaries import StreamSuppressBuffer

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# What a query keeps for a micro-batch is what changed in it, not a copy of all.
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
Write: TypeAlias = "Callable[[DataFrame, int], None]"
Sink: TypeAlias = "str | os.PathLike[str] | Write"
_RECORDS = "dropped records"  # the view "dropped" with each record as it came


@answers_calls("run", elsewhere=(Run, "plan.run(data)"))
class StreamRun(SparkInput):
    """The run of a plan over a stream: streaming DataFrames, to be written with Spark's own `writeStream`.

    Each source partition is one group of Spark's state, with its own stream time, whatever the micro-batches are. The
    results of a query over all its micro-batches are those of a local run over the same records, in the same order for
    each partition.

    Example:
        >>> run = plan.stream(spark.readStream.schema(schema).parquet("clicks"))  # doctest: +SKIP
        >>> run.events(), run.changelog(), run.finals(), run.dropped(), run.timezone  # doctest: +SKIP
        >>> query = run.write(checkpoint="checkpoint", changelog="sessions")  # doctest: +SKIP
        >>> run.progress(), run.metrics(), run.kafka_metrics(), run.summary()  # doctest: +SKIP
        >>> run.suppress_buffer()  # doctest: +SKIP
    """

    def events(self) -> DataFrame:
        """Everything that happens, in order of the records of each partition; `what` says what a row is.

        "update", "tombstone" and "final" rows are those of `changelog()`, "dropped" ones those of `dropped()`.
        """
        return self._view("events")

    def _events(self, *, records: bool = False) -> DataFrame:
        from sessionkit.spark.worker.partition_processor import PROGRESS_COLUMNS, RESULT, PartitionProcessor

        self._prepare_session()
        job = self._job("events", self._schema)
        frame, source = self._frame, self.plan.source
        if records:
            frame, kind = carrying_records(self._given, source, self._columns)
            job = dataclasses.replace(job, columns=(*job.columns, RECORD), schema=job.schema.append(kind))
        assert source.partition is not None and source.offset is not None
        names = (source.partition, source.offset)
        packing = partial(pack, partition=self._place(names[0]), offset=self._place(names[1]), names=names)
        processor = PartitionProcessor(job, self._bound, self._name)
        partitions = F.collect_list(F.struct(*PROGRESS_COLUMNS))
        took = (F.sum(name).alias(name) for name in PACKED_US)
        return (
            mapped(frame, packing, PACKED_SCHEMA)
            .observe(PACKED + self._name, *took)
            .select(*RUN_SCHEMA.names)
            .groupBy("slot")
            .transformWithStateInPandas(processor, RESULT, "Append", "None")
            .observe(OBSERVED + self._name, partitions.alias("partitions"))
            .select("data")
            .mapInArrow(worker_task(_unpacking), spark_schema(job.schema))
        )

    def changelog(self) -> DataFrame:
        """What goes downstream: updates and tombstones, or finals, by the plan's emit strategy."""
        return self._view("changelog")

    def finals(self) -> DataFrame:
        """Each window once, when it is final.

        Raises:
            InvalidArgument: the plan emits updates.
        """
        self._check_finals()
        return self.changelog()

    def dropped(self, *, records: bool = False) -> DataFrame:
        """What was dropped, with the reason: a row a record for sessions, else a row for each window that it missed.

        The grace that a late record of a session lacked is not given, as it takes the history of its key.

        Args:
            records: True adds `lateness_ms`, how far stream time was ahead of a late record, `close_time`, before which
                windows were closed, and `record`: the value as it came, as JSON unless it is text or bytes in a
                DataFrame of Kafka. All columns of the input then go through the query.
        Raises:
            InvalidArgument: records, of a DataFrame in which two columns have the same name.
            UnsupportedData: records, of a DataFrame with a column that Python workers cannot hold.
        Example:
            >>> run.dropped(records=True).writeStream.format("parquet")  # doctest: +SKIP
        """
        return self._form.shown(self._dropped_records(), TIMES_OF_DROPPED) if records else self._view("dropped")

    def _dropped_records(self) -> DataFrame:
        """`dropped(records=True)` as it is inside."""
        warn_of_default(self._frame.sparkSession)
        rows = _select(self._events(records=True), *self._rows_of(_RECORDS))
        return as_output(rows, self.plan._complete_windows.close_lag_ms)

    def table(self) -> NoReturn:
        """Not offered: a stream has no final table.

        Raises:
            NotBuilt: with what to use instead.
        """
        want = 'changelog() written to a table by key and window, finals(), or sk.open_store("spark", …)'
        raise NotBuilt(problem("a stream has no table of all its windows", "table()", want))

    @called_as('run.write(checkpoint="checkpoint", changelog="sessions")')
    def write(
        self,
        *,
        checkpoint: str | os.PathLike[str],
        events: Sink | None = None,
        changelog: Sink | None = None,
        finals: Sink | None = None,
        dropped: Sink | None = None,
        every: Duration | None = None,
        available_now: bool = False,
        name: str | None = None,
    ) -> StreamingQuery:
        """Starts one query, with one state, that writes each of these views to its own place.

        A micro-batch that is run again after a failure writes the same rows to the same place: a folder is written as
        Parquet, a sub-folder for each micro-batch (`batch=7`), which appears when it is complete and only replaces one
        of this query alone. Any reader of Parquet sees each row once, and the number of the micro-batch as a column.

        Args:
            checkpoint: a folder for Spark's checkpoint; it belongs to this query alone.
            events, changelog, finals, dropped: a folder, or a function of a DataFrame and the number of its micro-batch
                that writes it anywhere. It is called again with the same number if it did not finish. `dropped` has
                the columns of `run.dropped(records=True)`: each record as it came.
            every: how often a micro-batch starts, at most; by default as soon as there is new data.
            available_now: processes what is there now, in as many micro-batches as the source decides, and ends.
            name: the name of the query.
        Returns:
            Spark's query, which runs in the background; a new one has as many state partitions as `repr(run)` says.
        Raises:
            InvalidArgument: no view is sent anywhere, `finals` of a plan that emits updates, or a folder that holds
                micro-batches of another query. What else is in the way stops the query, with its name.
        Example:
            >>> query = run.write(
            ...     checkpoint="state", changelog="sessions", dropped="late", available_now=True
            ... )  # doctest: +SKIP
        """
        from sessionkit.spark.query.listener import listener_of

        named = {"events": events, "changelog": changelog, "finals": finals, "dropped": dropped}
        sinks = {view: sink for view, sink in named.items() if sink is not None}
        if not sinks:
            raise InvalidArgument(problem("write needs somewhere to write to", "no view", 'changelog="sessions"'))
        if every is not None and available_now:
            got, want = f"every={every!r}", "leave one out"
            raise InvalidArgument(problem("a query that ends by itself has no interval", got, want))
        if finals is not None:
            self._check_finals()
        spark, place = self._frame.sparkSession, os.fspath(checkpoint)
        put, rows = self._put(sinks, place), self._events(records=dropped is not None)
        if (folder := local_path(spark, place)) is not None:
            tell_changes(folder, {view: self._written_names(view) for view in sinks})
        writer = rows.writeStream.foreachBatch(put).option("checkpointLocation", place)
        if every is not None:
            writer = writer.trigger(processingTime=f"{duration_ms(every, 'every')} milliseconds")
        if available_now:
            writer = writer.trigger(availableNow=True)
        with chosen_for_start(spark):
            query = (writer if name is None else writer.queryName(name)).start()
        listener_of(spark).note(query, self._name, place)
        return query

    # ---- while it runs

    def progress(self, query: StreamingQuery | None = None) -> QueryProgress:
        """How far a query of this run has come: its partitions, their stream times, its micro-batches.

        Args:
            query: which one, if several were started; by default the last one.
        Raises:
            InvalidArgument: no query of this run was started.
        """
        from sessionkit.spark.query.listener import listener_of

        spark = self._frame.sparkSession
        listener = listener_of(spark)
        if query is not None:
            found = listener.of_query(query)
            known = [found] if found is not None and found.run == self._name else []
        else:
            known = listener.of_run(self._name, spark.streams.active)
        if not known:
            want = "start one with .write(…) or .events().writeStream, and wait for its first micro-batch"
            raise InvalidArgument(problem("no query of this run has reported progress yet", "no progress", want))
        return known[-1]

    def metrics(self, query: StreamingQuery | None = None) -> dict[str, int]:
        """The counters of `Run.metrics()`, from the first record on: they are kept with the state, across restarts.

        And "windows-in-state": those that a record can still find, closed ones among them. A partition that has had no
        record since the query was started is not in them yet.
        """
        progress = self.progress(query)
        counts = progress.counts()
        names = [name for name in self._empty.metrics() if name in counts or name not in ADDED_LATER]
        return {**{name: counts[name] for name in names}, "windows-in-state": progress.windows}

    def kafka_metrics(self, query: StreamingQuery | None = None, *, level: Level = "info") -> pa.Table:
        """What Kafka Streams would count of this query, by partition, in the columns of `Run.kafka_metrics`.

        From the first record on, as `metrics()`; rates and latencies are null: a micro-batch has no such clock. How
        late records are, and what suppress sent and held, is left out.
        """
        partitions = self.progress(query).partitions
        return kafka_metrics_of_counts({number: each.counts for number, each in partitions.items()}, level)

    def suppress_buffer(self, query: StreamingQuery | None = None) -> StreamSuppressBuffer:
        """What waits in the buffers of suppress after the last micro-batch, and the most that did: in the checkpoint.

        Raises:
            InvalidArgument: the plan has no suppress, or no query of this run was started by `write`.
        """
        from sessionkit.spark.views.summaries import StreamSuppressBuffer

        if self.plan._suppression is None:
            self._empty.suppress_buffer()  # which refuses it
        progress = self.progress(query)
        if progress.checkpoint is None:
            want = 'a query that run.write(checkpoint="checkpoint", …) started'
            raise InvalidArgument(problem("what waits is read from the checkpoint", f"query {progress.name}", want))
        return StreamSuppressBuffer(self, progress.checkpoint, progress.batches[-1].number)

    # ---- to look at

    def summary(self) -> str:
        """What will run and how, in a line."""
        windows, source, waits = self.plan._complete_windows, self.plan.source, self.plan._suppression
        emit = f"emit {self.plan._strategy.replace('_', ' ')}{'' if waits is None else f', {waits.code()[1:]}'}"
        return (
            f"{windows.noun}s on a stream · {windows.in_words()} · {emit} · "
            f"state by {source.partition}, in order of {source.offset}{choice_in_words(self._frame.sparkSession)}"
        )

    def __repr__(self) -> str:
        return f"StreamRun: {self.summary()}"

    def _repr_html_(self) -> str:
        views = ", ".join(f"<code>.{name}()</code>" for name in ("events", "changelog", "finals", "dropped"))
        return html_block(
            f"<p><b>{escape_html(self.summary())}</b></p><p>{views} are streaming DataFrames: start one with "
            '<code>.writeStream.option("checkpointLocation", …)</code>.</p>'
        )

    @cached_property
    def _dropped(self) -> pa.Table:
        return self._empty.dropped(missing_grace=False)

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns of what goes downstream, then those that only a dropped record has."""
        sent = self._empty.changelog().schema
        own = [field for field in self._dropped.schema if field.name not in sent.names]
        return pa.schema([*sent, *own])

    @cached_property
    def _bound(self) -> dict[str, str]:
        """What may not change while there is a state."""
        waits = self.plan._suppression
        suppress = {} if waits is None else {"suppress": waits.kept_as()}
        return {**self.plan._bound(), "retention": str(self._retention_ms), **suppress}

    @cached_property
    def _name(self) -> str:
        """The name of this run's files in shared memory, which go with this process."""
        name = uuid.uuid4().hex
        atexit.register(SharedFiles(name).remove)
        return name

    def _view(self, view: str) -> DataFrame:
        """Some rows and columns of the events, for a query that the user starts."""
        warn_of_default(self._frame.sparkSession)
        return self._form.shown(_select(self._events(), *self._rows_of(view)))

    def _rows_of(self, view: str) -> tuple[str, list[str]]:
        """Which rows of the events a view has, as SQL, and which columns."""
        if view == "events":
            return "true", self._schema.names
        if view == "dropped":
            return "what = 'dropped'", self._dropped.column_names
        if view == _RECORDS:
            return "what = 'dropped'", [*self._dropped.column_names, RECORD]
        return "what <> 'dropped'", list(self._empty._changelog)

    def _put(self, sinks: Mapping[str, Sink], checkpoint: str) -> Write:
        """A function that writes a micro-batch to each sink, and with dropped records the records as they came."""
        views = {view: _RECORDS if view == "dropped" else view for view in sinks}
        spark = self._frame.sparkSession
        targets = [(*self._rows_of(views[view]), _writer(sinks[view], checkpoint, spark)) for view in sinks]
        return _to_each(targets, self._form, self.plan._complete_windows.close_lag_ms)

    def _written_names(self, view: str) -> list[str]:
        """The columns of what is written of a view, as the plan shows them."""
        names = [*self._rows_of(view)[1], *(ADDED if view == "dropped" else ())]
        return self._form.shown_names(names, TIMES_OF_DROPPED)

    def _check_finals(self) -> None:
        if self.plan._strategy != "on_window_close":
            got, want = self.plan._strategy, '.emit("on_window_close")'
            raise InvalidArgument(problem("a plan that emits updates sends no final results", got, want))

    def _prepare_session(self) -> None:
        """Has Spark keep state in RocksDB, which Spark 4 needs for state of any kind, and listens to the queries."""
        from sessionkit.spark.query.listener import listener_of

        spark = self._frame.sparkSession
        if "RocksDB" not in str(spark.conf.get(_PROVIDER)):
            spark.conf.set(_PROVIDER, _ROCKSDB)
            spark.conf.set(_CHANGELOG, "true")
        listener = listener_of(spark)
        listener.plans[self._name], listener.retention_ms[self._name] = self._zoned_plan, self._retention_ms

    def _sampled_types(self, names: list[str]) -> dict[str, pa.DataType]:
        want = f'.with_types({names[0]}="string"), with any type of Spark\'s'
        what = "on a stream the result types of Python functions must be declared"
        raise UnsupportedData(problem(what, names[0], want))


def _select(events: DataFrame, rows: str, names: list[str]) -> DataFrame:
    return events.where(rows).select(*[column(name) for name in names])


def _writer(sink: Sink, checkpoint: str, spark: SparkSession) -> Write:
    if callable(sink):
        return sink
    folder = BatchFolder(os.fspath(sink), checkpoint)
    folder.check(spark)
    return folder


def _to_each(targets: list[tuple[str, list[str], Write]], form: SparkForm, close_lag_ms: int) -> Write:
    """Writes some rows and columns of the events by each of these functions."""

    def write(events: DataFrame, number: int) -> None:
        if len(targets) > 1:  # or each would ask for the whole micro-batch again
            events.persist()
        try:
            for rows, names, put in targets:
                view = _select(events, rows, names)
                view = as_output(view, close_lag_ms) if RECORD in names else view
                put(form.shown(view, TIMES_OF_DROPPED), number)
        finally:
            if len(targets) > 1:
                events.unpersist()

    return write


def _unpacking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column(0):
            if stream := data.as_buffer():
                yield from pa.ipc.open_stream(stream)
