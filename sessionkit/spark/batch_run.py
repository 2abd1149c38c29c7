"""Runs a plan on Spark: the same engine in every task, one source partition after another, in offset order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from sessionkit.aggregations.contract import decimal_remarks
from sessionkit.base.arrays import arrow_table
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration
from sessionkit.base.moments import Moment
from sessionkit.base.result_columns import TIMES
from sessionkit.base.text import escape_html, html_block, one_of, plural
from sessionkit.deployed.lives import LIFE
from sessionkit.engine.chosen_keys import named_keys, picked_records
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, UnknownRecord, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.keys import list_of_keys
from sessionkit.records.lateness.order import MANY, MANY_LATE
from sessionkit.records.row_names import rows_by_place
from sessionkit.run import Run
from sessionkit.session_rules.rules import SessionRules
from sessionkit.spark import functions as F
from sessionkit.spark.dropped import TIMES_OF_DROPPED, as_output, with_closed_by, with_records
from sessionkit.spark.input import check_built
from sessionkit.spark.reading.tasks import SparkReading, mapped
from sessionkit.spark.replay import SparkReplay
from sessionkit.spark.sessionized import sessionized
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.types import arrow_schema, column, readable_errors, spark_schema
from sessionkit.spark.views.comparison import SparkComparison
from sessionkit.spark.views.summaries import (
    SparkAudit,
    SparkClock,
    SparkLatency,
    SparkOpenWindows,
    SparkPartitionTimes,
    SparkSuppressBuffer,
)
from sessionkit.spark.worker.by_key import PLACE, add_missing_grace, choose, row_number_name
from sessionkit.spark.worker.deployed_partition import KAFKA_METRICS, deployed_rows, run_deployed
from sessionkit.spark.worker.sessions_of_rows import ids_of_merges
from sessionkit.steps.job import Job, type_of
from sessionkit.steps.summaries import KEYS, PARTITIONS, QUARTERS
from sessionkit.views.assignment import assigned
from sessionkit.views.drop_calendar.drop_calendar import DropCalendar, Quarters
from sessionkit.views.explain.record import Explanation
from sessionkit.views.kafka_metrics import Level, kafka_metrics_of_counts
from sessionkit.views.lineage.lineage import TIMES_OF_MERGES
from sessionkit.views.stable_ids import Ids
from sessionkit.views.tables import table_rows
from sessionkit.views.words import Said, day_remarks, days_apart
from sessionkit.windows.contract import SessionKind, do_overlap

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sessionkit.deployed.deployment import Deployment
    from sessionkit.views.drawing.palettes import Figure
    from sessionkit.views.emissions.emissions import Emissions
    from sessionkit.views.key_steps import Steps
    from sessionkit.views.lineage.lineage import Lineage

__all__ = ["SparkRun", "SparkTrace", "StreamRun", "readable_errors", "start", "start_stream"]
_OF_ALL_LIVES = ("changelog", "metrics")  # views that tell of an application that was started again
_LANES_BY: Mapping[str, tuple[str, ...]] = {  # what keys are chosen by, where more are there than lanes
    "drops": ("late", "merges", "records"),
    "merges": ("merges", "late", "records"),
    "activity": ("records",),
    "key": (),
}
LOCAL_RECORDS = 5_000_000  # what one process is asked to hold, to explain and to draw
# How Spark hands rows to Python. It weighs its batch after every row, in Spark 4.2, unless bytes have no limit: without
# it a run takes about 60 % of the time, and a batch is limited by its number of rows.
BATCH_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
SAMPLE_RECORDS = 1_000  # records that show the type which a Python function returns


def start(plan: Plan, df: Any, deployment: Deployment | None, store: object, retention: Duration | None) -> SparkRun:
    """The run of a plan over a DataFrame that is no stream; nothing runs yet.

    Raises:
        InvalidArgument: the plan does not name a partition and an offset column, or the DataFrame is a stream.
        NotBuilt: a store, or idle partitions.
        SparkUnavailable: the workers would run a Python that cannot run sessionkit.
    """
    check_built(plan, df, store)
    if df.isStreaming:
        got = "a streaming DataFrame"
        raise InvalidArgument(problem("run takes records that are all there", got, "plan.stream(df)"))
    if deployment is not None:
        run = SparkRun._over(plan, df, None, deployment.clock)
        retention_ms = plan._deployed_retention_ms(deployment, None)
        empty = plan._run_deployed(run._empty._outcome.batch, dataclasses.replace(deployment, restarts=(), clock=None))
        return dataclasses.replace(run, _deployment=deployment, _retention_ms=retention_ms, _empty=empty)
    return SparkRun._over(plan, df, retention)


def start_stream(plan: Plan, df: Any, retention: Duration | None) -> StreamRun:
    """The run of a plan over a streaming DataFrame, with the errors of `Plan.stream`; nothing runs yet."""
    check_built(plan, df)
    if not df.isStreaming:
        got = "one whose rows are all there"
        raise InvalidArgument(problem("stream takes a streaming DataFrame", got, "plan.run(df)"))
    return StreamRun._over(plan, df, retention)


@answers_calls("run", elsewhere=(Run, "run.local(partition)"))
class SparkRun(SparkReading):
    """The run of a plan over a Spark DataFrame: the views of `Run`, each a Spark DataFrame that is computed when used.

    The records of a source partition go through one task in offset order, as its stream time is shared by all its keys;
    in a run `by_key()` that task only distributes them. Where the input is Parquet files whose row groups hold one
    partition each, tasks read them straight from the files. Otherwise the first view asks Spark for the smallest and
    largest partition number, one job over one column. `summary()` says which way is taken.

    Example:
        >>> run = plan.run(spark.read.parquet("clicks"))  # doctest: +SKIP
        >>> run.table().show(), run.changelog(), run.dropped(), run.metrics(), run.counts()  # doctest: +SKIP
        >>> run.kafka_metrics(level="debug").show()  # doctest: +SKIP
        >>> run.trace.records(), run.explain(offset=17, partition=0), run.timezone  # doctest: +SKIP
        >>> run.plane("ada"), run.lanes(), run.most_eventful_key(), run.summary()  # doctest: +SKIP
        >>> run.emissions("ada"), run.steps("ada"), run.lineage("ada", "2024-07-01 00:10")  # doctest: +SKIP
        >>> run.losses(10).show(), run.merges().show(), run.assign().show()  # doctest: +SKIP
        >>> run.latency(), run.open_windows(), run.drop_calendar(), run.clock()  # doctest: +SKIP
        >>> run.partition_times(), run.suppress_buffer(), run.remarks(), run.compare(other)  # doctest: +SKIP
        >>> run.write_html("clicks.html", keys=["ada"]), run.write_png("card.png")  # doctest: +SKIP
        >>> run.local(), run.of("ada"), run.of("ada", partition=0)  # doctest: +SKIP
    """

    def by_key(self) -> SparkRun:
        """The run with the records of a partition distributed by key over several tasks; its results are the same.

        It helps when Python functions aggregate and there are more cores than partitions. A partition has up to two
        tasks a core, 32 at most, of 100,000 records and more; spark.sql.shuffle.partitions, if set, says how many it is
        in all.

        Raises:
            InvalidArgument: the plan has suppress, or a deployment: what they keep is of all keys of a partition; or it
                names no key column.
        Example:
            >>> plan.run(spark.read.parquet("clicks")).by_key().table()  # doctest: +SKIP
        """
        if not self.plan.source.keys:
            want = "the run as it is, a task for each partition; or a plan with a key column"
            raise InvalidArgument(problem("there is no key to divide the records by", "by_key()", want))
        if self._keeper:
            want = "the run as it is: the records of all keys of a partition move its clock"
            raise InvalidArgument(problem("suppress and deployments do not run by key", self._keeper, want))
        return dataclasses.replace(self, _is_by_key=True)

    # ---- views

    def table(self) -> DataFrame:
        """One row per window, ordered by partition, key bytes and start; a window that nothing has closed is "open"."""
        schema = self._empty.table().schema
        return self._form.shown(self._view("table", schema, *self._key_order(), "window_start_ms", sort=True))

    def changelog(self) -> DataFrame:
        """What goes downstream, in order of the records that caused it, partition after partition."""
        schema = self._empty.changelog().schema
        if self._deployment is not None:
            if self._deployment.restarts:
                schema = schema.append(pa.field(LIFE, pa.int64()))
            return self._form.shown(self._view("changelog", schema))
        final = self.plan._strategy == "on_window_close"
        order = ["offset", "window_end_ms", *self._key_order()] if final else ["offset"]
        return self._form.shown(self._view("changelog", schema, *order))

    @cached_property
    def trace(self) -> SparkTrace:
        """Every decision, as DataFrames."""
        return SparkTrace(self)

    def dropped(self, *, missing_grace: bool = True, records: bool = False) -> DataFrame:
        """What was dropped, and why: a row a record for sessions, else a row for each window that a record missed.

        Args:
            missing_grace: False leaves out the grace, which costs a second shuffle, by key.
            records: True adds `closed_by`, the offset of the record that closed the window of a late one (with the
                grace alone), `lateness_ms`, how far stream time was ahead of it, `close_time`, before which windows
                were closed, and `record`: the value as it came, as JSON unless it is text or bytes in a DataFrame of
                Kafka. It is looked up in the input; to write these rows to a topic, see `sk.to_kafka`.
        Raises:
            InvalidArgument: records, of a DataFrame in which two columns have the same name.
        Example:
            >>> run.dropped(records=True).where("reason = 'late'").write.parquet("late")  # doctest: +SKIP
        """
        if records:
            return self._form.shown(self._dropped_records(missing_grace=missing_grace), TIMES_OF_DROPPED)
        return self._form.shown(self._dropped(missing_grace=missing_grace))

    def _dropped_records(self, *, missing_grace: bool = True) -> DataFrame:
        """`dropped(records=True)` as it is inside."""
        rows = self._dropped(missing_grace=missing_grace)
        if "missing_grace_ms" in rows.columns:
            rows = with_closed_by(rows, self.trace.records())
        rows = as_output(with_records(rows, self._given, self.plan.source), self.plan._complete_windows.close_lag_ms)
        return self._by_partition(rows, "offset", shuffle=True)

    def _dropped(self, *, missing_grace: bool) -> DataFrame:
        if not missing_grace or self.plan._complete_windows.holds != "sessions":  # of others it costs nothing
            return self._view("dropped", self._empty.dropped(missing_grace=False).schema, "offset")
        records = self._rows(self._job("records", self.trace.schema("records")))
        history = records.drop("decision", "window_id", "merged_count", "row")
        history = history.repartition(self._task_count, "partition", "key")
        history = history.sortWithinPartitions("partition", "key", "offset")
        windows, schema = cast(SessionKind, self.plan.windows), self._empty.dropped().schema
        task = partial(add_missing_grace, windows=windows, retention_ms=self._retention_ms, schema=schema)
        return self._by_partition(mapped(history, task, schema), "offset", shuffle=True)

    def metrics(self) -> dict[str, int]:
        """Counters by Kafka's names and of our own. Starts a job."""
        names = [name for name in self._empty.metrics() if not (self._has_lives and name.startswith("windows"))]
        return self._totals("metrics", names)

    def kafka_metrics(self, *, level: Level = "info") -> DataFrame:
        """What Kafka Streams would count of this run, by partition, in the columns of `Run.kafka_metrics`.

        Rates and latencies are null: a run on Spark has no clock; how late records are is left out. With a deployment
        they are those of `Run.kafka_metrics`. Starts a job.
        """
        if self._deployment is not None:
            return self._rows(self._job(f"{KAFKA_METRICS}{level}", self._empty.kafka_metrics(level=level).schema))
        table = kafka_metrics_of_counts(self._counts_by_partition("metrics"), level)
        return self._frame.sparkSession.createDataFrame(table, spark_schema(table.schema))

    def counts(self) -> dict[str, int]:
        """What `sk.sweep` reports of a setting: records, late, windows, merges. Starts a job, without aggregations."""
        return self._totals("counts", ["records", "late", "windows", "merges"])

    # ---- one partition, in this process

    def local(self, partition: int | None = None) -> Run[pa.Table]:
        """The run over one partition (without `partition`: over all of them) in this process, to explain and to draw.

        Raises:
            InvalidData: more records than one process should hold.
        """
        if self._deployment is not None:
            partition = self._only_partition(partition, "a deployment, of which each partition is an application,")
        if partition not in self._locals:
            records = self._records_here(partition)
            self._locals.clear()  # one at a time is held
            self._locals[partition] = self._run_here(self._zoned_plan, records)
        return self._locals[partition]

    def _records_here(self, partition: int | None) -> pa.Table:
        """The records of a partition, or of all of them, in order."""
        source = self.plan.source
        assert source.partition is not None and source.offset is not None
        frame = self._frame if partition is None else self._frame.where(self._input(source.partition) == partition)
        with readable_errors():
            count = self._extent.records if partition is None else frame.count()
            if count > LOCAL_RECORDS:
                where = "all partitions" if partition is None else f"partition {partition}"
                most = f"at most {LOCAL_RECORDS:,} come to this process"
                want = f"{most}: filter the DataFrame first, or use the views"
                raise InvalidData(problem(f"{where} cannot be held here", plural(count, "record"), want))
            records = frame.toArrow().rename_columns(list(self._columns))
        return records.sort_by([(source.partition, "ascending"), (source.offset, "ascending")])

    @called_as('run.of("ada")')
    def of(self, *keys: Any, partition: int | None = None) -> Run[pa.Table]:
        """The run over the records of some keys in this process, with all that they have among the others.

        One job picks these records where they lie, and the few of other keys that moved stream time for them, so that
        every view of the run is that of the run over all records: `run.of("ada").emissions("ada")`.

        Args:
            keys: their values; of several key columns tuples, or the joined text.
            partition: the only partition that is looked at; by default all of them.
        Raises:
            InvalidArgument: no key is named.
            UnknownRecord: there is no record of such a key.
            InvalidData: more records than one process should hold.
        Source:
            Stream time is all that the keys of a partition share (KStreamSessionWindowAggregate).
        Example:
            >>> run.of("ada").table(), run.of("ada", "bob", partition=3).lanes()  # doctest: +SKIP
        """
        named = named_keys(self.plan.source, keys)
        if self._keeper:
            want = "run.local(partition), which has all keys of a partition"
            raise InvalidArgument(problem("suppress and deployments keep all keys together", self._keeper, want))
        rows = self._chosen(named, partition)
        place = rows[PLACE].to_numpy()
        records = rows.drop_columns(PLACE).rename_columns(list(self._columns))
        batch = self._read_here(self._zoned_plan, records)
        where = f"partition {partition}" if partition is not None else "this DataFrame"
        chosen = picked_records(batch, place, named, self.plan._complete_windows, f"{where} has no record of this key")
        return self._zoned_plan._run_batch(chosen, retention_ms=self._retention_ms)

    def _chosen(self, keys: list[Any], partition: int | None) -> pa.Table:
        """The rows of these keys and their ticks, in order of partition and offset."""
        names = [f"c{place}" for place in range(len(self._columns))]
        schema = arrow_schema(self._frame, names).append(pa.field(PLACE, pa.int64()))
        task = partial(choose, self._job("records", self.trace.schema("records")), keys, partition, schema)
        with readable_errors():
            rows = self._over_partitions(task, schema).limit(LOCAL_RECORDS + 1).toArrow()
        if len(rows) > LOCAL_RECORDS:
            want = f"at most {LOCAL_RECORDS:,} come to this process: name fewer keys, or use the views"
            raise InvalidData(problem("these keys cannot be held here", "more records", want))
        return rows.sort_by([(names[place], "ascending") for place in self._places])

    @called_as('run.explain(offset=13, partition=0), or run.explain(key="ada", window_start="2024-07-01 00:10")')
    def explain(
        self,
        *,
        offset: int | None = None,
        key: Any = None,
        window_start: Moment | None = None,
        partition: int | None = None,
    ) -> Explanation:
        """One decision in words, as `Run.explain` has it, of the records of its key.

        Raises:
            UnknownRecord: it is not in this run, or there are several partitions and none is named.
            InvalidArgument: neither an offset alone, nor a key and a start.
        """
        asked: dict[str, Any] = {"offset": offset, "window_start": window_start}
        if key is not None or offset is None:
            run = self._empty if key is None and self.plan.source.keys else self._of(key, partition)
            return run.explain(**asked, key=key, partition=partition)
        number = self._only_partition(partition, f"offset {offset}")
        found = self._key_at(offset, number)
        run = self.local(number) if found is None else self._of(found, number)
        return run.explain(**asked, partition=number)

    def _key_at(self, offset: int, partition: int) -> Any:
        """The key of the record there; None where it has none, or cannot be asked for."""
        source = self.plan.source
        number, place = (self._input(str(name)) for name in (source.partition, source.offset))
        with readable_errors():
            rows = self._frame.where((number == partition) & (place == offset)).limit(1).toArrow()
            if not len(rows):
                ends = self._frame.where(number == partition).agg(F.min(place), F.max(place)).collect()[0]
                want = "a partition of this run" if ends[0] is None else f"an offset from {ends[0]} to {ends[1]}"
                where = f"partition {partition}, offset {offset}"
                raise UnknownRecord(problem("this record is not in the run", where, want))
        return self._read_here(self._zoned_plan, rows.rename_columns(list(self._columns))).key_at(0)

    def _of(self, key: Any, partition: int | None) -> Run[pa.Table]:
        """The run of one key; of the whole partition where a buffer or a cache holds all keys."""
        if not self._keeper:
            return self.of(key, partition=partition)
        return self.local(self._only_partition(partition, "a key"))

    @called_as('run.plane("ada", partition=0)', hands_on_to=Run.plane)
    def plane(self, key: Any = None, *, partition: int | None = None, **options: Any) -> Figure:
        """The history of one key; without a key, of the one with most to see."""
        key = self.most_eventful_key(partition=partition) if key is None else key
        return self._of(key, partition).plane(key, partition=partition, **options)

    @called_as('run.emissions("ada")')
    def emissions(self, key: Any = None, *, partition: int | None = None) -> Emissions[pa.Table]:
        """What went downstream for one key, and what is pending, as `Run.emissions` has it."""
        key = self.most_eventful_key(partition=partition) if key is None else key
        return self._of(key, partition).emissions(key, partition=partition)

    @called_as('run.lineage("ada", "2024-07-01 00:10")')
    def lineage(
        self, key: Any, window_start: Moment | None = None, *, partition: int | None = None
    ) -> Lineage[pa.Table]:
        """Which sessions became one in this session, as `Run.lineage` has it."""
        return self._of(key, partition).lineage(key, window_start, partition=partition)

    @called_as('run.steps("ada")')
    def steps(self, key: Any) -> Steps[pa.Table]:
        """The windows of a key as their steps, as `Run.steps` has them."""
        return (self._empty if self.plan.source.label is None else self._of(key, None)).steps(key)

    @called_as("run.lanes()", hands_on_to=Run.lanes)
    def lanes(
        self, *, keys: Iterable[Any] | None = None, most: int = 40, partition: int | None = None, **options: Any
    ) -> Figure:
        """The windows of many keys, a lane each; without `keys`, of those with most to see in their whole history."""
        if self._keeper:
            run = self.local(self._only_partition(partition, "a picture"))
            return run.lanes(keys=keys, most=most, **options)
        named = None if keys is None else list_of_keys(keys)
        if named is None:
            order = one_of("sort", options.get("sort") or "drops", tuple(_LANES_BY))
            ranked = self._seen_keys(partition).orderBy(*(F.desc(name) for name in _LANES_BY[order]), "key")
            with readable_errors():
                named = [row["key"] for row in ranked.limit(max(most, 1)).collect()]
        if not named:
            return self._empty.lanes(most=most, **options)
        run = self.of(*named, partition=partition)
        return run.lanes(keys=None if keys is None else named, most=most, **options)

    def most_eventful_key(self, *, partition: int | None = None) -> Any:
        """The key with most drops, merges and rescues, or with most windows where nothing had any of these.

        Raises:
            UnknownRecord: there are no records with a key.
        """
        seen = self._seen_keys(partition)
        with readable_errors():
            for name in ("worth", "windows"):
                top = seen.orderBy(F.desc(name), F.desc("records"), "first").limit(1).collect()
                if top and (top[0][name] or name == "windows"):
                    return top[0]["key"]
        raise UnknownRecord(problem("the run has no key", "no records", "run the plan on some records"))

    # ---- over all keys

    @called_as("run.losses(10)")
    def losses(self, most: int | None = None) -> DataFrame:
        """Which keys lose the most records, as `Run.losses` has it; equal ones by their first record."""
        share = (column("late") / column("records")).alias("share")
        rows = self._seen_keys(None).orderBy(F.desc("late"), F.desc("records"), "first")
        rows = rows if most is None else rows.limit(most)
        return self._form.shown(rows.select("key", "records", "late", share, "merges"))

    def _seen_keys(self, partition: int | None) -> DataFrame:
        """What there is to see of each key, in all partitions or in one."""
        rows = self._summary("keys", self._with_key(KEYS))
        rows = rows if partition is None else rows.where(column("partition") == partition)
        counts = (F.sum(name).alias(name) for name in ("records", "late", "merges", "worth", "windows"))
        return rows.groupBy("key").agg(*counts, F.min(F.struct("partition", "offset")).alias("first"))

    @called_as("run.merges()")
    def merges(self, *, ids: Ids = "number") -> DataFrame:
        """Which records joined two sessions, as `Run.merges` has it, in order of partition and offset.

        Raises:
            InvalidArgument: the windows of this run do not merge, or these are no ids.
        """
        schema, source = self._empty.merges(ids=ids).schema, self.plan.source
        rows = self._by_partition(self._summary("merges", self._empty.merges().schema), "offset", "later_start_ms")
        if ids != "number":
            types = arrow_schema(self._frame, self._columns)
            form = source.result_form([types.field(name).type for name in source.keys], self.timezone)
            rows = mapped(rows, partial(ids_of_merges, form, ids), schema)
        return self._form.shown(rows, TIMES_OF_MERGES)

    @called_as("run.assign(df)")
    def assign(self, data: DataFrame | None = None, *, ids: Ids = "number") -> DataFrame:
        """The rows that the run was made of, with the session or tumbling window that each is in, in no order.

        The columns are those of `Run.assign`. Each task holds the rows of its partitions.

        Args:
            data: the DataFrame of the run; by default it is that one.
            ids: as in `sk.sessionize`.
        Raises:
            InvalidArgument: it is another DataFrame, it has such a column already, or the windows overlap.
        """
        if data is not None and data is not self._given and not data.sameSemantics(self._given):
            want = "run.assign(), or the DataFrame that plan.run was given"
            raise InvalidArgument(problem("these are not the rows of this run", "another DataFrame", want))
        if self._deployment is not None:
            want = "run.local(partition).assign(rows of that partition)"
            raise NotBuilt(problem("assign does not know a deployment on Spark", repr(self._deployment), want))
        if do_overlap(self.plan._complete_windows):
            assigned(self._empty.trace, self.plan._complete_windows)  # which refuses them
        plan = dataclasses.replace(self.plan, _aggregations=(), _suppression=None)
        return sessionized(plan, self._given, self.plan.source.offset, SessionRules(), in_order=True, ids=ids)

    @called_as("run.compare(other_run)")
    def compare(self, other: SparkRun) -> SparkComparison:
        """What changes from this run to another one of the same DataFrame, as `Run.compare` has it.

        Raises:
            InvalidArgument: it is no run on Spark, of other records, or its windows are of another kind.
        """
        return SparkComparison(self, other)

    def _audit(self, how: Deployment) -> SparkAudit:
        return SparkAudit(self, how)

    def latency(self) -> SparkLatency:
        """How long after its end each window became final."""
        return SparkLatency(self)

    def open_windows(self) -> SparkOpenWindows:
        """How many windows of its partition are open after each record: what a task's state has to hold."""
        return SparkOpenWindows(self)

    def clock(self) -> SparkClock:
        """Which records moved stream time, ranked by how many others came too late because of each."""
        return SparkClock(self)

    def partition_times(self) -> SparkPartitionTimes:
        """How far the stream time of each partition is behind the newest one at the end."""
        return SparkPartitionTimes(self)

    def suppress_buffer(self) -> SparkSuppressBuffer:
        """What waits in the buffers of suppress at the end of the run, and the most that did.

        Raises:
            InvalidArgument: the plan has no suppress.
        """
        if self.plan._suppression is None:
            self._empty.suppress_buffer()  # which refuses it
        return SparkSuppressBuffer(self)

    def drop_calendar(self) -> DropCalendar[DataFrame]:
        """From when the dropped records are: a calendar, days by hour or weeks by day. Starts a job."""
        grouped = self._summary("quarters", QUARTERS).groupBy("start_ms")
        counts = (F.sum(name).alias(name) for name in QUARTERS.names[1:])
        with readable_errors():
            rows = grouped.agg(*counts).toArrow().sort_by("start_ms")
        quarters = Quarters(*(rows[name].to_numpy() for name in QUARTERS.names))
        return DropCalendar(quarters, self.timezone, self.plan._complete_windows, self._shown_here)

    def remarks(self) -> list[str]:
        """What may be a mistake, as `Run.remarks` tells it.

        Why many records came too late is looked for in the partition with most of them, by a task that holds it. What
        `first` and `last` would be by event time is not.
        """
        windows, schema = self.plan._complete_windows, arrow_schema(self._frame, self._columns)
        floats = decimal_remarks(self.plan._aggregations, dict(zip(schema.names, schema.types, strict=True)))
        late, lag_ms, rows = self.counts()["late"], windows.close_lag_ms, self._partition_rows
        with self._replay(many=True) as replay:
            read, causes = replay.remarks, []
            if late >= max(MANY_LATE, MANY * self._total("usable")):
                causes = replay.causes(self.plan.source, lag_ms)
        said = [cause.words(cause.late if cause.is_behind else late, lag_ms) for cause in causes]
        rests = {row["day_rest"] for row in rows if row["usable"]}
        if not said and len(rests) == 1 and min(rests) >= 0:
            said = days_apart(windows, self._total("usable"))
        newest_ms = max((row["newest_ms"] for row in rows), default=-1)
        return [*read, *self.plan.source.renamed, *floats, *said, *day_remarks(windows, newest_ms, self.timezone)]

    @called_as('run.write_html("clicks.html")', hands_on_to=Run.write_html)
    def write_html(self, path: str | Path, *, keys: Iterable[Any] | None = None, **options: Any) -> Path:
        """Writes the page of `Run.write_html`, of some keys or of all records.

        Raises:
            InvalidData: without `keys`, more records than one process should hold.
        """
        if keys is None or self._keeper:
            return self.local().write_html(path, keys=keys, **options)
        return self.of(*list_of_keys(keys)).write_html(path, **options)

    @called_as('run.write_png("card.png")', hands_on_to=Run.write_png)
    def write_png(self, path: str | Path, **options: Any) -> Path:
        """Writes the picture of `Run.write_png`, whose finding tries other graces: all records come to this process.

        Raises:
            InvalidData: more records than one process should hold.
        """
        return self.local().write_png(path, **options)

    # ---- to look at

    def summary(self) -> str:
        """What will run and how, in a line; no job is started for it."""
        windows = self.plan._complete_windows
        deployed = "" if self._deployment is None else f"{self._deployment!r}, an application a partition · "
        return f"{windows.noun}s on Spark · {windows.in_words()} · {deployed}{self._how()}"

    def __repr__(self) -> str:
        return f"SparkRun: {self.summary()}"

    def _repr_html_(self) -> str:
        names = ("table()", "changelog()", "dropped()", "trace", "metrics()")
        views = ", ".join(f"<code>.{name}</code>" for name in names)
        summary = escape_html(self.summary())
        return html_block(f"<p><b>{summary}</b></p><p>Nothing has run yet: {views} are Spark DataFrames.</p>")

    @cached_property
    def _locals(self) -> dict[int | None, Run[pa.Table]]:
        return {}

    def _view(self, view: str, schema: pa.Schema, *order: Column | str, sort: bool = False) -> DataFrame:
        """The rows of a view, by partition and `order`; `sort` where the engine does not give them so."""
        job = self._job(view, schema)
        rows = self._rows(job)
        if self._is_by_key:
            number = row_number_name(job.schema)
            return self._by_partition(rows, *order, number, shuffle=True).drop(number)
        return self._by_partition(rows, *order) if sort else rows

    def _rows(self, job: Job) -> DataFrame:
        if self._deployment is None:
            return super()._rows(job)
        if self._has_lives and job.view not in _OF_ALL_LIVES:
            got = f"restarts={self._deployment.restarts!r}"
            want = "run.local(partition).deployed.lives[-1], which has every view, or another life"
            raise NotBuilt(problem("this view is of one life of an application", got, want))
        return self._over_partitions(partial(deployed_rows, job, self.plan, self._deployment), job.schema)

    @property
    def _has_lives(self) -> bool:
        return self._deployment is not None and bool(self._deployment.restarts)

    @property
    def _keeper(self) -> str:
        """What keeps all keys of a partition together, in a buffer or a cache, so that none stands alone; else ""."""
        if self._deployment is not None:
            return repr(self._deployment)
        return "" if self.plan._suppression is None else self.plan._suppression.code()

    # ---- what is counted over all keys

    @cached_property
    def _whole(self) -> SparkRun:
        """This run with a task a partition: what has no values gains nothing by key."""
        return dataclasses.replace(self, _is_by_key=False)

    def _summary(self, view: str, schema: pa.Schema) -> DataFrame:
        return self._whole._rows(self._job(view, schema))

    def _with_key(self, schema: pa.Schema, at: int = 0) -> pa.Schema:
        return schema.insert(at, self._empty.table().schema.field("key"))

    @cached_property
    def _partition_rows(self) -> list[dict[str, int]]:
        """What is known of each partition at its end."""
        with readable_errors():
            rows = self._summary("partitions", PARTITIONS).collect()
        return sorted((row.asDict() for row in rows), key=lambda row: row["partition"])

    def _total(self, name: str) -> int:
        return sum(row[name] for row in self._partition_rows)

    @property
    def _said(self) -> Said:
        """How times are said."""
        return Said(max((row["stream_time_ms"] for row in self._partition_rows), default=0), self.timezone)

    def _shown_here(self, columns: Mapping[str, Any], times: Mapping[str, str] = TIMES) -> DataFrame:
        """Columns of this process as a DataFrame of results."""
        table = arrow_table(columns)
        return self._form.shown(self._frame.sparkSession.createDataFrame(table, spark_schema(table.schema)), times)

    def _replay(self, *, many: bool) -> AbstractContextManager[SparkReplay]:
        """The records, to be tried under other windows; the values are only read where windows look at them."""
        plan = self.plan if not self.plan._complete_windows.takes_null_values else self.plan.count()
        return SparkReplay.over(SparkRun._over(plan, self._given, None), many=many)

    def _totals(self, view: str, names: list[str]) -> dict[str, int]:
        counted = self._counts_by_partition(view).values()
        return {name: sum(each.get(name, 0) for each in counted) for name in names}

    def _counts_by_partition(self, view: str) -> dict[int, dict[str, int]]:
        schema = pa.schema([("partition", pa.int64()), ("name", pa.string()), ("count", pa.int64())])
        with readable_errors():
            rows = self._rows(self._job(view, schema)).groupBy("partition", "name").agg({"count": "sum"}).collect()
        found: dict[int, dict[str, int]] = {}
        for partition, name, count in rows:
            found.setdefault(int(partition), {})[name] = int(count)
        return found

    def _run_here(self, plan: Plan, records: pa.Table) -> Run[pa.Table]:
        if self._deployment is not None:
            return run_deployed(plan, self._deployment, records)
        return plan._run_batch(self._read_here(plan, records), retention_ms=self._retention_ms)

    def _read_here(self, plan: Plan, records: pa.Table) -> RecordBatch:
        with rows_by_place(records, plan.source, plan.source.offset):
            return read_records(records, plan.source, plan._value_columns())

    def _sampled_types(self, names: list[str]) -> dict[str, pa.DataType]:
        outcome = self._run_here(self.plan, self._sample())._outcome
        rows = table_rows(outcome)
        return {name: type_of(name, list(outcome.folds[name].results(rows))) for name in names}

    def _sample(self) -> pa.Table:
        """Some records, in order."""
        source = self.plan.source
        with readable_errors():
            sample = self._frame.limit(SAMPLE_RECORDS).toArrow().rename_columns(list(self._columns))
        return sample.sort_by([(source.partition, "ascending"), (source.offset, "ascending")])

    def _key_order(self) -> list[Column | str]:
        """Order of key bytes: negative integers come last, as in Kafka's stores."""
        whole = pa.types.is_integer(self._empty.table().schema.field("key").type)
        return [column("key") < 0, "key"] if whole else ["key"]

    def _only_partition(self, partition: int | None, what: str) -> int:
        if partition is None and self._extent.first != self._extent.last:
            want = f"partition= a number from {self._extent.first} to {self._extent.last}"
            raise UnknownRecord(problem(f"{what} needs its partition as well", "several partitions", want))
        return self._extent.first if partition is None else partition


