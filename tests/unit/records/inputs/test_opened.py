"""Everything that people have is read, to the same results, and a mistake gets the right call."""

import bz2
import datetime as dt
import gzip
import io
import json
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, SessionkitError, UnsupportedData
from sessionkit.records.inputs.opened import open_table
from sessionkit.records.source import Source
from tests.deployments import run_by

API: Any = sk  # for arguments that a type checker would refuse
ROWS = [
    {"user": "007", "at": "2024-07-01T10:00:00+02:00", "amount": 1},
    {"user": "007", "at": "2024-07-01T08:10:00.5Z", "amount": 2},
    {"user": "7", "at": "2024-07-01T08:20:00+00:00", "amount": 4},
]
CSV = "user,at,amount\n" + "".join(f"{row['user']},{row['at']},{row['amount']}\n" for row in ROWS)
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
TABLE = pa.table(
    {
        "user": ["007", "007", "7"],
        "at": pa.array([1719820800000, 1719821400500, 1719822000000], pa.timestamp("ms", "UTC")),
        "amount": [1, 2, 4],
    }
)


def plan(*keys: str, **options: Any) -> sk.Plan:
    source = sk.group_by_key(*(keys or ("user",)), **{"timestamp": "at", **options})
    steps = source.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="1h"))
    return steps.aggregate(visits=sk.count(), spent=sk.sum("amount"))


def written(file: Path, content: str | bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def as_parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(TABLE, buffer)
    return buffer.getvalue()


def as_feather() -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(TABLE, buffer)
    return buffer.getvalue()


def as_stream() -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, TABLE.schema) as stream:
        stream.write_table(TABLE)
    return buffer.getvalue()


CONTENTS: dict[str, str | bytes] = {
    "a.csv": CSV, "a.csv.gz": gzip.compress(CSV.encode()), "a.csv.bz2": bz2.compress(CSV.encode()),
    "a.csv.zst": pa.compress(CSV.encode(), "zstd", asbytes=True),
    "marked.csv": b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode(), "a.tsv": CSV.replace(",", "\t"),
    "tabs.txt": CSV.replace(",", "\t"), "commas.txt": CSV, "semicolons.csv": CSV.replace(",", ";"), "a.jsonl": LINES,
    "a.ndjson": LINES.replace("\n", "\r\n"), "lines.json": LINES, "marked.json": b"\xef\xbb\xbf" + LINES.encode(),
    "a.json.gz": gzip.compress(LINES.encode()), "array.json": json.dumps(ROWS),
    "pretty.json": json.dumps(ROWS, indent=2), "objects.json": "\n".join(json.dumps(row, indent=2) for row in ROWS),
    "a.parquet": as_parquet(), "a.parquet.gz": gzip.compress(as_parquet()), "a.feather": as_feather(),
    "a.arrow": as_stream(), 'it\'s "Ü" [1]*.csv': CSV,
}  # fmt: skip


def told(run: Any) -> list[tuple[Any, ...]]:
    """The table of a run: who, from when to when, how often, and how much."""
    table = run.table()
    table = table.to_pandas() if isinstance(table, pa.Table | pl.DataFrame) else table
    ends = zip(table["user"], table["window_start"], table["window_end"], table["visits"], table["spent"], strict=True)
    return [(user, start.timestamp(), end.timestamp(), visits, spent) for user, start, end, visits, spent in ends]


