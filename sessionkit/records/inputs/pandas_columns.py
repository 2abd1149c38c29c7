"""Columns of a pandas frame in Arrow, without a change of what they hold."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.text import literal
from sessionkit.errors import InvalidData, MissingColumn, UnsupportedData, attempted, problem, shorten
from sessionkit.records.source import Source
from sessionkit.records.time_text import format_for
from sessionkit.records.times import refuse_mixed_zones, to_milliseconds

NOT_ARROW = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeError,
)  # errors that Arrow raises for columns that it cannot hold
_WRITTEN = (uuid.UUID, Decimal)  # as keys they are their text
_DAY = r"\[?\d{1,4}[-/.](\d{1,2}|[A-Za-z]{3})[-/.]\d{1,4}(\b|T\d).*|\d{8}(T\d|[-T ]\d\d?:).*|\d\d?:\d\d(:\d\d.*)?"
NUMBER = r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?"
_VALUE = re.compile(rf"\s*(?!(19|20)\d\d$)({NUMBER}|(\w+[:=])?({_DAY}|\d{{10,}})|\{{\".*)\s*")  # a year may be a name
SHOWN_NAMES = 400  # characters of a list of columns in an error


def check_columns(names: list[str], wanted: list[str], way: str = "") -> None:
    """Refuses data in which a wanted column is not there, or there twice; `way` says where else it may be."""
    for name in wanted:
        if names.count(name) == 0:
            have = shorten(", ".join(shorten(repr(other)) for other in names), SHOWN_NAMES) or "no columns"
            parted = parted_name(names[0]) if len(names) == 1 else ""
            if parted and name in names[0].split(parted):
                way = f"separator={literal(parted)} in group_by_key (pandas: sep={literal(parted)})"
            want = which_of(names) + (f", or {way}".replace("{!r}", repr(name)) if way else "")
            raise MissingColumn(problem(f"column {name!r} is not in the data", have, want))
        if names.count(name) > 1:
            got = shorten(names)
            raise InvalidData(problem(f"column {name!r} appears {names.count(name)} times", got, "rename all but one"))


def parted_name(name: object) -> str:
    """The separator that the only name of a file seems to hold, as it was read with another; "" if it holds none."""
    return next((each for each in "\t;|, " if isinstance(name, str) and each in name.strip()), "")


def which_of(names: Iterable[object]) -> str:
    """Advice for an error about a missing column: to name one of those there, or that the file has no header."""
    way = ", or read the file with header=False in group_by_key (pandas: header=None) if its first line is a record"
    way += " (its columns are then c1, c2 and so on)"
    return "name one of these" + (way if any(map(is_a_value, names)) else "")


def is_a_value(name: object, format: str | None = None) -> bool:
    """True for a column's name that is a number, a time, also in this format, or JSON: rather a value of a record."""
    source = Source(keys=("key",), timestamp="at", timezone="UTC", on_bad_time="drop", format=format)
    is_time = bool(format) and to_milliseconds(pa.chunked_array([[str(name)]]), source)[0][0] >= 0
    return isinstance(name, str) and bool(is_time or _VALUE.fullmatch(name) or format_for(name))


def from_series(series: Any, name: str, source: Source, objects: dict[str, list[Any]]) -> pa.Array | pa.ChunkedArray:
    """A pandas column in Arrow; what Arrow would refuse or change goes into `objects`, its places into the column."""
    refusal, are_objects = "", series.dtype == object
    if name in source.keys and are_objects:
        if (coded := coded_text(series)) is not None:
            return coded
        series = _keys_as_text(series)
    try:
        column = pa.array(series, from_pandas=True)
        if are_objects and pa.types.is_binary(column.type) and any(isinstance(value, str) for value in series):
            refusal = "bytes beside text"  # Arrow makes bytes of both, so that two keys would be one
        if name in source.keys and are_objects and pa.types.is_floating(column.type):
            refusal = "booleans beside numbers" if any(isinstance(value, bool) for value in series) else ""
    except NOT_ARROW as error:
        column = None
        refusal = shorten(", ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error, 200)
    if name in source.columns():
        if refusal:
            want = "values of one type; a key is text (valid Unicode), an integer of 64 bits or bytes"
            raise UnsupportedData(problem(f"column {name!r} cannot be read", refusal, want))
        if name in (source.timestamp, source.arrival) and are_objects:
            refuse_mixed_zones(series, name)
    elif refusal or (are_objects and pa.types.is_nested(column.type)):
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


HEAD = 1_000_000  # rows that tell whether objects repeat
SELDOM = 0.5  # distinct objects a row, from which on they do not
_TEXT_OR_MISSING = {str, type(None), float}  # a missing text may be a NaN


def coded_text(series: Any) -> pa.DictionaryArray | None:
    """A pandas column of text objects with a dictionary; None where they do not repeat, or one of them is no text."""
    objects: npt.NDArray[np.object_] = np.ascontiguousarray(series.to_numpy())
    if not len(objects) or not isinstance(objects[0], str):
        return None
    addresses = np.ndarray(objects.shape, np.intp, objects)  # they stay where they are while `objects` holds them
    head = addresses[:HEAD]
    if len(pa.array(head).unique()) > SELDOM * len(head):
        return None
    coded = pa.array(addresses).dictionary_encode()
    code = coded.indices.to_numpy()
    first = np.empty(len(coded.dictionary), np.intp)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # what is written last stays: the first row of each
    texts = _text(objects[first])
    if texts is None:
        return None
    once = texts.dictionary_encode()  # text of equal content may lie in several objects
    return pa.DictionaryArray.from_arrays(once.indices.take(coded.indices), once.dictionary)


def _text(objects: npt.NDArray[np.object_]) -> pa.Array | None:
    """The objects as text; None where one is no text. Arrow by itself would take bytes beside text as bytes."""
    if not set(map(type, objects)) <= _TEXT_OR_MISSING:
        return None
    told_later = (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError)  # where the column is read as a whole
    return attempted(pa.array, objects, pa.large_string(), from_pandas=True, but=told_later)
