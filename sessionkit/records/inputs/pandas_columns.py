"""Columns of a pandas frame in Arrow, without a change of what they hold."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.errors import InvalidData, MissingColumn, UnsupportedData, problem, shorten
from sessionkit.records.inputs.text_objects import coded_text
from sessionkit.records.source import Source
from sessionkit.records.times import refuse_mixed_zones

NOT_ARROW = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeError,
)  # what Arrow raises of columns that it cannot hold
_WRITTEN = (uuid.UUID, Decimal)  # as keys they are their text
_DAY = r"\[?\d{1,4}[-/.](\d{1,2}|[A-Za-z]{3})[-/.]\d{1,4}(\b|T\d).*|\d{8}T\d+.*|\d\d?:\d\d(:\d\d.*)?"
_VALUE = re.compile(rf"\s*(?!(19|20)\d\d$)([-+]?\d+([.,]\d+)?([eE][-+]?\d+)?|{_DAY})\s*")  # a year may be a name
SHOWN_NAMES = 400  # characters of a list of columns in an error


def check_columns(names: list[str], wanted: list[str], way: str = "") -> None:
    """Refuses data in which a wanted column is not there, or there twice; `way` says where else it may be."""
    for name in wanted:
        if names.count(name) == 0:
            have = shorten(", ".join(shorten(repr(other)) for other in names), SHOWN_NAMES) or "no columns"
            want = which_of(names) + (f", or {way}".replace("{!r}", repr(name)) if way else "")
            raise MissingColumn(problem(f"column {name!r} is not in the data", have, want))
        if names.count(name) > 1:
            got = shorten(names)
            raise InvalidData(problem(f"column {name!r} appears {names.count(name)} times", got, "rename all but one"))


def which_of(names: Iterable[object]) -> str:
    """What is to be done where a column of another name was asked for."""
    way = ", or read the file with header=False in group_by_key (pandas: header=None) if its first line is a record"
    return "name one of these in the plan" + (way if any(map(is_a_value, names)) else "")


def is_a_value(name: object) -> bool:
    """True for the name of a column that is a number or a time, and so rather a value of a record."""
    return isinstance(name, str) and _VALUE.fullmatch(name) is not None


def from_series(series: Any, name: str, source: Source, objects: dict[str, list[Any]]) -> pa.Array | pa.ChunkedArray:
    """A pandas column in Arrow; what Arrow would refuse or change goes into `objects`, its places into the column."""
    refusal = ""
    if name in source.keys and series.dtype == object:
        if (coded := coded_text(series)) is not None:
            return coded
        series = _keys_as_text(series)
    try:
        column = pa.array(series, from_pandas=True)
        if (
            series.dtype == object
            and pa.types.is_binary(column.type)
            and any(isinstance(value, str) for value in series)
        ):
            refusal = "bytes beside text"  # Arrow makes bytes of both, so that two keys would be one
        if name in source.keys and series.dtype == object and pa.types.is_floating(column.type):
            refusal = "booleans beside numbers" if any(isinstance(value, bool) for value in series) else ""
    except NOT_ARROW as error:
        column = None
        refusal = shorten(", ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error, 200)
    if name in source.columns():
        if refusal:
            want = "values of one type; a key is text (valid Unicode), an integer of 64 bits or bytes"
            raise UnsupportedData(problem(f"column {name!r} cannot be read", refusal, want))
        if name in (source.timestamp, source.arrival) and series.dtype == object:
            refuse_mixed_zones(series, name)
    elif refusal or (series.dtype == object and pa.types.is_nested(column.type)):
        objects[name] = [None if null else value for value, null in zip(series, series.isna(), strict=True)]
        return pa.array(np.arange(len(series)))
    return column


def _keys_as_text(series: Any) -> Any:
    """UUIDs and decimals as they are written: Arrow gives all decimals of a column the same number of digits."""
    import pandas as pd

    gaps = (type(None), float, type(pd.NA), type(pd.NaT))
    first = next((value for value in series if not isinstance(value, gaps)), None)
    if not isinstance(first, _WRITTEN):
        return series
    return series.map(lambda value: str(value) if isinstance(value, _WRITTEN) else value, na_action="ignore")
