"""Columns of lists, one for each window, and what is worked out of them for all windows at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Floats, Longs, arrow_array, is_null, numpy_array
from sessionkit.errors import StoreCorrupted, problem


def lengths_of(lists: pa.ListArray) -> Longs:
    """How many values each list has."""
    return numpy_array(pc.list_value_length(lists)).astype(np.int64)


def _rows_of(lists: pa.ListArray) -> Longs:
    """Of each value of all lists the number of its list."""
    return np.repeat(np.arange(len(lists)), lengths_of(lists))


def _lists(lengths: Longs, values: pa.Array) -> pa.ListArray:
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return pa.ListArray.from_arrays(arrow_array(ends.astype(np.int32)), values)


def without_nulls(lists: pa.ListArray) -> pa.ListArray:
    """The lists without their nulls."""
    values = lists.flatten()
    if not values.null_count:
        return lists
    known = ~is_null(values)
    rows = _rows_of(lists)[known]
    return _lists(np.bincount(rows, minlength=len(lists)), values.filter(arrow_array(known)))


def distinct(lists: pa.ListArray) -> pa.ListArray:
    """The lists without nulls, each value once, where it came first; NaN is one value."""
    lists = without_nulls(lists)
    coded = lists.flatten().dictionary_encode()
    if not len(coded):
        return lists
    many = len(coded.dictionary)
    pairs = _rows_of(lists) * many + numpy_array(coded.indices)
    row, code = np.divmod(numpy_array(pc.unique(arrow_array(pairs))), many)
    return _lists(np.bincount(row, minlength=len(lists)), coded.dictionary.take(arrow_array(code)))


def most_frequent(lists: pa.ListArray, most: int) -> pa.ListArray:
    """The `most` most frequent values of each list without nulls, of equally frequent ones the least; NaN last."""
    coded = lists.flatten().dictionary_encode()
    if not len(coded):
        return lists
    by_value = numpy_array(pc.sort_indices(coded.dictionary)).astype(np.int64)
    place, many = np.empty(len(by_value), np.int64), len(by_value)
    place[by_value] = np.arange(many)
    pairs, count = np.unique(_rows_of(lists) * many + place[numpy_array(coded.indices)], return_counts=True)
    row, value = np.divmod(pairs, many)
    order = np.lexsort((value, -count, row))
    different = np.bincount(row, minlength=len(lists))
    in_list = np.arange(len(row)) - np.repeat(np.cumsum(different) - different, different)
    kept = by_value[value[order][in_list < most]]
    return _lists(np.minimum(different, most), coded.dictionary.take(arrow_array(kept)))


COUNTED = pa.struct([("value", pa.float64()), ("count", pa.int64())])  # a value, and how often it is there


def counted(lists: pa.ListArray) -> pa.ListArray:
    """The lists of `COUNTED` by value, each one once, without nulls; NaN is one value, and the last."""
    flat = lists.flatten()
    value, count = flat.field("value"), numpy_array(flat.field("count"), absent=0)
    if len(count) and count.min() < 1:
        raise damaged_count(int(count.min()))
    known = ~is_null(value)
    rows, values, count = _rows_of(lists)[known], numpy_array(value.filter(arrow_array(known))), count[known]
    order = np.lexsort((values, rows))
    rows, values, count = rows[order], values[order], count[order]
    is_other = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    first = np.flatnonzero(np.append(np.ones(min(1, len(rows)), np.bool_), (rows[1:] != rows[:-1]) | is_other))
    often = np.add.reduceat(count, first) if len(first) else count
    held = pa.StructArray.from_arrays([arrow_array(values[first]), arrow_array(often)], fields=[*COUNTED])
    return _lists(np.bincount(rows[first], minlength=len(lists)), held)


def damaged_count(count: int) -> StoreCorrupted:
    """A value that is there less than once."""
    return StoreCorrupted(problem("a stored count of values is damaged", str(count), "1 or more, as it was written"))


def quantiles(lists: pa.ListArray, q: float) -> pa.Array:
    """The q-quantile of each list of floats, between two values in proportion; NaN if one is, null of an empty list.

    In place of floats there may be those of `COUNTED`.
    """
    size, flat = lengths_of(lists), lists.flatten()
    if not len(flat):
        return pa.nulls(len(lists), pa.float64())
    is_counted = pa.types.is_struct(flat.type)
    values = numpy_array(flat.field("value") if is_counted else flat)
    order = np.lexsort((values, _rows_of(lists)))
    ordered, last = values[order], len(order) - 1
    often = numpy_array(flat.field("count"))[order] if is_counted else np.ones(len(order), np.int64)
    ends = np.append(0, np.cumsum(often))  # of the values of all lists
    stop = np.cumsum(size)
    before, count = ends[stop - size], ends[stop] - ends[stop - size]
    place = q * np.maximum(count - 1, 0)
    low = place.astype(np.int64)
    share = place - low
    at = (np.searchsorted(ends[1:], before + rank, side="right") for rank in (low, low + (share > 0)))
    lower, upper = (ordered[np.minimum(found, last)] for found in at)
    largest = ordered[np.maximum(stop - 1, 0)]  # where there is a NaN, it
    with np.errstate(all="ignore"):
        between = np.where(share > 0, lower + (upper - lower) * share, lower)
    return arrow_array(np.where(np.isnan(largest), largest, between), count == 0)


def deviations(lists: pa.ListArray) -> pa.Array:
    """The sample standard deviation of each list of floats; null of fewer than two values."""
    count, values = lengths_of(lists), numpy_array(lists.flatten())
    rows = _rows_of(lists)

    def total(numbers: Floats) -> Floats:  # in order, as plain additions have it
        return np.bincount(rows, numbers, len(lists)).astype(np.float64)

    with np.errstate(all="ignore"):
        apart = values - (total(values) / count)[rows]
        return arrow_array(np.sqrt(total(apart * apart) / (count - 1)), count < 2)
