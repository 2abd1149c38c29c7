"""Results as the kind of frame that the user gave."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, UnsupportedData, problem, shorten

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar

    Frame = TypeVar("Frame", default=Any)  # the kind of frame of a run's tables
else:
    from typing import TypeVar

    Frame = TypeVar("Frame")

FrameKind = Literal["pandas", "polars", "arrow"]
FRAME_KINDS = ("pandas", "polars", "arrow")
_TEXT = ("string", "large_string", "string_view")
# What gives pandas frames: those, and all that is no frame.
PandasData: TypeAlias = (
    "pd.DataFrame | str | os.PathLike[str] | list[Any] | tuple[Any, ...] | Mapping[str, Any] | IO[bytes]"
)
EXACT_FLOATS = 2**53  # a float below it is the integer that it was made of


class PolarsFrame(Protocol):
    """A frame of Polars, lazy or not, told by a name of its own: polars may not be installed."""

    def collect_schema(self) -> Any:
        """Its columns."""


class ArrowStream(Protocol):
    """A frame of any library, as Arrow's C interface hands it on."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object:
        """Its rows."""


class ArrowScan(Protocol):
    """A dataset or a Parquet file of Arrow."""

    @property
    def schema(self) -> Any:
        """Its columns."""


ArrowData: TypeAlias = ArrowStream | ArrowScan


class SparkFrame(Protocol):
    """A DataFrame of Spark, told by a name of its own: pyspark may not be installed."""

    @property
    def isStreaming(self) -> bool:
        """Whether it is a stream."""


def checked_frame(frame: FrameKind | None, *, on_spark: bool) -> FrameKind | None:
    """The kind of frame that results are to have, if it can be made here; None leaves it to the data."""
    if frame is None:
        return None
    one_of("frame", frame, FRAME_KINDS)
    if on_spark:
        want = "leave frame= out; toPandas() of a view gives a pandas frame"
        raise InvalidArgument(problem("the views of a run on Spark are Spark DataFrames", f"frame={frame!r}", want))
    if frame == "polars" and importlib.util.find_spec("polars") is None:
        want = 'pip install polars, or frame="pandas" or "arrow"'
        raise InvalidArgument(problem("polars is not installed", 'frame="polars"', want))
    return frame


def to_frame(table: pa.Table, frame: FrameKind) -> Any:
    """`table` as the kind of frame that the user gave; `UnsupportedData` where that kind has no such values."""
    if frame == "arrow":
        return table
    try:
        return _to_pandas(table) if frame == "pandas" else _to_polars(table)
    except UnsupportedData:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # polars' own is no Exception
            raise
        got = f"{type(error).__name__}: {shorten(error, 200)}"
        want = "give a pyarrow table, which has all of Arrow's types"
        raise UnsupportedData(problem(f"the results cannot be a frame of {frame}", got, want)) from error


def _to_polars(table: pa.Table) -> Any:
    import polars

    for name in table.column_names:
        if "\0" in name:  # a polars frame with such a name ends the process where it is handed on
            want = "a name without the character NUL"
            raise UnsupportedData(problem("a result cannot be a column of polars", shorten(repr(name)), want))
    return polars.from_arrow(table)


def _to_pandas(table: pa.Table) -> Any:
    """Beside missing values pandas makes floats of integers, and it cuts names at a NUL; not where that matters.

    Text is Python's, and None where it is missing, as in pandas 2: pandas 3 would have NaN there.
    """
    import pandas as pd

    texts = {}
    if pd.Series([""]).dtype != object:  # pandas 3
        texts = {each.name: table[each.name] for each in table.schema if str(each.type) in _TEXT}
    for name, column in texts.items():
        table = table.set_column(table.column_names.index(name), name, pa.nulls(len(column)))
    try:
        frame = table.to_pandas()
    except pa.ArrowNotImplementedError:  # of one column, such as lists of bytes of one length
        frame = table.select([]).to_pandas().reindex(range(len(table)))
        for name, column in zip(table.column_names, table.columns, strict=True):
            try:
                frame[name] = column.to_pandas()
            except pa.ArrowNotImplementedError:
                frame[name] = python_objects(column.to_pylist())
    for name, column in texts.items():
        frame[name] = pd.Series(column.to_numpy(), frame.index, object)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count and _is_wide(column):
            nullable = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
            frame[name] = column.to_pandas(types_mapper=nullable.get)
        elif pa.types.is_nested(column.type):
            # a NUL would end the name of a field in pandas, and a time would lose its zone
            is_changed = any(mark in str(column.type) for mark in ("\0", "tz="))
            if is_changed or any(_is_wide(leaf) for each in column.chunks for leaf in _leaves(each)):
                frame[name] = python_objects(column.to_pylist())
    return frame


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The integers inside a column of lists, structs and maps."""
    kind = array.type
    if pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_nested(kind) and hasattr(array, "flatten"):
        yield from _leaves(array.flatten())
    elif pa.types.is_integer(kind):
        yield array


def _is_wide(numbers: pa.Array | pa.ChunkedArray) -> bool:
    """True where a float may be another integer."""
    if numbers.type.bit_width < 64:
        return False
    least, most = pc.min_max(numbers).as_py().values()
    return least is not None and (least <= -EXACT_FLOATS or most >= EXACT_FLOATS)


def python_objects(values: list[Any]) -> npt.NDArray[np.object_]:
    """Any values as a column of Python objects: numpy by itself makes a table of lists."""
    out = np.empty(len(values), object)
    out[:] = values
    return out
