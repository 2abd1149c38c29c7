"""Runs a plan on Spark: the same engine in every task, one source partition after another, in offset order."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.engine.chosen_keys import named_keys, picked_records
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, UnknownRecord, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.row_names import rows_by_place
from sessionkit.run import Run
from sessionkit.spark.dropped import TIMES_OF_DROPPED, as_output, with_closed_by, with_records
from sessionkit.spark.input import check_built
from sessionkit.spark.reading.tasks import SparkReading, mapped
from sessionkit.spark.replay import SparkReplay
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.types import arrow_schema, column, readable_errors, spark_schema
from sessionkit.spark.worker.by_key import PLACE, add_missing_grace, choose, row_number_name
from sessionkit.steps.job import type_of
from sessionkit.views.explain.record import Explanation
from sessionkit.views.kafka_metrics import Level, kafka_metrics_of_counts
from sessionkit.views.tables import table_rows
from sessionkit.windows.contract import SessionKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sessionkit.views.drawing.palettes import Figure

__all__ = ["SparkRun", "SparkTrace", "StreamRun", "readable_errors", "start", "start_stream"]
LOCAL_RECORDS = 5_000_000  # what one process is asked to hold, to explain and to draw
# How Spark hands rows to Python. It weighs its batch after every row, in Spark 4.2, unless bytes have no limit: without
# it a run takes about 60 % of the time, and a batch is limited by its number of rows.
BATCH_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
SAMPLE_RECORDS = 1_000  # records that show the type which a Python function returns


def start(plan: Plan, df: Any, deployment: object, store: object, retention: Duration | None) -> SparkRun:
    """The run of a plan over a DataFrame that is no stream; nothing runs yet.

    Raises:
        InvalidArgument: the plan does not name a partition and an offset column, or the DataFrame is a stream.
        NotBuilt: a deployment, a store, a suppress that counts bytes, or idle partitions.
        SparkUnavailable: the workers would run a Python that cannot run sessionkit.
    """
    check_built(plan, df, deployment, store)
    if df.isStreaming:
        got = "a streaming DataFrame"
        raise InvalidArgument(problem("run takes records that are all there", got, "plan.stream(df)"))
    if plan._suppression is not None and plan._suppression.most_bytes is not None:
        want = "max_records=, or run.local(partition), which counts them"
        raise NotBuilt(problem("a run on Spark does not count the bytes of suppress", plan._suppression.code(), want))
    return SparkRun._over(plan, df, retention)


def start_stream(plan: Plan, df: Any, retention: Duration | None) -> StreamRun:
    """The run of a plan over a streaming DataFrame, with the errors of `Plan.stream`; nothing runs yet."""
    check_built(plan, df)
    if not df.isStreaming:
        got = "one whose rows are all there"
        raise InvalidArgument(problem("stream takes a streaming DataFrame", got, "plan.run(df)"))
    if plan._suppression is not None:
        want = '.emit("on_window_close") in its place; or a DataFrame that is no stream'
        raise NotBuilt(problem("a stream does not keep what suppress holds back yet", plan._suppression.code(), want))
    return StreamRun._over(plan, df, retention)


@answers_calls("run", elsewhere=(Run, 'run.of("ada")'))
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
        >>> run.local(), run.of("ada"), run.of("ada", partition=0)  # doctest: +SKIP
    """

    def by_key(self) -> SparkRun:
        """The run with the records of a partition distributed by key over several tasks; its results are the same.

        It has spark.sql.shuffle.partitions tasks, which helps when Python functions aggregate and there are more cores
        than partitions.

        Raises:
            InvalidArgument: the plan has suppress, whose buffer holds all keys of a partition.
        Example:
            >>> plan.run(spark.read.parquet("clicks")).by_key().table()  # doctest: +SKIP
        """
        if self.plan._suppression is not None:
            want = "the run as it is: the results of all keys of a partition move its clock"
            raise InvalidArgument(problem("suppress does not run by key", self.plan._suppression.code(), want))
        return dataclasses.replace(self, _is_by_key=True)

    # ---- views

    def table(self) -> DataFrame:
        """One row per window, ordered by partition, key bytes and start; a window that nothing has closed is "open"."""
        schema = self._empty.table().schema
        return self._form.shown(self._view("table", schema, *self._key_order(), "window_start_ms", sort=True))

    def changelog(self) -> DataFrame:
        """What goes downstream, in order of the records that caused it, partition after partition."""
        final = self.plan._strategy == "on_window_close"
        order = ["offset", "window_end_ms", *self._key_order()] if final else ["offset"]
        return self._form.shown(self._view("changelog", self._empty.changelog().schema, *order))

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
        return self._totals("metrics", list(self._empty.metrics()))

    def kafka_metrics(self, *, level: Level = "info") -> DataFrame:
        """What Kafka Streams would count of this run, by partition, in the columns of `Run.kafka_metrics`.

        Rates and latencies are null: a run on Spark has no clock; how late records are is left out. Starts a job.
        """
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
        if partition not in self._locals:
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
            order = [(source.partition, "ascending"), (source.offset, "ascending")]
            self._locals.clear()  # one at a time is held
            self._locals[partition] = self._run_here(self._zoned_plan, records.sort_by(order))
        return self._locals[partition]

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
        if self.plan._suppression is not None:
            want = "run.local(partition), which has all keys of a partition"
            raise InvalidArgument(problem("the buffer of suppress holds all keys", self.plan._suppression.code(), want))
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

    @called_as("run.explain(offset=13, partition=0)")
    def explain(self, *, offset: int, partition: int | None = None) -> Explanation:
        """Why the record at `offset` opened, joined, bridged or was dropped, in words. Collects its partition.

        Raises:
            UnknownRecord: it is not in this run, or there are several partitions and none is named.
        """
        number = self._only_partition(partition, f"offset {offset}")
        return self.local(number).explain(offset=offset, partition=number)

    @called_as('run.plane("ada", partition=0)', hands_on_to=Run.plane)
    def plane(self, key: Any = None, *, partition: int | None = None, **options: Any) -> Figure:
        """The history of one key of one partition; without a key the whole partition is collected for it."""
        number = self._only_partition(partition, "a key")
        run = self.local(number) if key is None else self.of(key, partition=number)
        return run.plane(key, **options)

    @called_as("run.lanes(partition=0)", hands_on_to=Run.lanes)
    def lanes(self, *, partition: int | None = None, **options: Any) -> Figure:
        """The sessions of many keys of one partition, which is collected for it."""
        return self.local(self._only_partition(partition, "a picture")).lanes(**options)

    def most_eventful_key(self, *, partition: int | None = None) -> Any:
        """The key with most drops, merges and rescues of one partition, which is collected for it."""
        return self.local(self._only_partition(partition, "a key")).most_eventful_key()

    # ---- to look at

    def summary(self) -> str:
        """What will run and how, in a line; no job is started for it."""
        windows = self.plan._complete_windows
        return f"{windows.noun}s on Spark · {windows.in_words()} · {self._how()}"

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
        return plan._run_batch(self._read_here(plan, records), retention_ms=self._retention_ms)

    def _read_here(self, plan: Plan, records: pa.Table) -> RecordBatch:
        with rows_by_place(records, plan.source, plan.source.offset):
            return read_records(records, plan.source, plan._value_columns())

    def _sampled_types(self, names: list[str]) -> dict[str, pa.DataType]:
        source = self.plan.source
        with readable_errors():
            sample = self._frame.limit(SAMPLE_RECORDS).toArrow().rename_columns(list(self._columns))
        sample = sample.sort_by([(source.partition, "ascending"), (source.offset, "ascending")])
        outcome = self._run_here(self.plan, sample)._outcome
        rows = table_rows(outcome)
        return {name: type_of(name, list(outcome.folds[name].results(rows))) for name in names}

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
