"""Arrays of NumPy as those of Arrow and back: the same as by Arrow's own ways, which load pandas."""

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base.arrays import arrow_array, arrow_table, is_null, joined, numpy_array, repeated, taken, texts

NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def values_of(dtype: str, count: int) -> Any:
    return (np.arange(count) % 3).astype(dtype)


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 64, 1001])
def test_an_array_of_arrow_is_the_one_that_arrow_makes(dtype: str, count: int) -> None:
    values = values_of(dtype, count)
    missing = np.arange(count) % 4 == 1
    for given in (values, np.repeat(values, 2)[::2], values[::-1]):
        for nulls in (None, missing, np.zeros(count, np.bool_)):
            made = arrow_array(given, nulls)
            made.validate(full=True)
            assert made.equals(pa.array(given, mask=nulls))


def test_an_array_of_arrow_keeps_its_memory() -> None:
    made = arrow_array(np.arange(100_000))
    filler = [np.full(100_000, 7) for _ in range(20)]  # would take the place of memory that nobody held
    assert len(filler) == 20
    assert numpy_array(made)[[0, -1]].tolist() == [0, 99_999]


def test_what_is_no_number_is_not_missing() -> None:
    values, missing = np.array([np.nan, 1.0, np.inf]), np.array([False, True, False])
    assert str(arrow_array(values, missing)) == str(pa.array(values, mask=missing))
    assert np.isnan(numpy_array(pa.array(values))).tolist() == [True, False, False]


def test_other_values_go_arrow_s_own_way() -> None:
    assert arrow_array(np.array(["a", None], object)).to_pylist() == ["a", None]
    assert arrow_array(np.array([3], "datetime64[ms]")).type == pa.timestamp("ms")
    with pytest.raises(pa.ArrowNotImplementedError, match="Byte-swapped"):
        arrow_array(np.array([1, 2], ">i8"))


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 9), (3, 20), (8, 8), (13, 1)])
def test_an_array_of_numpy_has_the_values(dtype: str, first: int, count: int) -> None:
    values = values_of(dtype, 40)
    part = slice(first, first + count)
    assert (found := numpy_array(pa.array(values)[part])).dtype == values.dtype
    assert found.tolist() == values[part].tolist()
    missing = np.arange(40) % 5 == 3
    expected = np.where(missing, 1, values).astype(dtype)[part]
    some = pa.array(values, mask=missing)[part]
    assert numpy_array(some, absent=1).tolist() == expected.tolist()
    assert is_null(some).tolist() == missing[part].tolist()


def test_chunks_are_joined() -> None:
    chunks = [pa.array([1, None]), pa.array([], pa.int64()), pa.array([3])]
    for some, expected in ((chunks, [1, -1, 3]), (chunks[:1], [1, -1]), ([], [])):
        column = pa.chunked_array(some, pa.int64())
        assert numpy_array(column, absent=-1).tolist() == expected
        assert is_null(column).tolist() == [value == -1 for value in expected]
    assert numpy_array(pa.chunked_array([], pa.bool_())).dtype == np.bool_


def test_numbers_of_one_chunk_are_not_to_change() -> None:
    """Compiled loops tell arrays that may be changed from others: they would be compiled once more."""
    for column in (pa.array([1, 2]), pa.array([1, None]), pa.chunked_array([[1, None]])):
        assert not numpy_array(column).flags.writeable


@pytest.mark.parametrize("large", [False, True])
def test_texts_are_those_of_arrow(large: bool) -> None:
    kind = pa.large_string() if large else pa.string()
    for words in ([], ["ada"], ["", "žluť", "x" * 300], [None, "a", None], [None]):
        made = texts(words, large=large)
        made.validate(full=True)
        assert made.equals(pa.array(words, kind))


def test_a_word_repeated() -> None:
    assert repeated("final", 3).to_pylist() == ["final"] * 3
    assert repeated("final", 0).type == pa.string()


def test_columns_of_either_library_are_a_table() -> None:
    table = arrow_table(
        {"a": np.arange(2), "b": pa.array(["x", "y"]), "c": pa.chunked_array([[1.5, 2.5]]), "d": [1, 2]}
    )
    assert table.equals(pa.table({"a": [0, 1], "b": ["x", "y"], "c": [1.5, 2.5], "d": [1, 2]}))


def test_columns_by_name_are_taken_and_joined() -> None:
    first = {"n": np.array([1, 2]), "word": pa.array(["a", "b"])}
    second = {"n": np.array([3]), "word": pa.array(["c"], pa.large_string()), "more": np.array([0])}
    both = joined(first, second)
    assert (list(both), both["word"].type) == (["n", "word"], pa.string())
    some = taken(both, np.array([2, 0]))
    assert (some["n"].tolist(), some["word"].to_pylist()) == ([3, 1], ["c", "a"])


def test_none_of_it_loads_pandas() -> None:
    code = """
import sys
import numpy as np
import pyarrow as pa
from sessionkit.base.arrays import arrow_array, arrow_table, is_null, numpy_array, repeated, texts

made = arrow_array(np.arange(4), np.arange(4) == 2)
numpy_array(made), numpy_array(pa.chunked_array([made])), is_null(made), numpy_array(arrow_array(np.ones(3, bool)))
texts(["a", None], large=True), repeated("a", 3), arrow_table({"a": np.arange(2)})
before = "pandas" in sys.modules
pa.scalar(1)
print(before, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"  # Arrow's own way does; once it does not, these are not needed any more
