"""Records from files: only the columns named, and a clear word where a file is not what it seems."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn
from sessionkit.records.files.tables import read_file

TABLE = pa.table({"user": ["ada", "bob", "ada"], "at": [1, 2, 3], "note": ["x", "y", "z"]})
CSV = "user,at,note\nada,1,x\nbob,2,y\nada,3,z\n"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    file = tmp_path / "clicks.parquet"
    pq.write_table(TABLE, file, row_group_size=2)
    return file


def test_parquet_with_keys_as_dictionaries(parquet: Path) -> None:
    table = read_file(parquet, ["at", "user"], ["user"]).table
    assert table.column_names == ["at", "user"]
    assert table.to_pydict() == {"at": [1, 2, 3], "user": ["ada", "bob", "ada"]}
    assert pa.types.is_dictionary(table.schema.field("user").type)


@pytest.mark.parametrize("name", ["clicks.pq", "CLICKS.PARQUET", "a.b.parquet"])
def test_names_of_parquet(parquet: Path, name: str) -> None:
    assert len(read_file(str(parquet.rename(parquet.with_name(name))), ["at"], []).table) == 3


@pytest.mark.parametrize("name", ["clicks.csv", "clicks.CSV", "clicks.csv.gz"])
def test_csv(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(CSV.encode()) if name.endswith("gz") else CSV.encode())
    assert read_file(file, ["at", "user"], ["user"]).table.to_pydict() == {
        "at": [1, 2, 3],
        "user": ["ada", "bob", "ada"],
    }


def test_a_column_that_is_not_there(parquet: Path, tmp_path: Path) -> None:
    text = tmp_path / "clicks.csv"
    text.write_text(CSV, encoding="utf-8")
    for file in (parquet, text):
        telling = rf"column 'when' is not in {file.name}; got \['user', 'at', 'note'\]; name one of these"
        with pytest.raises(MissingColumn, match=telling):
            read_file(file, ["user", "when"], [])


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    twice, text = tmp_path / "twice.parquet", tmp_path / "twice.csv"
    pq.write_table(pa.table([[1], [2], [3]], names=["at", "at", "user"]), twice)
    text.write_text("at,at,user\n1,2,3\n", encoding="utf-8")
    for file in (twice, text):
        with pytest.raises(InvalidData, match=f"column 'at' is in {file.name} more than once"):
            read_file(file, ["at"], [])
        assert len(read_file(file, ["user"], []).table) == 1


@pytest.mark.parametrize("name", ["missing.parquet", "", "a\0b.csv", "x" * 5_000])
def test_no_such_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match="there is no such file; got"):
        read_file(str(tmp_path / name) if name else "", ["at"], [])


@pytest.mark.parametrize("name", ["clicks.dat", "clicks", "parquet"])
def test_a_kind_that_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CSV, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=rf"the file is of an unknown kind; got {name}; a file of Parquet, CSV"):
        read_file(tmp_path / name, ["at"], [])


@pytest.mark.parametrize(("name", "content"), [
    ("empty.parquet", b""), ("text.parquet", CSV.encode()), ("empty.csv", b""), ("ragged.csv", b"user,at\na,1\nb\n"),
    ("torn.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9]),
])  # fmt: skip
def test_a_file_that_is_not_whole(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidData, match=f"the file cannot be read; got .*; check that {name} is complete"):
        read_file(tmp_path / name, ["user"], [])


def test_a_torn_parquet_file(parquet: Path) -> None:
    raw = parquet.read_bytes()
    parquet.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidData, match="the file cannot be read"):
        read_file(parquet, ["at"], [])