@answers_calls("trace", value_of="run")
class SparkTrace:
    """Every decision of a run, as DataFrames."""

    def __init__(self, run: SparkRun) -> None:
        self._run = run

    def schema(self, view: str) -> pa.Schema:
        """The columns of "records", "windows" or "touched"."""
        return getattr(self._run._empty.trace, view)().schema

    def records(self) -> DataFrame:
        """One row per record, in order of partition and offset."""
        return self._run._view("records", self.schema("records"), "offset")

    def windows(self) -> DataFrame:
        """One row per window, in order of partition and window_id (else key and start): bounds, opened_by, status."""
        schema = self.schema("windows")
        order = ["window_id"] if "window_id" in schema.names else [*self._run._key_order(), "window_start_ms"]
        return self._run._view("windows", schema, *order, sort=True)

    def touched(self) -> DataFrame:
        """One row for each time or sliding window that a record met, in order of partition and offset.

        Raises:
            NotBuilt: the plan has session windows, where each record is in one.
        """
        return self._run._view("touched", self.schema("touched"), "offset")

    def where(self, decision: str | None = None, reason: str | None = None) -> DataFrame:
        """The rows of `records()` with this decision ("dropped", "merged", …) or this reason ("late", …)."""
        records = self.records()
        for name, wanted in (("decision", decision), ("reason", reason)):
            records = records if wanted is None else records.where(column(name) == wanted)
        return records

    def __repr__(self) -> str:
        return "SparkTrace: .records() and .windows() are DataFrames"
