"""What a table shows is what pandas shows of the same frame, sorted and filtered."""

import string
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sessionkit.base.result_columns import AS_STORED
from sessionkit.errors import InvalidArgument
from sessionkit.widgets.tables.browser import PAGE_ROWS, Question, TableView
from sessionkit.widgets.tables.columns import TableColumn, order_of, said_number, table_columns

TIMES_FROM = 1_700_000_000_000
KINDS = ("key", "window_start_ms", "whole", "real", "text", "flag", "moment", "exact")


def frame(seed: int) -> pa.Table:
    """A random table with nulls, NaN and many equal values."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([0, 1, 7, 60, 400]))
    share = rng.choice([0.0, 0.2])

    def some(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind, mask=rng.random(size) < share)

    real = rng.choice([0.0, -0.0, 1.5, np.nan, -7.25, np.inf, 1e9], size)
    letters = ["", "a", "B", "b", "äÄ", "Zz", "ab\u00df", "<b>", *string.ascii_uppercase[:4]]
    return pa.table(
        {"key": pa.array(rng.choice(letters, size).tolist(), pa.large_string()),
         "window_start_ms": pa.array(TIMES_FROM + rng.integers(0, 9, size) * 3_600_000),
         "whole": some(rng.integers(-5, 6, size)), "real": some(real),
         "text": some(rng.choice(letters, size).tolist(), pa.string()), "flag": some(rng.random(size) < 0.5),
         "moment": some(rng.integers(0, 5, size), pa.int64()).cast(pa.timestamp("s")),
         "exact": some(rng.integers(-3, 4, size), pa.int64()).cast(pa.decimal128(19, 0))},
    )  # fmt: skip


def view(table: pa.Table, timezone: str = "UTC") -> TableView:
    return TableView(table_columns(dict(zip(table.column_names, table.columns, strict=True)), AS_STORED, timezone))


def expected(table: pa.Table, question: Question) -> list[int]:
    data = pd.DataFrame({name: column.to_pylist() for name, column in zip(KINDS, table.columns, strict=True)})
    data = data.assign(whole=data["whole"].astype("Float64").astype(float), real=data["real"].astype(float))
    if question.column is not None:
        name = KINDS[question.column]
        order = data[name].astype(float) if name == "exact" else data[name]
        order = order.sort_values(ascending=not question.descending, kind="stable", na_position="last")
        data = data.loc[order.index]
    letters = question.letters.strip().lower()
    if letters:
        holds = [letters in (key or "").lower() or letters in (text or "").lower() for key, text in
                 zip(data["key"], data["text"], strict=True)]  # fmt: skip
        data = data[np.array(holds, bool)]
    for number, (low, high) in question.spans.items():
        values = data[KINDS[number]].astype(float)
        data = data[((values >= float(low)) | (low == "")) & ((values <= float(high)) | (high == "")) & values.notna()]
    return data.index.tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(25))
def test_rows_are_those_of_pandas(seed: int) -> None:
    table = frame(seed)
    shown, rng = view(table), np.random.default_rng(seed)
    for _ in range(30):
        low, high = sorted(rng.choice(["-6", "-2", "0", "1.5", "3", "1000000"], 2).tolist(), key=float)
        number = int(rng.choice([2, 3]))
        question = Question(
            letters=str(rng.choice(["", "", "a", "B", "ä", "<", " z "])),
            spans={number: (low, high)} if rng.random() < 0.4 else {},
            column=None if rng.random() < 0.2 else int(rng.integers(len(KINDS))),
            descending=bool(rng.random() < 0.5),
        )
        assert shown.rows(question).tolist() == expected(table, question), question


def test_pages() -> None:
    table = pa.table({"n": np.arange(120), "key": ["a"] * 120})
    shown = view(table)
    for first, start, count in ((0, 0, 50), (51, 50, 50), (100, 100, 20), (10_000, 100, 20), (-7, 0, 50)):
        begins, rows = shown.page(Question(), first)
        assert (begins, len(rows)) == (start, count)
    assert shown.page(Question(spans={0: ("5", "7")}), 50)[1].tolist() == [5, 6, 7]
    assert shown.page(Question(letters="none"), 50)[0] == 0
    assert PAGE_ROWS == 50


def test_times_and_lengths_are_said_and_read_by_the_clock_of_the_zone() -> None:
    hour = 3_600_000
    at = [TIMES_FROM, TIMES_FROM + hour, TIMES_FROM + 30 * hour]
    table = pa.table({"window_start_ms": at, "missing_grace_ms": pa.array([60_000, None, 5 * hour])})
    shown = view(table, "Europe/Berlin")
    assert [column.title for column in shown.columns] == ["window start", "missing grace"]
    assert shown.shown(np.arange(3)) == [
        ["2023-11-14 23:13:20", "1 min"],
        ["2023-11-15 00:13:20", "–"],
        ["2023-11-16 05:13:20", "5 h"],
    ]
    for span, rows in (
        (("2023-11-15", ""), [1, 2]),
        (("", "2023-11-14"), [0]),
        (("2023-11-15", "2023-11-15"), [1]),  # all of that day
        (("2023-11-14 23:13:20", "2023-11-15 00:13:20"), [0, 1]),
        ((str(at[2]), ""), [2]),
    ):
        assert shown.rows(Question(spans={0: span})).tolist() == rows
    assert shown.rows(Question(spans={1: ("2 h", "")})).tolist() == [2]
    toy = view(pa.table({"window_start_ms": [5, 27]}))
    assert toy.shown(np.array([1])) == [["27 ms"]]
    assert toy.rows(Question(spans={0: ("6 ms", "30")})).tolist() == [1]


def test_keys_of_any_type_are_found() -> None:
    shown = view(pa.table({"key": [17, -3, 170], "n": [1, 2, 3]}))
    assert shown.rows(Question(letters="17")).tolist() == [0, 2]
    assert shown.rows(Question(column=0)).tolist() == [1, 0, 2]
    binary = view(pa.table({"key": pa.array([b"\xff", b"a"], pa.large_binary()), "n": [1, 2]}))
    assert binary.rows(Question(letters="a")).tolist() == []
    assert binary.shown(np.array([0]))[0][0] == r"b'\xff'"


def test_values_that_have_no_order() -> None:
    objects = np.array([{"a"}, None], object)
    columns = table_columns({"own": objects, "list": pa.array([[1, 2], None])}, AS_STORED, "UTC")
    shown = TableView(columns)
    assert shown.shown(np.arange(2)) == [["{'a'}", "[1, 2]"], ["–", "–"]]
    for number in (0, 1):
        with pytest.raises(InvalidArgument, match="cannot be sorted"):
            shown.rows(Question(column=number))


@pytest.mark.parametrize(
    ("spans", "column"),
    [({0: ("x", "")}, None), ({0: ("5", "2")}, None), ({1: ("a", "b")}, None), ({9: ("1", "")}, None), ({}, 9),
     ({0: ("nan", "")}, None)],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(spans: Any, column: int | None) -> None:
    shown = view(pa.table({"n": [1, 2], "key": ["a", "b"]}))
    with pytest.raises(InvalidArgument):
        shown.rows(Question(spans=spans, column=column))


def test_bounds_beyond_64_bits() -> None:
    shown = view(pa.table({"n": [-(2**63), 0, 2**63 - 1]}))
    assert shown.rows(Question(spans={0: (str(-(10**30)), str(10**30))})).tolist() == [0, 1, 2]
    assert shown.rows(Question(spans={0: ("0.5", "1e300")})).tolist() == [2]


def test_a_column_is_sorted_once_for_each_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, order = view(frame(3)), TableColumn.order
    sorted_by: list[tuple[str, bool]] = []

    def noted(column: TableColumn, *, descending: bool) -> Any:
        sorted_by.append((column.title, descending))
        return order(column, descending=descending)

    monkeypatch.setattr(TableColumn, "order", noted)
    for letters in ("", "a", "b"):
        for descending in (False, True):
            shown.rows(Question(letters=letters, column=2, descending=descending))
    assert sorted_by == [("whole", False), ("whole", True)]


@pytest.mark.parametrize(
    "values",
    [pa.array([2**64 - 1, 0, 2**63, None, 0], pa.uint64()), pa.array([-(2**63), 2**63 - 1, 0, -1, None, 0]),
     pa.array([1.5, -np.inf, 5e-324, -5e-324, np.nan, None, np.inf, -1.5]), pa.array([0.25, -2.0, None], pa.float32()),
     pa.array([3, 1, 2], pa.int32()).cast(pa.date32()), pa.array([3, None, 2], pa.int64()).cast(pa.duration("us")),
     pa.array([], pa.int64())],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_order_of_every_type(values: pa.Array) -> None:
    listed = [None if value is None or value != value else value for value in values.to_pylist()]
    there = [row for row, value in enumerate(listed) if value is not None]
    missing = [row for row, value in enumerate(listed) if value is None]
    for descending in (False, True):
        expected = sorted(there, key=lambda row: listed[row], reverse=descending)
        assert order_of(values, descending=descending).tolist() == expected + missing


def test_many_values_are_in_order() -> None:
    numbers = np.random.default_rng(8).integers(-(2**62), 2**62, 100_000) // 2**45
    assert order_of(pa.array(numbers), descending=False).tolist() == np.argsort(numbers, kind="stable").tolist()
    assert order_of(pa.array(numbers), descending=True).tolist() == np.argsort(-numbers, kind="stable").tolist()


def test_numbers_as_a_person_reads_them() -> None:
    said = [said_number(value) for value in (0, -1234, 1.0, 2 / 3, 1e-9, 123456.789, 1e20, float("inf"))]
    assert said == ["0", "-1,234", "1", "0.666667", "1e-09", "123,456.79", "1e+20", "∞"]


@pytest.mark.parametrize(("unit", "finer"), [("s", 1), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_times_and_lengths_are_rounded_down_from_all_their_digits(unit: str, finer: int) -> None:
    last = pa.array([1_700_000_000 * finer - 1])
    columns = table_columns(
        {"a": last.cast(pa.timestamp(unit, "UTC")), "b": last.cast(pa.duration(unit))}, AS_STORED, "UTC"
    )
    fraction = "" if unit == "s" else ".999"
    assert columns[0].shown(np.array([0])) == [f"2023-11-14 22:13:19{fraction}"]
    assert not columns[1].shown(np.array([0]))[0].endswith("20 s")
