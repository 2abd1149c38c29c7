"""Names, types and errors between Spark and Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sessionkit import errors
from sessionkit.base.result_columns import TIMES, UNLESS_SO_LATE, last_shown_ms, shown_key
from sessionkit.errors import InvalidData, SessionkitError, SparkUnavailable, problem
from sessionkit.spark.checkpoint_damage import damage_told
from sessionkit.spark.environment.worker_python import WANT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_OTHER_PYTHON = re.compile(
    r"No module named '(?:sessionkit|pyspark|pyarrow|pandas|numba|numpy|sortedcontainers)[\w.]*'"
    r"|Python in worker has different version: [\d.]+ than that in driver: [\d.]+"
)
_DATA_ERROR = re.compile(r"(\[[A-Z0-9_.]+\] [^\n]+?)\.? (?:[A-Z][^\n]*)?SQLSTATE: 22")  # such as a failing cast
_OURS = re.compile(r"sessionkit\.errors\.(\w+): (.+)")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Raises the error of a Spark worker as the one-line error that it is, without the stack of the Java around it.

    And what Java says of a checkpoint that is damaged as `StoreCorrupted`, with the file.

    Views are lazy, so an error in the records comes up in whatever starts the job; `metrics()` and all that answers
    at once do this by themselves.

    Example:
        >>> with readable_errors():
        ...     rows = plan.run(spark_df).table().collect()  # doctest: +SKIP
    """
    try:
        yield
    except SessionkitError:
        raise
    except Exception as error:
        refusal = _ours(str(error)) or damage_told(str(error))
        if refusal is None:
            raise
        raise refusal from None


def _ours(text: str) -> SessionkitError | None:
    """The error of sessionkit that a worker's traceback ends with."""
    if other := _OTHER_PYTHON.search(text):
        return SparkUnavailable(problem("Spark's workers run a Python that cannot run sessionkit", other[0], WANT))
    found = _OURS.findall(text)
    kind = getattr(errors, found[-1][0], None) if found else None
    if kind is None and (of_spark := _DATA_ERROR.search(text)):
        want = "values of which the DataFrame's columns can be computed; try_cast and the like give null for others"
        return InvalidData(problem("Spark cannot compute the columns of the records", of_spark[1], want))
    return None if kind is None else kind(found[-1][1].strip())


def column(name: str) -> Column:
    """The column of exactly this name; a dot in it is a dot."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


class SparkForm(NamedTuple):
    """How a DataFrame of results shows its key and its times: `ResultForm` in Spark."""

    keys: tuple[tuple[str, str], ...]  # names and Spark types of the key columns
    sep: str | None
    timezone: str

    def shown(self, df: DataFrame, times: Mapping[str, str] = TIMES) -> DataFrame:
        """The key as its own columns, times as timestamps: the instant, which Spark shows in the session's zone."""
        columns: list[Column] = []
        for name in df.columns:
            if name == "key":
                columns += self._key_columns()
            elif name in times:
                columns.append(shown_timestamp(name, times[name], self.timezone))
            else:
                columns.append(column(name))
        return df.select(*columns)

    def shown_names(self, names: Sequence[str], times: Mapping[str, str] = TIMES) -> list[str]:
        """The names that columns of these names have in `shown`."""
        keys = [shown_key(name) for name, _ in self.keys]
        return [shown for name in names for shown in (keys if name == "key" else [times.get(name, name)])]

    def inside(self, df: DataFrame) -> DataFrame:
        """The frame before `shown`: with the joined key, and times in milliseconds."""
        from pyspark.sql import functions as F

        names = {name: inner for inner, name in TIMES.items()}
        keys = [column(shown_key(name)) for name, _ in self.keys]
        if len(keys) == 1:
            kind = self.keys[0][1]
            key = keys[0].cast("bigint") if kind in _INTEGERS else keys[0]
        else:
            missing = reduce(or_, (each.isNull() for each in keys))
            key = F.when(~missing, F.concat_ws(str(self.sep), *(each.cast("string") for each in keys)))
        others = [name for name in df.columns if name not in {shown_key(name) for name, _ in self.keys}]
        return df.select(
            key.alias("key"),
            *(F.unix_millis(column(name)).alias(names[name]) if name in names else column(name) for name in others),
        )

    def _key_columns(self) -> list[Column]:
        from pyspark.sql import functions as F

        key = column("key")
        if len(self.keys) == 1:
            [(name, kind)] = self.keys
            return [(key.cast(kind) if kind in _INTEGERS else key).alias(shown_key(name))]
        quoted = "\\Q" + str(self.sep).replace("\\E", "\\E\\\\E\\Q") + "\\E"
        parts = F.split(key, quoted, len(self.keys))
        return [parts.getItem(place).cast(kind).alias(shown_key(name)) for place, (name, kind) in enumerate(self.keys)]


def shown_timestamp(name: str, shown: str, timezone: str) -> Column:
    """A column of milliseconds as timestamps, under the name that is shown: the instant, in the session's zone."""
    from pyspark.sql import functions as F

    ms = column(name)
    what = f"{shown} has a time after the year 9999"
    refused = raised("NumberOverflow", what, F.concat(ms.cast("string"), F.lit(" ms")), UNLESS_SO_LATE)
    return F.when(ms > last_shown_ms(timezone), refused).otherwise(F.timestamp_millis(ms)).alias(shown)


def raised(kind: str, what: str, got: Column, want: str) -> Column:
    """Ends the job with our own error of this kind where the column is computed; `readable_errors` knows the form."""
    from pyspark.sql import functions as F

    # in two: Spark shows its plan with errors of any kind, and there it must not look like this one
    begin = F.concat(F.lit("sessionkit.errors"), F.lit(f".{kind}: {what}"))
    return F.raise_error(F.concat(begin, F.lit("; got "), got, F.lit(f"; {want}\n")))


_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def arrow_schema(df: DataFrame, names: Sequence[str]) -> pa.Schema:
    """The columns as workers get them, under these names; without the job that an empty `toArrow()` is."""
    return _to_arrow(df, df.schema, names)


def declared_types(df: DataFrame, types: Mapping[str, str]) -> dict[str, pa.DataType]:
    """The Arrow types of Spark types that are given as text."""
    from pyspark.sql.types import DataType, StructField, StructType

    fields = [StructField(name, DataType.fromDDL(kind)) for name, kind in types.items()]
    return {field.name: field.type for field in _to_arrow(df, StructType(fields), list(types))}


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema in Spark's types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _to_arrow(df: DataFrame, schema: StructType, names: Sequence[str]) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    fields = zip(to_arrow_schema(schema, timezone=zone), names, strict=True)
    return pa.schema([field.with_name(name) for field, name in fields])
