"""Starts the tasks of a batch: how the records of a DataFrame come to the engine, each partition in offset order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.spark import functions as F
from sessionkit.spark.input import SparkInput
from sessionkit.spark.query.running import cores_at_least, is_chosen
from sessionkit.spark.reading.row_groups import NotApart, ParquetFile, RowGroup, Wanted, read, row_groups
from sessionkit.spark.types import arrow_schema, column, readable_errors, spark_schema
from sessionkit.spark.worker import by_key
from sessionkit.spark.worker.shuffle import ORDER, SLICES, by_block, in_order
from sessionkit.spark.worker.task_wrapper import Task, worker_task
from sessionkit.steps.job import Job
from sessionkit.steps.partition_run import run_job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from sessionkit.deployed.deployment import Deployment

MOST_FILES = 10_000  # their ends are read by this process
# By key: with more shares, dealing a partition out takes longer than what its tasks do; with fewer records in each, a
# task starts longer than it works.
MOST_SHARES, FEWEST_OF_A_SHARE = 32, 100_000
_CATALYST, _SOURCES = "org.apache.spark.sql.catalyst.", "org.apache.spark.sql.execution.datasources."
# Options that say which files are read, or nothing of their content.
_OPTIONS = {"path", "paths", "basepath", "mergeschema", "pathglobfilter", "recursivefilelookup", "modifiedbefore"}
# Settings under which Spark does not hand over what a file holds.
_SETTINGS = {
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
}


def parquet_scan(frame: DataFrame, partition: int) -> tuple[list[ParquetFile], tuple[str, ...]]:
    """The files of which `frame` is some columns, and what they call those; else `NotApart`, with what is in the way.

    Whatever is not known to be such a scan is none: a filter, a limit, a join, a table of a catalog, a cached frame,
    a format that is built on Parquet. `partition` is the place of the column that names the source partition.
    """
    if not hasattr(frame, "_jdf"):
        raise NotApart("Spark Connect does not show its plan")
    from py4j.protocol import Py4JError

    for name, wanted in _SETTINGS.items():
        if str(frame.sparkSession.conf.get(name, wanted)).lower() != wanted.lower():
            raise NotApart(f"{name} is set")
    try:
        return _scan(frame, partition)
    except (Py4JError, AttributeError, TypeError) as error:
        raise NotApart(f"Spark's plan is not understood: {shorten(error, 80)}") from error


def _scan(frame: Any, partition: int) -> tuple[list[ParquetFile], tuple[str, ...]]:
    project = frame._jdf.queryExecution().optimizedPlan()
    _is(project, _CATALYST + "plans.logical.Project")
    names = tuple(_column_of(project.projectList().apply(i)) for i in range(project.projectList().size()))
    scan = project.child()
    _is(scan, _SOURCES + "LogicalRelation")
    relation = scan.relation()
    _is(relation, _SOURCES + "HadoopFsRelation")
    _is(relation.fileFormat(), _SOURCES + "parquet.ParquetFileFormat")
    _is(relation.location(), _SOURCES + "InMemoryFileIndex")
    options = relation.options().keys().mkString("\n").splitlines()
    if unknown := {option.lower() for option in options} - _OPTIONS:
        raise NotApart(f"the files are read with option {shorten(sorted(unknown)[0])!r}")
    folders = list(relation.partitionSchema().fieldNames())
    if set(folders) & set(names) - {names[partition]}:
        raise NotApart("a column other than the partition is the name of a folder")
    in_folder = folders.index(names[partition]) if names[partition] in folders else None
    if in_folder is not None and relation.partitionSchema().apply(in_folder).dataType().typeName() != "integer":
        raise NotApart("the names of the folders are not numbers of partitions")
    return _files(frame, relation.location(), in_folder), names


def _is(node: Any, name: str) -> None:
    found = str(node.getClass().getName())
    if found != name:
        raise NotApart(f"the DataFrame is more than a scan of Parquet files ({found.rsplit('.', 1)[-1]})")


def _column_of(expression: Any) -> str:
    """The column of the files that an output column is, unchanged."""
    _is(expression, _CATALYST + "expressions.Alias")
    _is(expression.child(), _CATALYST + "expressions.AttributeReference")
    return str(expression.child().name())


def _files(frame: Any, location: Any, in_folder: int | None) -> list[ParquetFile]:
    none = frame.sparkSession._jvm.PythonUtils.toSeq([])
    folders = location.listFiles(none, none)
    files: list[ParquetFile] = []
    for i in range(folders.size()):
        folder = folders.apply(i)
        number = None
        if in_folder is not None:
            if folder.values().isNullAt(in_folder):
                raise NotApart("a folder stands for no partition")
            number = int(folder.values().getInt(in_folder))
        if len(files) + folder.files().size() > MOST_FILES:
            raise NotApart(f"there are more than {MOST_FILES:,} files")
        for j in range(folder.files().size()):
            status = folder.files().apply(j)
            uri = status.getPath().toUri()
            if uri.getScheme() != "file":
                raise NotApart(f"files at {shorten(uri.getScheme())}: are read by Spark")
            files.append(ParquetFile(str(uri.getPath()), int(status.getLen()), number))
    return files


class Extent(NamedTuple):
    """How many records there are, in partitions from which number to which."""

    records: int
    first: int
    last: int


@dataclass(frozen=True, repr=False)
class SparkReading(SparkInput):
    """A plan over a DataFrame, and the ways that its records can take.

    Read: where the input is Parquet files whose row groups hold one partition each, the tasks read them themselves.
    Shuffled: any other input is sent through a shuffle by partition first.
    By key: either is then dealt out by key, so that several tasks share a partition.
    """

    _is_by_key: bool = False
    _deployment: Deployment | None = None

    def _how(self) -> str:
        """How the records are read and why, in words; no job is started for it."""
        source = self.plan.source
        layout = self._layout
        way = f"one task a partition ({source.partition}), in order of {source.offset}: "
        if isinstance(layout, str):
            way += f"the rows may lie anywhere in the input, so they are shuffled and sorted first ({layout})"
        else:
            groups = f"its row groups ({len(layout):,} in all, one partition each)"
            way += f"it reads {groups} straight from the Parquet files"
        if self._is_by_key:
            way += "; it finds stream time and deals the records out by key to the tasks that run the windows"
        return way

    # ---- the ways

    def _rows(self, job: Job) -> DataFrame:
        """What the job makes of the records: in order of partition, and in a partition as the engine gives it.

        By key they are in no order, and have a running number as their last column.
        """
        if not self._is_by_key:
            return self._over_partitions(partial(run_job, job), job.schema)
        deal = partial(by_key.deal, job, shares=self._shares, first=self._extent.first, width=self._width)
        dealt = self._over_partitions(deal, SLICES)
        dealt = dealt.repartitionById(self._task_count * self._shares, F.col("place"))
        schema = job.schema.append(pa.field(by_key.row_number_name(job.schema), pa.int64()))
        return mapped(dealt.sortWithinPartitions(*ORDER), partial(by_key.run_dealt, job), schema)

    def _by_partition(self, df: DataFrame, *order: str | Column, shuffle: bool = False) -> DataFrame:
        """`df` in order of partition and then `order`: task i holds the i-th range of partition numbers.

        So the tasks are in order without Spark's own `orderBy`, which would run everything before it twice.
        """
        number = column("partition")
        if shuffle:
            place = F.floor((number - self._extent.first) / self._width).cast("int")
            df = df.repartitionById(self._task_count, place)
        # a sort by one number alone is several times as fast, and a task of one partition needs no other
        return df.sortWithinPartitions(*(order if self._width == 1 else (number, *order)))

    def _over_partitions(self, task: Task, schema: pa.Schema) -> DataFrame:
        """What `task` makes of the records, which it gets partition after partition in offset order."""
        layout = self._layout
        if isinstance(layout, str):
            place = self._places[1]
            return mapped(self._packed, lambda batches: task(in_order(batches, place)), schema)
        tasks: list[list[RowGroup]] = [[] for _ in range(self._task_count)]
        for group in layout:
            tasks[(group.partition - self._extent.first) // self._width].append(group)
        wanted = self._wanted

        def reading(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    yield from task(read(tasks[place], wanted))

        return mapped(self._frame.sparkSession.range(0, len(tasks), 1, len(tasks)), reading, schema)

    @cached_property
    def _packed(self) -> DataFrame:
        """The records in Arrow's own form: rows cost more in a shuffle, and again on their way to Python."""
        from pyspark import TaskContext

        source, first, width = self.plan.source, self._extent.first, self._width
        where, names = self._places, (str(source.partition), str(source.offset))

        def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            yield from by_block(batches, where, names, first, width, context.partitionId())

        packed = mapped(self._frame, pack, SLICES)
        return packed.repartitionById(self._task_count, F.col("place")).sortWithinPartitions(*ORDER)

    @property
    def _places(self) -> tuple[int, int]:
        return self._place(self.plan.source.partition), self._place(self.plan.source.offset)

    # ---- facts about the input

    @cached_property
    def _wanted(self) -> Wanted:
        names = tuple(f"c{place}" for place in range(len(self._columns)))
        schema = arrow_schema(self._frame, names)
        return Wanted(self._scan[1], schema, *self._places)

    @cached_property
    def _scan(self) -> tuple[list[ParquetFile], tuple[str, ...]]:
        return parquet_scan(self._frame, self._place(self.plan.source.partition))

    @cached_property
    def _layout(self) -> list[RowGroup] | str:
        """The row groups that tasks can read themselves, or why they cannot."""
        try:
            return row_groups(self._scan[0], self._wanted)
        except NotApart as reason:
            return str(reason)

    @cached_property
    def _extent(self) -> Extent:
        layout = self._layout
        if isinstance(layout, str):
            return self._counted()
        if not layout:
            return Extent(0, 0, 0)
        return Extent(sum(group.rows for group in layout), layout[0].partition, layout[-1].partition)

    def _counted(self) -> Extent:
        """The number of records and the range of partitions, by one cheap job over one column."""
        name = str(self.plan.source.partition)
        number = self._input(name)
        with readable_errors():
            row = self._frame.agg(F.count(F.lit(1)), F.count(number), F.min(number), F.max(number)).collect()[0]
        records, present, first, last = (int(value or 0) for value in row)
        if present < records:
            want = "a partition and an offset for every record"
            raise InvalidData(problem(f"partition column {name!r} has missing values", f"{records - present:,}", want))
        if first < 0:
            raise InvalidData(problem("a partition number must be 0 or more", first, "Kafka counts from 0"))
        return Extent(records, first, last)

    @cached_property
    def _most_tasks(self) -> int:
        return max(1, int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))

    @cached_property
    def _width(self) -> int:
        """How many partition numbers share a task: 1, unless there are more than Spark's usual number of tasks."""
        return -(-(self._extent.last - self._extent.first + 1) // self._most_tasks)

    @property
    def _task_count(self) -> int:
        return -(-(self._extent.last - self._extent.first + 1) // self._width)

    @property
    def _shares(self) -> int:
        """How many tasks share a partition by key: together as many as the user told Spark, if any."""
        spark = self._frame.sparkSession
        if is_chosen(spark):
            return max(1, self._most_tasks // self._task_count)
        return shares_for(cores_at_least(spark), self._extent.records // self._task_count)


def shares_for(cores: int, records: int) -> int:
    """How many tasks share a partition by key: two a core, so that one with nearly all records keeps all cores busy.

    Keys with many records then delay few of them. `records` are those of a partition, on average.
    """
    return max(1, min(2 * cores, MOST_SHARES, records // FEWEST_OF_A_SHARE))


def mapped(df: DataFrame, task: Task, schema: pa.Schema) -> DataFrame:
    """What the task makes of the rows in Spark's workers, with these columns."""
    return df.mapInArrow(worker_task(task), spark_schema(schema))
