"""Dropped records as an output: each as it came, with how late it was, what closed its window, and what would keep it.

On a stream the record itself travels beside the columns that the plan reads (`RECORD`), as a micro-batch has gone when
its drops are known. In a batch it is looked up in the input, by partition and offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sessionkit.base.result_columns import TIMES
from sessionkit.errors import InvalidArgument, UnsupportedData, problem, shorten
from sessionkit.records.source import Source
from sessionkit.spark import functions as F
from sessionkit.spark.types import arrow_schema, column
from sessionkit.steps.job import RECORD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Beside the columns of `dropped()`; the close time is a time, as the others are.
ADDED = ("lateness_ms", "close_time_ms", "record")
TIMES_OF_DROPPED = {**TIMES, "close_time_ms": "close_time"}
# Facts on a dropped record that go into the headers of a Kafka record; those that are null are left out.
HEADERS = (
    *("reason", "lateness_ms", "close_time_ms", "closed_by", "enough_grace_ms", "window_start_ms", "window_end_ms"),
    *("partition", "offset", "timestamp_ms", "stream_time_ms"),
)
_AS_IN_KAFKA = ("partition", "offset", "timestamp")
# Spark writes milliseconds if nothing else is said.
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def record_as_it_came(df: DataFrame, source: Source) -> Column:
    """The value of each record as it was: one column of `df`, or a struct of those that are its value.

    A column "value" of text or bytes beside "partition", "offset" and "timestamp" is a value that `sk.from_kafka` did
    not take apart. Else the value is all columns but those that a record of Kafka has beside its value: the plan's
    partition and offset, and its key and timestamp where they are named as `sk.from_kafka` names them.
    """
    twice = [name for name, count in Counter(name.lower() for name in df.columns).items() if count > 1]
    if twice:
        want = "a DataFrame whose columns have different names"
        raise InvalidArgument(problem("a dropped record cannot be given as it came", f"two columns {twice[0]!r}", want))
    kinds = dict(df.dtypes)
    if kinds.get("value") in ("string", "binary") and all(name in kinds for name in _AS_IN_KAFKA):
        return column("value")
    beside = {source.partition, source.offset}
    beside |= {"key"} if source.keys == ("key",) else set()
    beside |= {"timestamp"} if source.timestamp == "timestamp" and kinds["timestamp"] == "timestamp" else set()
    names = [name for name in df.columns if name not in beside]
    return F.struct(*map(column, names)) if names else F.lit(None).cast("string")


def with_records(rows: DataFrame, df: DataFrame, source: Source) -> DataFrame:
    """The dropped rows with their records (`RECORD`) from the input."""
    partition, offset = (column(str(name)).cast("bigint") for name in (source.partition, source.offset))
    record = record_as_it_came(df, source).alias(RECORD)
    records = df.select(partition.alias("partition"), offset.alias("offset"), record)
    return rows.join(records, ["partition", "offset"], "left").select(*rows.columns, column(RECORD))


def carrying_records(df: DataFrame, source: Source, read: Sequence[str]) -> tuple[DataFrame, pa.Field]:
    """The columns that a plan reads, as a run has them, and behind them each record as it came; and what that is."""
    from pyspark.errors import PySparkException

    names = [*(f"c{place}" for place in range(len(read))), RECORD]
    frame = df.select(*map(column, read), record_as_it_came(df, source)).toDF(*names)
    try:
        return frame, arrow_schema(frame, names).field(RECORD).with_nullable(True)  # an event that is no drop has none
    except PySparkException as error:
        got, want = shorten(error.getMessage(), 120), "leave its column out before plan.run: df.drop(…)"
        raise UnsupportedData(problem("a dropped record cannot be given as it came", got, want)) from None


def with_closed_by(rows: DataFrame, records: DataFrame) -> DataFrame:
    """The dropped rows with the offset of the record that closed what each late one came too late for.

    A window that lacks so much grace was closed by the first record whose stream time was greater than the stream time
    at the late record less that grace; `records` are those of the trace.
    """
    from pyspark.sql import Window

    past = column("stream_time_ms") - column("missing_grace_ms") + 1  # null where the record was not late
    stair = records.groupBy("partition", column("stream_time_ms").alias("past")).agg(F.min("offset").alias("closed_by"))
    both = rows.withColumn("past", past).unionByName(stair, allowMissingColumns=True)
    # of stream times from the latest down to this one, peers included, the last is the first that had passed
    passed = F.last("closed_by", ignorenulls=True).over(Window.partitionBy("partition").orderBy(F.desc("past")))
    closed_by = F.when(column("reason") == "late", passed)
    return both.select(*rows.columns, closed_by.alias("closed_by")).where(column("reason").isNotNull())


def as_output(rows: DataFrame, close_lag_ms: int) -> DataFrame:
    """The dropped rows with their records as text, and how late they were: `ADDED` in place of `RECORD`."""
    value = _as_value(rows)
    others = [name for name in rows.columns if name not in (RECORD, *ADDED)]
    return with_lateness(rows.select(*map(column, others), value.alias("record")), close_lag_ms)


def with_lateness(rows: DataFrame, close_lag_ms: int) -> DataFrame:
    """The rows with what follows from the stream time at each: how far behind a late one was, and what was closed."""
    is_late, stream_time = column("reason") == "late", column("stream_time_ms")
    lateness, close_time = stream_time - column("timestamp_ms"), stream_time - close_lag_ms
    names = [name for name in rows.columns if name not in ADDED]
    added = [F.when(is_late, lateness).alias(ADDED[0]), F.when(is_late, close_time).alias(ADDED[1]), column(ADDED[2])]
    return rows.select(*map(column, names), *added)


def headers_of(rows: DataFrame) -> Column:
    """The facts on each row as headers of a Kafka record: text in UTF-8, numbers in decimal."""
    headers = [
        F.struct(F.lit(name).alias("key"), F.encode(column(name).cast("string"), "UTF-8").alias("value"))
        for name in HEADERS
        if name in rows.columns
    ]
    return F.filter(F.array(*headers), lambda header: header["value"].isNotNull())


def _as_value(rows: DataFrame) -> Column:
    """The record as a value: text or bytes as they are, a struct as JSON; null where all of the struct is null."""
    from pyspark.sql.types import StructType

    kind = rows.schema[RECORD].dataType
    if not isinstance(kind, StructType):
        return column(RECORD)
    has_value = F.lit(False)
    for name in kind.names:
        has_value = has_value | column(RECORD).getField(name).isNotNull()
    return F.when(has_value, F.to_json(column(RECORD), _JSON))
