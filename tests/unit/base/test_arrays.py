"""Columns of Arrow, put together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base.arrays import joined, order_by


def test_lists_of_nulls_are_joined() -> None:
    """A list of nulls that is cast to the type that it has was broken by Arrow 26.0: ArrowIndexError."""
    lists = pa.array([None, [None, None], [None, None]], pa.list_(pa.null()))
    assert joined({"n": lists}, {"n": lists}, {"n": lists[:0]})["n"].to_pylist() == lists.to_pylist() * 2


@pytest.mark.parametrize("reach", [1, 3, 2**20, 2**62])
def test_columns_are_ordered_as_numpy_orders_them(reach: int) -> None:
    """Also where they do not fit into one number, and where there is no row."""
    rng = np.random.default_rng(reach)
    for size in (0, 1, 50, 500):
        first, second, flag = rng.integers(-reach, reach, size), rng.integers(0, 3, size), rng.random(size) < 0.5
        assert order_by(flag, first, second).tolist() == np.lexsort((second, first, flag)).tolist()
