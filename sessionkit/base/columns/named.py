"""Columns by their names: each an Arrow array or a NumPy one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.columns.arrays import arrow_array

Column = Any  # an Arrow array, a NumPy one, or one of Python objects


def taken(columns: Mapping[str, Column], rows: npt.NDArray[np.integer[Any]]) -> dict[str, Column]:
    """The columns with these rows."""
    return {name: c[rows] if isinstance(c, np.ndarray) else c.take(arrow_array(rows)) for name, c in columns.items()}


def joined(first: Mapping[str, Column], second: Mapping[str, Column]) -> dict[str, Column]:
    """The columns of the first, with the rows of the second behind its own."""
    return {
        name: np.concatenate([column, second[name]])
        if isinstance(column, np.ndarray)
        else pa.concat_arrays([column, second[name].cast(column.type)])
        for name, column in first.items()
    }