def sizes(data: Any) -> list[int]:
    """How many rows the session of each row has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Times with an offset")
        found = sk.sessionize(data, by="user", at="at", gap="30m")
    return sorted((found if isinstance(found, pd.DataFrame) else found.to_pandas())["session_rows"])


EXPECTED = [("007", 1719820800.0, 1719821400.5, 2, 3), ("7", 1719822000.0, 1719822000.0, 1, 4)]


@pytest.mark.parametrize("name", list(CONTENTS))
def test_input_refused_every_kind_of_file_is_read(name: str, tmp_path: Path) -> None:
    run = plan().run(written(tmp_path / name, CONTENTS[name]))
    assert told(run) == EXPECTED
    assert isinstance(run.table(), pd.DataFrame)
    assert sizes(tmp_path / name) == [1, 2, 2]


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "a.tsv"])
def test_input_refused_open_files_and_buffers_tell_their_kind(name: str, tmp_path: Path) -> None:
    raw = CONTENTS[name]
    run = plan().run(io.BytesIO(raw if isinstance(raw, bytes) else raw.encode()))
    assert told(run) == EXPECTED
    with written(tmp_path / "no ending", raw).open("rb") as file:
        assert told(plan().run(file)) == EXPECTED
        file.seek(0)
        assert sizes(file) == [1, 2, 2]


OBJECTS: dict[str, tuple[Callable[[Path], Any], type]] = {
    "pandas": (lambda _: TABLE.to_pandas(), pd.DataFrame),
    "pandas with text": (lambda _: pd.DataFrame(ROWS), pd.DataFrame),
    "pandas with times in the index": (lambda _: TABLE.to_pandas().set_index("at"), pd.DataFrame),
    "polars": (lambda _: pl.from_arrow(TABLE), pl.DataFrame),
    "table": (lambda _: TABLE, pa.Table),
    "folder": (lambda folder: written(folder / "day" / "a.parquet", as_parquet()).parent, pd.DataFrame),
    "glob": (lambda folder: str(written(folder / "a.parquet", as_parquet()).with_name("*.parquet")), pd.DataFrame),
    "list of files": (lambda folder: [written(folder / "a.parquet", as_parquet())], pd.DataFrame),
    "address": (lambda folder: written(folder / "a.parquet", as_parquet()).as_uri(), pd.DataFrame),
    "list of dicts": (lambda _: ROWS, pd.DataFrame),
    "dict of lists": (lambda _: {name: [row[name] for row in ROWS] for name in ROWS[0]}, pd.DataFrame),
    "dict of arrays": (lambda _: dict(zip(TABLE.column_names, TABLE.columns, strict=True)), pd.DataFrame),
    "dataset": (lambda folder: ds.dataset(written(folder / "a.parquet", as_parquet())), pa.Table),
    "dataset in memory": (lambda _: ds.dataset(TABLE), pa.Table),
    "ParquetFile": (lambda folder: pq.ParquetFile(written(folder / "a.parquet", as_parquet())), pa.Table),
    "reader": (lambda _: TABLE.to_reader(), pa.Table),
    "LazyFrame": (lambda folder: pl.scan_parquet(written(folder / "a.parquet", as_parquet())), pl.DataFrame),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OBJECTS))
def test_input_refused_every_object_is_read(name: str, tmp_path: Path) -> None:
    make, kind = OBJECTS[name]
    run = plan().run(make(tmp_path))
    assert told(run) == EXPECTED
    assert isinstance(run.table(), kind)
    assert sizes(make(tmp_path)) == [1, 2, 2]


@pytest.mark.parametrize(("frame", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("arrow", pa.Table)])
def test_a_csv_path_in_a_pyarrow_table_out_frame_chooses(frame: Any, kind: type, tmp_path: Path) -> None:
    for data in (written(tmp_path / "a.csv", CSV), ROWS, io.BytesIO(as_parquet()), TABLE.to_pandas(), TABLE):
        run = plan().run(data, frame=frame)
        assert all(isinstance(view, kind) for view in (run.table(), run.changelog(), run.dropped()))
        assert told(run) == EXPECTED
    with pytest.raises(InvalidArgument, match="frame must be a known choice; got 'dask'"):
        API.Plan.run(plan(), ROWS, frame="dask")


def test_a_missing_column_beside_a_name_that_ends_polars_is_told() -> None:
    with pytest.raises(MissingColumn, match=r"column 'user' is not in the data; got 'a.*b', 'at'; name one"):
        sk.sessionize(pl.DataFrame({"a\0b": [1], "at": [0]}), "user", "at", gap="5m")


def test_polars_has_to_be_installed_for_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidArgument, match=r'polars is not installed; got frame="polars"; pip install polars, or'):
        plan().run(ROWS, frame="polars")


def test_keys_that_are_booleans_uuids_dates_and_decimals_become_text() -> None:
    uuid, other = UUID(int=1), UUID(int=2)
    for values, shown in (
        ([True, False], ["false", "true"]),
        ([uuid, other], [str(uuid), str(other)]),
        ([dt.date(2024, 1, 2), dt.date(2024, 1, 1)], ["2024-01-01", "2024-01-02"]),
        ([Decimal("2.50"), Decimal("1.25")], ["1.25", "2.50"]),
        ([2.0, 7.0], [2, 7]),
    ):
        data = {"user": [*values, None], "at": [1, 2, 3], "amount": [1, 1, 1]}
        assert sk.sessionize(pd.DataFrame(data), "user", "at", "1s", unit="ms")["session_id"].nunique() == 2
        for frame in (data, pd.DataFrame(data), pa.table(data), pl.DataFrame(data, strict=False)):
            if isinstance(frame, pl.DataFrame) and frame["user"].dtype == pl.Object:  # UUIDs, as objects
                continue
            run = plan(unit="ms").run(frame)
            assert [row[0] for row in told(run)] == shown
            assert len(run.dropped()) == 1
            assert [run.explain(key=key, window_start=1 + values.index(_as_given(values, key))) for key in shown]


def _as_given(values: list[Any], key: Any) -> Any:
    return next(value for value in values if value == key or str(value).lower() == str(key))


def test_decimals_of_several_lengths_are_keys_as_they_are_written() -> None:
    frame = pd.DataFrame({"user": [Decimal("1.5"), Decimal("1.50")], "at": [1, 2], "amount": 0})
    assert [row[0] for row in told(plan(unit="ms").run(frame))] == ["1.5", "1.50"]


def test_a_key_with_a_fraction_is_refused_with_its_value() -> None:
    with pytest.raises(UnsupportedData) as caught:
        plan(unit="ms").run(pd.DataFrame({"user": [1.0, 2.5], "at": [1, 2], "amount": 0}))
    want = "whole numbers, or text: df['user'].astype(str)"
    assert str(caught.value) == f"key column 'user' has a number with a fraction; got 2.5 in row 1; {want}"


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_sums_and_extremes_of_decimals_are_exact_and_means_floats_with_a_remark(rules: str) -> None:
    prices = [Decimal("0.10"), Decimal("12345678901234567.89"), None, Decimal("12345678901234567.88")]
    data = {"user": ["ada"] * 4, "at": [1, 2, 3, 4], "price": prices}
    named: Any = {name: getattr(sk, name)("price") for name in ("sum", "mean", "min", "max", "last")}
    wide = pa.table(data).set_column(2, "price", pa.array(prices, pa.decimal256(40, 2)))
    for frame in (pd.DataFrame(data), pa.table(data), pl.DataFrame(data), wide):
        steps = plan(unit="ms").aggregate(**named)
        run = run_by(steps, frame, rules=rules, frame="arrow")
        row = run.table().to_pylist()[0]
        total = 0.1 + 12345678901234567.89 + 12345678901234567.88
        assert (row["sum"], row["mean"]) == (Decimal("24691357802469135.87"), total / 3)
        assert (row["min"], row["max"], row["last"]) == (prices[0], prices[1], prices[3])
        assert run.remarks() == ["Decimals become 64-bit floats in mean('price')."]


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(5, 2)])
def test_short_decimals_are_decimals(kind: pa.DataType) -> None:
    data = pa.table({"user": ["a", "a"], "at": [1, 2], "price": pa.array([Decimal("1.50"), Decimal("0.25")], kind)})
    run = plan(unit="ms").aggregate(total=sk.sum("price"), least=sk.min("price")).run(data)
    assert run.table().select(["total", "least"]).to_pylist() == [{"total": Decimal("1.75"), "least": Decimal("0.25")}]


def test_dates_are_midnight_in_the_zone_of_the_plan(tmp_path: Path) -> None:
    rows = {"user": ["ada"], "at": [dt.date(2024, 7, 1)], "amount": [1]}
    for data in (
        rows,
        pa.table(rows),
        pl.DataFrame(rows),
        written(tmp_path / "a.csv", "user,at,amount\na,2024-07-01,1\n"),
    ):
        run = plan(timezone="Europe/Berlin").run(data, frame="pandas")
        assert run.table()["window_start"].tolist() == [pd.Timestamp("2024-07-01", tz="Europe/Berlin")]
        with pytest.raises(UnsupportedData, match="column 'at' has times without a zone; got date32"):
            plan().run(data)


@pytest.mark.parametrize(("data", "telling"), [
    ([("ada", 1)], "a list must hold records; got row 0: tuple; a list of dicts, a list of paths, or pandas.Data"),
    ([{"user": "ada"}, 5], "a list must hold records; got row 1: int"),
    ({"user": "ada", "at": 1}, "a dict must hold columns; got 'user': 'ada'; a list for each column, or a list of"),
    ({"user": ["ada"], "at": []}, "the columns are not equally long; got 'user': 1, 'at': 0; a value for each"),
    ([], "column 'user' is not in the data; got no columns"), ({}, "column 'user' is not in the data; got no columns"),
    (io.BytesIO(), "there is nothing to read; got the buffer; one with records; after writing to it, seek(0)"),
    (io.BytesIO(b"PK\x03\x04rest"), "a ZIP archive is not read; got the buffer; pandas.read_excel(…) if it is an"),
    (io.BytesIO(b"PAR1 torn"), "the file cannot be read; got"),
    (pl.LazyFrame(), "column 'user' is not in the data; got no columns"),
    (pl.LazyFrame({"user": [1]}).select(pl.col("nowhere")), "the LazyFrame cannot be collected; got"),
])  # fmt: skip
def test_a_mistake_in_memory_gets_the_right_call(data: Any, telling: str) -> None:
    with pytest.raises(SessionkitError) as caught:
        plan().run(data)
    assert telling in str(caught.value)


def test_rows_of_a_list_may_lack_columns_and_objects_come_through() -> None:
    rows = [{"user": "ada", "at": 1}, {"at": 2, "user": "ada", "amount": 5, "thing": {1}}, {"user": None, "at": 3}]
    steps = plan(unit="ms").aggregate(spent=sk.sum("amount"), things=sk.reduce(lambda a, b: a | b, "thing"))
    run = steps.run(rows)
    assert run.table()[["spent", "things"]].to_numpy().tolist() == [[5, {1}]]
    assert len(run.dropped()) == 1


def test_a_dataset_is_read_in_the_order_of_the_names_of_its_files(tmp_path: Path) -> None:
    files = []
    for number in (2, 1):
        files.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.table({"user": ["a"] * 2, "at": [number * 10, number * 10 + 1], "amount": [1, 1]}), files[-1])
    dataset = ds.dataset(files)
    for data in (dataset, dataset.filter(ds.field("at") > 10)):
        batch = plan(unit="ms").run(data).trace.batch
        assert batch.timestamp_ms.tolist() == [10, 11, 20, 21][-len(batch) :]


def test_opened_tells_what_the_user_gave(tmp_path: Path) -> None:
    source = Source(keys=("user",), timestamp="at")
    frame = pd.DataFrame({"user": ["a"], "at": [1], "thing": [{1}]}, index=[7])
    opened = open_table(frame, None, source)
    assert opened.original is frame
    assert (opened.frame, opened.table.column_names, opened.objects) == (
        "pandas",
        ["user", "at", "thing"],
        {"thing": [{1}]},
    )
    lazy = open_table(pl.LazyFrame({"user": ["a"], "at": [1], "more": [2]}), ["at"], source)
    assert (lazy.frame, lazy.original.columns, lazy.table.column_names) == ("polars", ["at"], ["at"])
    of_file = open_table(written(tmp_path / "a.csv", CSV), None, source)
    assert (of_file.frame, of_file.original.column_names) == ("pandas", ["user", "at", "amount"])
    with pytest.raises(InvalidData, match=r"column 'a' appears 2 times"):
        open_table(pa.table([[1], [2]], names=["a", "a"]), None, source)
