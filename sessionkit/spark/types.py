"""Names, types and errors between Spark and Arrow, and what is damaged in a checkpoint on this machine."""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from sessionkit import errors
from sessionkit.base.result_columns import TIMES, UNLESS_SO_LATE, last_shown_ms, shown_key
from sessionkit.base.text import OF_ALL
from sessionkit.errors import InvalidData, SessionkitError, SparkUnavailable, StoreCorrupted, problem, shorten
from sessionkit.spark import functions as F
from sessionkit.spark.environment.worker_python import WANT
from sessionkit.spark.job_progress import job_progress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_LOST = re.compile(r"CANNOT_LOAD_STATE_STORE|ChecksumException|FAILED_TO_READ_(OPERATOR_METADATA|STATE_SCHEMA)")
_FILE = re.compile(r"(/[^\n:=]*?/(?:state/\d+|offsets|commits)/[^\s:,;]+)")
_PLACE = re.compile(r"opId=(\d+),partId=(\d+)")
_CAUSE = re.compile(r"^(?:Caused by)?: (.+)$", re.MULTILINE)
_MOST_SUMMED_BYTES = 1 << 20  # Hadoop's own are over 512 bytes each
_SCHEME = re.compile(r"[a-z][\w+.-]*:(//[^/]*)?")
_VERSION = re.compile(r"v\d+|-|")  # a line of a log that is no JSON


def damage_told(text: str, checkpoint: str = "") -> StoreCorrupted | None:
    """The error for a checkpoint that Spark could not load; None if that is not what its own error says."""
    return damage(text, checkpoint) if _LOST.search(text) else None


def damage(text: str, checkpoint: str = "") -> StoreCorrupted:
    """The error for a checkpoint that is damaged, from the text of Spark's error with all that Java says."""
    place = _PLACE.search(text)
    state = os.path.join(checkpoint or "the checkpoint", "state", *(place.groups() if place else ()))
    # its metadata has whole paths, also those of the folder that it was copied from
    folder = _SCHEME.sub("", checkpoint) if _SCHEME.match(checkpoint) else checkpoint and os.path.abspath(checkpoint)
    file = next((file for file in _FILE.findall(text) if folder in file), None)
    if file is None and checkpoint:
        file = next(_damaged_files(Path(checkpoint)), None)
    cause = (_CAUSE.findall(text) or [text])[-1]
    want = (
        "restore a copy of the checkpoint, or use another checkpointLocation and start the source from an earlier "
        "position"
    )
    return StoreCorrupted(problem(f"{file or f'a file of {state}'} is damaged or missing", shorten(cause, 200), want))


def _damaged_files(checkpoint: Path) -> Iterator[str]:
    """The logs and archives of a checkpoint that cannot be read; Spark does not say which one it was."""
    for file in sorted(path for name in ("commits", "offsets", "state") for path in (checkpoint / name).rglob("*")):
        try:
            if file.suffix == ".crc":  # the sum of a file that is to be there
                is_whole = file.with_name(file.name.removeprefix(".").removesuffix(".crc")).exists()
            elif file.suffix == ".zip":
                with zipfile.ZipFile(file) as archive:
                    is_whole = archive.testzip() is None
            else:
                is_whole = not file.name.isdigit() or not file.is_file() or _is_log(file)
        except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error):
            is_whole = False
        if not is_whole:
            yield str(file)


