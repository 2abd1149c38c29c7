"""Columns of Arrow, put together."""

from __future__ import annotations

import pyarrow as pa

from sessionkit.base.arrays import joined


def test_lists_of_nulls_are_joined() -> None:
    """A list of nulls that is cast to the type that it has was broken by Arrow 26.0: ArrowIndexError."""
    lists = pa.array([None, [None, None], [None, None]], pa.list_(pa.null()))
    assert joined({"n": lists}, {"n": lists}, {"n": lists[:0]})["n"].to_pylist() == lists.to_pylist() * 2
