"""The same records as frames in memory."""

from __future__ import annotations

from typing import Any


def _pyarrow(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _polars(path: str) -> Any:
    import polars as pl

    return pl.read_parquet(path)


def _objects_that_repeat(path: str) -> Any:
    import numpy as np

    table = _pyarrow(path)
    keys = table["key"].combine_chunks().dictionary_encode()
    frame = table.drop_columns("key").to_pandas()
    frame["key"] = _as_objects(np.array(keys.dictionary.to_pylist(), dtype=object)[keys.indices.to_numpy()])
    return frame


def _objects_of_each_row(path: str) -> Any:
    import numpy as np

    table = _pyarrow(path)
    frame = table.drop_columns("key").to_pandas()
    frame["key"] = _as_objects(np.array(table["key"].to_pylist(), dtype=object))
    return frame


def _as_objects(keys: Any) -> Any:
    import pandas as pd

    return pd.Series(keys, dtype=object)


FRAMES = {
    "pyarrow": _pyarrow,
    "polars": _polars,
    "pandas, objects that repeat": _objects_that_repeat,
    "pandas, an object a row": _objects_of_each_row,
}
