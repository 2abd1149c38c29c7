"""Starts the tasks of a batch: how the records of a DataFrame come to the engine, each partition in offset order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sessionkit.errors import InvalidData, problem
from sessionkit.spark.input import SparkInput
from sessionkit.spark.reading.parquet_scan import parquet_scan
from sessionkit.spark.reading.row_groups import NotApart, ParquetFile, RowGroup, Wanted, read, row_groups
from sessionkit.spark.types import arrow_schema, column, readable_errors, spark_schema
from sessionkit.spark.worker import by_key
from sessionkit.spark.worker.shuffle import ORDER, SLICES, by_block, in_order
from sessionkit.spark.worker.task_wrapper import Task, worker_task
from sessionkit.steps.job import Job
from sessionkit.steps.partition_run import run_job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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

    def _how(self) -> str:
        """How the records are read and why, in words; no job is started for it."""
        source = self.plan.source
        layout = self._layout
        way = f"one task a partition ({source.partition}), in order of {source.offset}: "
        if isinstance(layout, str):
            way += f"the rows may lie anywhere in the input, so they are shuffled and sorted first ({layout})"
        else:
            way += (
                f"it reads its row groups ({len(layout):,} in all, one partition each) straight from the Parquet files"
            )
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
        from pyspark.sql import functions as F

        deal = partial(by_key.deal, job, shares=self._shares, first=self._extent.first, width=self._width)
        dealt = self._over_partitions(deal, SLICES)
        dealt = dealt.repartitionById(self._task_count * self._shares, F.col("place"))
        schema = job.schema.append(pa.field(by_key.row_number_name(job.schema), pa.int64()))
        return _mapped(dealt.sortWithinPartitions(*ORDER), partial(by_key.run_dealt, job), schema)

    def _by_partition(self, df: DataFrame, *order: str | Column, shuffle: bool = False) -> DataFrame:
        """`df` in order of partition and then `order`: task i holds the i-th range of partition numbers.

        So the tasks are in order without Spark's own `orderBy`, which would run everything before it twice.
        """
        from pyspark.sql import functions as F

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
            return _mapped(self._packed, lambda batches: task(in_order(batches, place)), schema)
        tasks: list[list[RowGroup]] = [[] for _ in range(self._task_count)]
        for group in layout:
            tasks[(group.partition - self._extent.first) // self._width].append(group)
        wanted = self._wanted

        def reading(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    yield from task(read(tasks[place], wanted))

        return _mapped(self._frame.sparkSession.range(0, len(tasks), 1, len(tasks)), reading, schema)

    @cached_property
    def _packed(self) -> DataFrame:
        """The records in Arrow's own form: rows cost more in a shuffle, and again on their way to Python."""
        from pyspark import TaskContext
        from pyspark.sql import functions as F

        source, first, width = self.plan.source, self._extent.first, self._width
        where, names = self._places, (str(source.partition), str(source.offset))

        def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            yield from by_block(batches, where, names, first, width, context.partitionId())

        packed = _mapped(self._frame, pack, SLICES)
        return packed.repartitionById(self._task_count, F.col("place")).sortWithinPartitions(*ORDER)

    @property
    def _places(self) -> tuple[int, int]:
        return self._place(self.plan.source.partition), self._place(self.plan.source.offset)

    # ---- facts about the input

    @cached_property
    def _wanted(self) -> Wanted:
        """What a task reads."""
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
        from pyspark.sql import functions as F

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
        """How many tasks share a partition by key: together as many as Spark usually has."""
        return max(1, self._most_tasks // self._task_count)


def _mapped(df: DataFrame, task: Task, schema: pa.Schema) -> DataFrame:
    return df.mapInArrow(worker_task(task), spark_schema(schema))
