"""Names, types and errors between Spark and Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from sessionkit import errors
from sessionkit.errors import SessionkitError, SparkUnavailable, problem
from sessionkit.spark.checkpoint_damage import damage_told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_OTHER_PYTHON = re.compile(r"No module named '(sessionkit|pyarrow|numba|numpy|sortedcontainers)[\w.]*'")
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
        ours = _ours(str(error)) or damage_told(str(error))
        if ours is None:
            raise
        raise ours from None


def _ours(text: str) -> SessionkitError | None:
    """The error of sessionkit that a worker's traceback ends with."""
    if other := _OTHER_PYTHON.search(text):
        want = 'os.environ["PYSPARK_PYTHON"] = sys.executable before Spark starts (on a cluster: install it there)'
        return SparkUnavailable(problem("Spark's workers run a Python that lacks sessionkit", other[0], want))
    found = _OURS.findall(text)
    kind = getattr(errors, found[-1][0], None) if found else None
    return None if kind is None else kind(found[-1][1].strip())


def column(name: str) -> Column:
    """The column of exactly this name; a dot in it is a dot."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


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
