"""Between Kafka and Spark: records of a topic as columns, and what a run sends or drops as records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from sessionkit.base.calls import called_as
from sessionkit.errors import InvalidArgument, MissingColumn, UnsupportedData, attempted, problem
from sessionkit.records.batch import is_spark_frame
from sessionkit.records.places import partition_of_keys
from sessionkit.spark import functions as F
from sessionkit.spark.dropped import headers_of, with_lateness
from sessionkit.spark.types import column, raised

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from sessionkit.spark.batch_run import SparkRun, StreamRun

_SOURCE = ("key", "value", "partition", "offset", "timestamp")
_PLACES = ("partition", "offset", "timestamp")  # of a record itself, whatever is in it
_CORRUPT = "sessionkit corrupt record"


@called_as('sk.from_kafka(loaded, value="amount double")')
def from_kafka(df: Any, *, value: str, key: str = "string") -> DataFrame:
    """The records of a topic as columns: the key, what is in the value, and the record's partition, offset, timestamp.

    A key or value in JSON gives a column for each field of its schema. A field that a record lacks is null, as are all
    fields of a record without a value. What is not UTF-8, or not JSON of the schema, stops the query as soon as a
    column of it is read, with the record's place: nothing is lost silently.

    Args:
        df: what `format("kafka")` loads, as a stream or in a batch.
        key: "string" or "bytes" gives a column "key"; else the schema of its JSON, as for `value`.
        value: "string" or "bytes" gives a column "value"; else the schema of its JSON in Spark's DDL, such as
            "minutes bigint, at timestamp".
    Raises:
        UnsupportedData: `df` is not a Spark DataFrame, or its key or value is not bytes.
        MissingColumn: it is not what `format("kafka")` loads.
        InvalidArgument: a schema that Spark does not know, or two columns of one name.
        InvalidData: from the query, with the record that cannot be read.
    Source:
        Kafka's LogAndFailExceptionHandler, the default of Kafka Streams, stops as well.
    Example:
        >>> records = sk.from_kafka(
        ...     spark.readStream.format("kafka").options(**options).load(), value="amount double"
        ... )  # doctest: +SKIP
    """
    if not is_spark_frame(df):
        want = 'spark.readStream.format("kafka")…load()'
        raise UnsupportedData(problem("these are not records of Kafka on Spark", type(df).__name__, want))
    for name in _SOURCE:
        if name not in df.columns:
            want = 'what spark.readStream.format("kafka")…load() gives, with all its columns'
            raise MissingColumn(problem(f"records of Kafka must have a column {name!r}", df.columns, want))
    fields = {"key": _fields(df, "key", key), "value": _fields(df, "value", value)}
    _check_names([field or name for name in fields for field in fields[name]] + list(_PLACES))
    places = [column(name) for name in _PLACES]
    # in two steps, so that a record is parsed once and not once a field
    read = df.select(_read("key", key).alias("key"), _read("value", value).alias("value"), *places)
    parts = [
        column(name).getField(field).alias(field) if field else column(name)
        for name in fields
        for field in fields[name]
    ]
    return read.select(*parts, *places)


@called_as("sk.to_kafka(run, partitions=4)")
def to_kafka(
    run: Any,
    *,
    rows: Literal["changelog", "dropped"] = "changelog",
    partitions: int | None = None,
    changelog: DataFrame | None = None,
    dropped: DataFrame | None = None,
) -> DataFrame:
    """A run's changelog, or its dropped records, as records for `format("kafka")`.

    The changelog is what Kafka Streams writes of the same table to a topic. The key is that of Kafka's
    SessionWindowedSerializer (key, end, start) or TimeWindowedSerializer (key, start), the value JSON of the results;
    null for a tombstone, and where all results are null. `partition` is where a topic with this many partitions has
    the key without its window. Spark's sink sets no timestamps: they are the times of writing.

    A dropped record has its key, and as its value what it came with: text and bytes of `sk.from_kafka` as they were,
    else JSON of its columns, all those of the DataFrame. Its headers are text: `reason`, `partition` and `offset`,
    `timestamp_ms` and `stream_time_ms`; of a late one also `lateness_ms` (how far stream time was ahead of it),
    `close_time_ms` (windows that ended before were closed), `closed_by` (the offset of the record that closed its
    window) and `enough_grace_ms` (the least grace that would have kept it). On a stream the last two are absent, but
    for the grace of time and sliding windows. These have a record for each window that was missed, with
    `window_start_ms` and `window_end_ms`. The column `timestamp` is for other sinks than Spark's.

    Args:
        run: a run over a Spark DataFrame, streaming or not.
        rows: "changelog" or "dropped".
        partitions: how many partitions the output topic has. Dropped records need it only where the sink is to have a
            column `partition`; without it Kafka's own partitioner puts them to the same place.
        changelog: only these rows of the run's changelog, such as a micro-batch in `foreachBatch`.
        dropped: only these rows of `run.dropped(records=True)`, such as a micro-batch of `run.write(dropped=…)`.
    Raises:
        InvalidArgument: `run` is not on Spark, `partitions` is less than 1, or rows are given of a view that is not
            asked for.
        MissingColumn: `dropped` has no records.
    Source:
        SessionKeySchema.toBinary, TimeWindowedSerializer, WindowedStreamPartitioner; PartitionGroup's record-lateness.
    Example:
        >>> results = sk.to_kafka(run, partitions=4)  # doctest: +SKIP
        >>> query = results.writeStream.format("kafka").options(**options).start()  # doctest: +SKIP
        >>> late = sk.to_kafka(run, rows="dropped")  # doctest: +SKIP
    """
    from sessionkit.spark.batch_run import SparkRun, StreamRun

    if not isinstance(run, SparkRun | StreamRun):
        want = "plan.run(a Spark DataFrame)"
        raise InvalidArgument(problem("to_kafka writes a run on Spark", type(run).__name__, want))
    _check_rows(rows, changelog, dropped)
    if (partitions is not None or rows == "changelog") and (type(partitions) is not int or partitions < 1):
        raise InvalidArgument(problem("partitions must be an integer of 1 or more", repr(partitions), "such as 4"))
    if rows == "dropped":
        return _dropped_records(run, partitions, dropped)
    assert partitions is not None
    return _changelog_records(run, partitions, changelog)


def _check_rows(rows: str, changelog: DataFrame | None, dropped: DataFrame | None) -> None:
    if rows not in ("changelog", "dropped"):
        raise InvalidArgument(problem("rows must be a view of the run", repr(rows), '"changelog" or "dropped"'))
    other = "dropped" if rows == "changelog" else "changelog"
    if {"changelog": changelog, "dropped": dropped}[other] is not None:
        want = f'rows="{other}", or {rows}= with rows of that view'
        raise InvalidArgument(problem(f"{other}= goes with the rows of that view", f'rows="{rows}"', want))


def _changelog_records(run: SparkRun | StreamRun, partitions: int, changelog: DataFrame | None) -> DataFrame:
    rows = run._form.inside(run.changelog() if changelog is None else changelog)
    key = _key_bytes(column("key"), dict(rows.dtypes)["key"])
    names = ["window_start_ms"]
    if run.plan._complete_windows.holds == "sessions":
        names = ["window_end_ms", *names]
    results = [column(name) for name, _ in run.plan._aggregations]
    has_value = F.lit(False)
    for result in results:
        has_value = has_value | result.isNotNull()

    return rows.select(
        F.concat(key, *[_long_bytes(column(name)) for name in names]).alias("key"),
        F.when(has_value, F.to_json(F.struct(*results), {"ignoreNullFields": "false"})).alias("value"),
        _partition(key, partitions),
    )


def _dropped_records(run: SparkRun | StreamRun, partitions: int | None, dropped: DataFrame | None) -> DataFrame:
    if dropped is None:
        rows = run._dropped_records()
    else:
        if "record" not in dropped.columns:
            want = "rows of run.dropped(records=True), or what run.write(dropped=…) hands over"
            raise MissingColumn(problem("dropped= must have a column 'record'", dropped.columns, want))
        rows = with_lateness(run._form.inside(dropped), run.plan._complete_windows.close_lag_ms)
    key = _key_bytes(column("key"), dict(rows.dtypes)["key"])
    return rows.select(
        key.alias("key"),
        column("record").alias("value"),
        *([] if partitions is None else [_partition(key, partitions)]),
        F.timestamp_millis(column("timestamp_ms")).alias("timestamp"),
        headers_of(rows).alias("headers"),
    )


def _partition(key: Column, partitions: int) -> Column:
    """The partition of each key in a topic with `partitions` partitions; null where there is no key."""
    from pyspark.sql.pandas.functions import arrow_udf

    def places(keys: pa.Array) -> pa.Array:
        coded = keys.dictionary_encode()
        return pa.array(partition_of_keys(coded.dictionary, partitions)).take(coded.indices)

    return arrow_udf(places, "int")(key).alias("partition")  # type: ignore[call-overload]


def _fields(df: DataFrame, name: str, form: str) -> list[str]:
    """The fields of the JSON in the key or the value; one without a name where it is taken as it is."""
    kind = dict(df.dtypes)[name]
    if kind != "binary":
        want = 'binary, as format("kafka") loads it'
        raise UnsupportedData(problem(f"column {name!r} of records of Kafka must be binary", kind, want))
    return [""] if form in ("string", "bytes") else _schema(name, form).names


def _read(name: str, form: str) -> Column:
    """The key or the value: bytes, text, or a struct."""
    data = column(name)
    if form == "bytes":
        return data
    text = data.cast("string")
    is_right = data.isNull() | F.is_valid_utf8(text)
    if form == "string":
        return F.when(is_right, text).otherwise(_refusal(name, "text in UTF-8"))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(text, f"{form}, `{_CORRUPT}` string", options)
    # from_json reads the first object of several and is content
    is_one = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    is_read = data.isNull() | (parsed.isNotNull() & parsed.getField(_CORRUPT).isNull() & is_one)
    return F.when(is_right & is_read, parsed).otherwise(_refusal(name, f"a JSON object of {form}"))


def _refusal(name: str, want: str) -> Column:
    """A column that raises an error with the place of the row."""
    place = F.format_string("offset %d of partition %d", column("offset"), column("partition"))
    how = f"{want}; to go on without the record, leave it out before from_kafka: df.where(…)"
    return raised("InvalidData", f"the {name} of a record of Kafka cannot be read", place, how)


def _schema(name: str, form: str) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    want = '"string", "bytes", or fields of JSON such as "minutes bigint, at timestamp"'
    schema = attempted(StructType.fromDDL, form, but=PySparkException)
    if not isinstance(schema, StructType) or not schema.fields:
        raise InvalidArgument(problem(f"{name}= must say how to read the {name}", repr(form), want))
    return schema


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:  # Spark's names of columns know no case
            want = 'use other names in the JSON; or value="string", then from_json with names of your own'
            raise InvalidArgument(problem("two columns of a record of Kafka have the same name", repr(name), want))
        seen.add(name.lower())


def _key_bytes(key: Column, kind: str) -> Column:
    """A column of keys as the bytes that Kafka's serializers write: `sessionkit.records.keys.key_bytes` in Spark."""
    if kind == "binary":
        return key
    return _long_bytes(key) if kind == "bigint" else F.encode(key, "UTF-8")


def _long_bytes(number: Column) -> Column:
    """An integer as 8 bytes, the highest first."""
    return F.unhex(F.lpad(F.hex(number), 16, "0"))
