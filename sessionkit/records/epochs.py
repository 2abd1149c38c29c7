"""Numbers as times since 1970: which unit they are in, and how pandas makes whole ones of them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import arrow_array
from sessionkit.records.source import TIME_UNITS

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_PLAUSIBLE_S = (631_152_000, 4_102_444_800)  # 1990 to 2100
_SAMPLE = 1_000
_DIGITS = re.compile(r"[1-9]\d{8,18}(\.\d+)?")


def sample_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Some of the values, from all over the column."""
    return column.take(arrow_array(np.arange(0, len(column), max(1, len(column) // _SAMPLE)))).drop_null()


def typical_time(column: pa.ChunkedArray) -> tuple[float, list[str]]:
    """(the typical number of a column, the units in which it is a time between 1990 and 2100); NaN if there is none."""
    found = pc.approximate_median(pc.cast(sample_of(column), pa.float64(), safe=False)).as_py()
    typical = float("nan") if found is None else found
    first_s, last_s = _PLAUSIBLE_S
    return typical, [unit for unit in TIME_UNITS if first_s <= typical / PER_SECOND[unit] <= last_s]


def without_fraction(column: pa.ChunkedArray, name: str, unit: str | None, numbers: str = "") -> str:
    """The line of pandas that makes whole numbers of times in this unit, and keeps the milliseconds of seconds.

    Where the numbers are usual times in another unit only, it is this unit that counts. `numbers` is the expression
    that makes numbers of the column, if it holds text.
    """
    fits, numbers = typical_time(column)[1], numbers or f"df[{name!r}]"
    meant, far = unit if unit in fits or not fits else fits[0], "" if fits else "; such times lie outside 1990 to 2100"
    if meant in ("s", None):
        return f"df[{name!r}] = ({numbers} * 1000).round().astype('Int64'), with unit=\"ms\", keeps milliseconds{far}"
    named = "" if meant == unit else f', with unit="{meant}"'
    return f"df[{name!r}] = {numbers}.round().astype('Int64'){named}{far}"


def way_of_digits(texts: list[str], name: str, unit: str | None = None) -> tuple[str, str]:
    """(unit by their size of texts that are times since 1970, the way to read them); ("", "") if they are none.

    Texts without a digit, such as "-", do not count. There is no way to tell where `unit` is enough.
    """
    numbers = [text for text in texts if re.search(r"\d", text)]
    column = pa.chunked_array([pa.array(numbers, pa.string())])
    if not numbers or not all(map(_DIGITS.fullmatch, numbers)) or not (fits := typical_time(column)[1]):
        return "", ""
    if any("." in text for text in numbers):
        return fits[0], without_fraction(column, name, unit, f"pandas.to_numeric(df[{name!r}], errors='coerce')")
    return fits[0], "" if unit else f'unit="{fits[0]}"'
