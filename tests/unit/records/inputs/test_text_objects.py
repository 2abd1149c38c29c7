"""Key columns of Python's text objects, coded by where the objects lie: always what Arrow reads."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import UnsupportedData
from sessionkit.records.inputs import pandas_columns as text_objects
from sessionkit.records.inputs.pandas_columns import coded_text

WORDS = ["ada", "é", "", "a.b", "x" * 300]


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_objects, "HEAD", 20)


def column(size: int, *, own: bool, missing: Any = ...) -> pd.Series:
    """Text objects that repeat, or of which each row has its own; every fifth may be missing."""
    rng = np.random.default_rng(size)
    words: list[Any] = [WORDS[i] for i in rng.integers(0, len(WORDS), size)]
    words = ["".join(["a", *word]) if own else word for word in words]
    if missing is not ...:
        words[1::5] = [missing] * len(words[1::5])
    return pd.Series(words, dtype=object)


@pytest.mark.parametrize("missing", [..., None, float("nan")])
@pytest.mark.parametrize("size", [12, 40, 200])
def test_it_holds_what_arrow_reads(size: int, missing: Any) -> None:
    series = column(size, own=False, missing=missing)
    coded = coded_text(series)
    assert isinstance(coded, pa.DictionaryArray)
    assert len(coded.dictionary) <= len(WORDS)
    assert coded.to_pylist() == pa.array(series, from_pandas=True).to_pylist()


def test_equal_text_in_several_objects_is_one_key() -> None:
    parts = [column(40, own=False), column(40, own=False).map(lambda word: "".join(list(word)))]
    series = pd.concat(parts * 5, ignore_index=True)
    coded = coded_text(series)
    assert isinstance(coded, pa.DictionaryArray)
    assert sorted(coded.dictionary.to_pylist()) == sorted(WORDS)


@pytest.mark.parametrize("strange", [b"ada", 7, 2.5, pd.NA, "\ud800"])
def test_anything_else_is_left_to_the_reading_as_a_whole(strange: Any) -> None:
    series = column(60, own=False)
    series[37] = strange
    assert coded_text(series) is None


def test_objects_that_do_not_repeat_are_read_as_a_whole() -> None:
    assert coded_text(column(60, own=True)) is None
    assert coded_text(column(0, own=False)) is None


@pytest.mark.parametrize("own", [False, True])
def test_a_run_is_that_of_the_same_text_in_arrow(own: bool) -> None:
    keys = column(400, own=own, missing=None)
    frame = pd.DataFrame({"at": np.arange(400) * 700, "n": np.arange(400), "key": keys})
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(
        sk.SessionWindows(inactivity_gap="3s", grace="1s")
    )
    plan = plan.aggregate(count=sk.count(), total=sk.sum("n"))
    table = pa.table({"at": frame["at"], "n": frame["n"], "key": pa.array(keys.tolist(), pa.string())})
    assert plan.run(frame).table().equals(plan.run(table, frame="pandas").table())


def test_a_column_that_is_not_contiguous() -> None:
    rows = np.array([[word, "other"] for word in column(60, own=False)], dtype=object)
    both = pd.DataFrame(rows, columns=["a", "b"], dtype=object)
    coded = coded_text(both["a"])
    assert coded is not None
    assert coded.to_pylist() == both["a"].tolist()


def test_bytes_beside_text_are_refused_as_ever() -> None:
    frame = pd.DataFrame({"at": np.arange(60), "key": column(60, own=False)})
    frame.loc[37, "key"] = b"ada"
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size="3s", grace="1s")).count()
    with pytest.raises(UnsupportedData, match="bytes beside text"):
        plan.run(frame)
