"""Records as plain Python values, a list of dicts or a dict of columns, as a pandas frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.errors import InvalidData, UnsupportedData, problem, shorten


def frame_of_rows(rows: Sequence[Any]) -> Any:
    """A row for each dict, with a column for each name in any of them; what a dict lacks is missing.

    Raises:
        UnsupportedData: a row is no dict.
    """
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            got = f"row {place}: {type(row).__name__}"
            want = "a list of dicts, a list of paths, or pandas.DataFrame(rows, columns=[…]) of tuples"
            raise UnsupportedData(problem("a list must hold records", got, want))
    names = dict.fromkeys(name for row in rows for name in row)
    return _frame({name: [row.get(name) for row in rows] for name in names}, len(rows))


def frame_of_columns(columns: Mapping[str, Any]) -> Any:
    """A column for each name, from a list, a tuple, or an array of NumPy, pandas or Arrow.

    Raises:
        UnsupportedData: a column is a single value.
        InvalidData: the columns are not equally long.
    """
    lengths = {name: _length(name, column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{shorten(repr(name))}: {length:,}" for name, length in lengths.items())
        raise InvalidData(problem("the columns are not equally long", shorten(got, 200), "a value for each record"))
    return _frame(columns, next(iter(lengths.values()), 0))


def _length(name: str, column: Any) -> int:
    if isinstance(column, str | bytes | Mapping) or not (hasattr(column, "__len__") and hasattr(column, "__iter__")):
        got = f"{shorten(repr(name))}: {shorten(repr(column))}"
        raise UnsupportedData(problem("a dict must hold columns", got, "a list for each column, or a list of dicts"))
    return len(column)


def _frame(columns: Mapping[str, Any], rows: int) -> Any:
    import pandas as pd

    return pd.DataFrame({name: _series(column) for name, column in columns.items()}, index=range(rows))


def _series(column: Any) -> Any:
    """As objects first, and integers beside a missing one as nullable integers: pandas would make floats of them."""
    import pandas as pd

    if isinstance(column, pd.Series):
        return column.reset_index(drop=True)
    if isinstance(column, np.ndarray) and column.dtype != object and column.ndim == 1:
        return pd.Series(column)
    values = column.to_pylist() if isinstance(column, pa.Array | pa.ChunkedArray) else list(column)
    out = np.empty(len(values), object)
    out[:] = values
    series = pd.Series(out, dtype=object)
    if not (series.hasnans and pd.api.types.infer_dtype(out) == "integer"):
        return series.infer_objects()
    for kind in ("Int64", "UInt64"):
        with suppress(OverflowError):
            return series.astype(kind)
    return series