def check_files(checkpoint: str, java: Any) -> None:
    """Refuses a checkpoint on this machine for what Spark itself would not refuse.

    RocksDB ends a scan at a damaged block, and Spark does not ask why: so tables without a checksum beside them are
    read. And Java ends if a file of checksums says that each is over a gigabyte, as it makes room for so much.
    """
    for sums in Path(checkpoint).absolute().rglob(".*.crc"):
        size = 0
        with suppress(OSError), sums.open("rb") as file:  # a query that runs may remove it now
            size = int.from_bytes(file.read(8)[4:])
        if size >= _MOST_SUMMED_BYTES:
            raise damage(f"checksums of {size:,} bytes each in {sums}", checkpoint)
    for table in sorted(Path(checkpoint).absolute().glob("state/*/*/SSTs/*.sst")):
        sums = table.with_name(f".{table.name}.crc")
        if sums.exists():
            continue
        java.org.rocksdb.RocksDB.loadLibrary()
        reader = java.org.rocksdb.SstFileReader(java.org.rocksdb.Options())
        try:
            reader.open(str(table))
            reader.verifyChecksum()
        except Exception as error:  # py4j's, of RocksDB's own
            if table.exists() and not sums.exists():  # a query that runs may be writing or removing it
                raise damage(f"{table}\n{error}", checkpoint) from None
        finally:
            reader.close()


def _is_log(file: Path) -> bool:
    lines = file.read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not _VERSION.fullmatch(line):
            json.loads(line)
    return len(lines) > 1


_OTHER_PYTHON = re.compile(
    r"No module named '(?:sessionkit|pyspark|pyarrow|pandas|numba|numpy|sortedcontainers|lazy_loader|tqdm)[\w.]*'"
    r"|Python in worker has different version: [\d.]+ than that in driver: [\d.]+"
)
_DATA_ERROR = re.compile(r"(\[[A-Z0-9_.]+\] [^\n]+?)\.? (?:[A-Z][^\n]*)?SQLSTATE: 22")  # such as a failing cast
_OURS = re.compile(r"sessionkit\.errors\.(\w+): (.+)")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Raises the error of a Spark worker as the one-line error that it is, without the stack of the Java around it.

    And what Java says of a checkpoint that is damaged as `StoreCorrupted`, with the file. After two seconds it shows
    how far Spark's tasks are, unless `sk.options.progress` is False.

    Views are lazy, so an error in the records comes up in whatever starts the job; `metrics()` and all that answers
    at once do this by themselves.

    Example:
        >>> with readable_errors():
        ...     rows = plan.run(spark_df).table().collect()  # doctest: +SKIP
    """
    try:
        with job_progress():
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
        names = {name: inner for inner, name in TIMES.items()}
        keys = [column(shown_key(name)) for name, _ in self.keys]
        if not keys:
            key = F.lit(OF_ALL)
        elif len(keys) == 1:
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
        if not self.keys:
            return []
        key = column("key")
        if len(self.keys) == 1:
            [(name, kind)] = self.keys
            return [(key.cast(kind) if kind in _INTEGERS else key).alias(shown_key(name))]
        quoted = "\\Q" + str(self.sep).replace("\\E", "\\E\\\\E\\Q") + "\\E"
        parts = F.split(key, quoted, len(self.keys))
        return [parts.getItem(place).cast(kind).alias(shown_key(name)) for place, (name, kind) in enumerate(self.keys)]


def shown_timestamp(name: str, shown: str, timezone: str, *, per_ms: Literal[1, 1_000] = 1) -> Column:
    """A column of milliseconds as timestamps, under the name that is shown: the instant, in the session's zone.

    Or of microseconds, of which there are 1,000 `per_ms`.
    """
    number = column(name)
    ms = number if per_ms == 1 else F.floor(number / per_ms)
    what = f"{shown} has a time after the year 9999"
    refused = raised("NumberOverflow", what, F.concat(ms.cast("string"), F.lit(" ms")), UNLESS_SO_LATE)
    is_known = ms >= 0 if shown == "stream_time" else F.lit(True)  # -1 before any was known
    moment = F.timestamp_millis(number) if per_ms == 1 else F.timestamp_micros(number)
    return F.when(ms > last_shown_ms(timezone), refused).when(is_known, moment).alias(shown)


def raised(kind: str, what: str, got: Column, want: str) -> Column:
    """Ends the job with our own error of this kind where the column is computed; `readable_errors` knows the form."""
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
