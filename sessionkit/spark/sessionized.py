"""The sessions of the rows of a DataFrame: `sk.sessionize` on Spark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sessionkit.base.moments import known_zone
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.plan import Plan
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.spark.environment.worker_python import settle_worker_python
from sessionkit.spark.types import column, shown_timestamp, spark_schema
from sessionkit.spark.worker.sessions_of_rows import sessions_of_rows
from sessionkit.spark.worker.task_wrapper import worker_task
from sessionkit.views.membership.assignment import assigned_names, taken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sessionized(plan: Plan, df: DataFrame, offset: str | None, *, in_order: bool) -> DataFrame:
    """The rows of `df` with the session of each beside them, in no order; nothing runs yet.

    The rows of a key go to one task, which holds them; where they arrive `in_order`, those of a source partition.

    Raises:
        InvalidArgument: they arrive in order, and the columns that say which are not named.
        NotBuilt: a stream.
        SparkUnavailable: the workers would run a Python that cannot run sessionkit.
    """
    source = plan.source
    if df.isStreaming:
        want = "plan.run(stream): a session of a stream is only known in the end"
        raise NotBuilt(problem("sessionize takes rows that are all there", "a streaming DataFrame", want))
    if in_order and (source.partition is None or offset is None):
        want = 'partition="partition", offset="offset", or leave out grace='
        got = f"partition={source.partition!r}, offset={offset!r}"
        raise InvalidArgument(
            problem("with a grace, the order of arrival counts, and rows on Spark have none", got, want)
        )
    settle_worker_python(df.sparkSession)
    check_columns(df.columns, [*source.columns(), *([offset] if offset else [])])
    windows = plan.complete_windows
    names, inner_names = assigned_names(windows), assigned_names(windows, times="ms")
    if clash := [name for name in names if name in df.columns]:
        raise taken(clash[0])
    zone = known_zone(source.timezone or str(df.sparkSession.conf.get("spark.sql.session.timeZone")))
    called = {name: f"c{place}" for place, name in enumerate(df.columns)}  # mapInArrow trips over a dot in a name
    rows = df.toDF(*called.values())
    inside = dataclasses.replace(
        source,
        keys=tuple(called[name] for name in source.keys),
        timestamp=called[source.timestamp],
        timezone=zone,
        partition=None if source.partition is None else called[source.partition],
        offset=None if source.offset is None else called[source.offset],
    )
    together = [inside.partition] if in_order else inside.keys
    tasks = int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    rows = rows.repartition(tasks, *(column(name) for name in together if name))
    order = tuple(called[name] for name in (source.partition, offset) if name)
    task = partial(_task, Plan(inside, windows), order)
    kinds = [*(pa.int64() for _ in inner_names[:-1]), pa.bool_()]
    added = spark_schema(pa.schema(list(zip(inner_names, kinds, strict=True))))
    found = rows.mapInArrow(worker_task(task), type(added)([*rows.schema.fields, *added.fields]))
    shown = [column(inner).alias(name) for name, inner in called.items()]
    for name, inner in zip(names, inner_names, strict=True):
        shown.append(column(inner) if name == inner else shown_timestamp(inner, name, zone))
    return found.select(*shown)


def _task(plan: Plan, order: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return sessions_of_rows(batches, plan, order, context.partitionId())
