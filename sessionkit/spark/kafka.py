"""Between Kafka and Spark: records of a topic as columns, and a run's changelog as records with windowed keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sessionkit.errors import InvalidArgument, MissingColumn, UnsupportedData, problem
from sessionkit.records.batch import is_spark_frame
from sessionkit.records.partitioner import partition_of_keys
from sessionkit.spark.types import column, raised
from sessionkit.windows.session import SessionWindows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_SOURCE = ("key", "value", "partition", "offset", "timestamp")
_PLACES = ("partition", "offset", "timestamp")  # of a record itself, whatever is in it
_CORRUPT = "sessionkit corrupt record"


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
    # in two steps, so that a record is parsed once and not once a field
    read = df.select(
        _read("key", key).alias("key"), _read("value", value).alias("value"), *[column(name) for name in _PLACES]
    )
    parts = [
        column(name).getField(field).alias(field) if field else column(name)
        for name in fields
        for field in fields[name]
    ]
    return read.select(*parts, *[column(name) for name in _PLACES])


def to_kafka(run: Any, *, partitions: int, changelog: DataFrame | None = None) -> DataFrame:
    """A run's changelog as records for `format("kafka")`, as Kafka Streams writes the same table to a topic.

    The key is that of Kafka's SessionWindowedSerializer (key, end, start) or TimeWindowedSerializer (key, start), the
    value JSON of the results; null for a tombstone, and where all results are null. `partition` is where a topic with
    this many partitions has the key without its window. Spark's sink sets no timestamps: they are the times of writing.

    Args:
        run: a run over a Spark DataFrame, streaming or not.
        partitions: how many partitions the output topic has.
        changelog: only these rows of the run's changelog, such as a micro-batch in `foreachBatch`.
    Raises:
        InvalidArgument: `run` is not on Spark, or `partitions` is less than 1.
    Source:
        SessionKeySchema.toBinary, TimeWindowedSerializer, WindowedStreamPartitioner.
    Example:
        >>> results = sk.to_kafka(run, partitions=4)  # doctest: +SKIP
        >>> query = results.writeStream.format("kafka").options(**options).start()  # doctest: +SKIP
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import arrow_udf

    from sessionkit.spark.batch_run import SparkRun, StreamRun

    if not isinstance(run, SparkRun | StreamRun):
        want = "plan.run(a Spark DataFrame)"
        raise InvalidArgument(problem("to_kafka writes a run on Spark", type(run).__name__, want))
    if type(partitions) is not int or partitions < 1:
        raise InvalidArgument(problem("partitions must be an integer of 1 or more", repr(partitions), "such as 4"))
    rows = run.changelog() if changelog is None else changelog
    rows = rows if run.form is None else run.form.inside(rows)
    key = _key_bytes(column("key"), dict(rows.dtypes)["key"])
    names = ["window_start_ms"]
    if isinstance(run.plan.windows, SessionWindows):
        names = ["window_end_ms", *names]
    results = [column(name) for name, _ in run.plan.aggregations]
    has_value = F.lit(False)
    for result in results:
        has_value = has_value | result.isNotNull()

    def places(keys: pa.Array) -> pa.Array:
        coded = keys.dictionary_encode()
        return pa.array(partition_of_keys(coded.dictionary, partitions)).take(coded.indices)

    return rows.select(
        F.concat(key, *[_long_bytes(column(name)) for name in names]).alias("key"),
        F.when(has_value, F.to_json(F.struct(*results), {"ignoreNullFields": "false"})).alias("value"),
        arrow_udf(places, "int")(key).alias("partition"),  # type: ignore[call-overload]
    )


def _fields(df: DataFrame, name: str, form: str) -> list[str]:
    """The fields of the JSON in the key or the value; one without a name where it is taken as it is."""
    kind = dict(df.dtypes)[name]
    if kind != "binary":
        want = 'binary, as format("kafka") loads it'
        raise UnsupportedData(problem(f"column {name!r} of records of Kafka must be binary", kind, want))
    return [""] if form in ("string", "bytes") else _schema(name, form).names


def _read(name: str, form: str) -> Column:
    """The key or the value: bytes, text, or a struct."""
    from pyspark.sql import functions as F

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
    """Raises for the row, with its place."""
    from pyspark.sql import functions as F

    place = F.format_string("offset %d of partition %d", column("offset"), column("partition"))
    how = f"{want}; to go on without the record, leave it out before from_kafka: df.where(…)"
    return raised("InvalidData", f"the {name} of a record of Kafka cannot be read", place, how)


def _schema(name: str, form: str) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    want = '"string", "bytes", or fields of JSON such as "minutes bigint, at timestamp"'
    try:
        schema = StructType.fromDDL(form)
    except PySparkException:
        schema = None
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
    from pyspark.sql import functions as F

    if kind == "binary":
        return key
    return _long_bytes(key) if kind == "bigint" else F.encode(key, "UTF-8")


def _long_bytes(number: Column) -> Column:
    """8 bytes, the highest first."""
    from pyspark.sql import functions as F

    return F.unhex(F.lpad(F.hex(number), 16, "0"))
