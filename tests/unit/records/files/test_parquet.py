"""Parquet with page checksums: wherever a file is read here, a page that is not what was written is refused."""

import ast
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit
import sessionkit as sk
from sessionkit.errors import InvalidData
from sessionkit.records import samples
from sessionkit.spark.reading.replay_source import ReplayReader, Stretch
from sessionkit.spark.reading.row_groups import ParquetFile, Wanted, read, row_groups

SCHEMA = pa.schema([("user", pa.string()), ("at", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64())])
ROWS = 1_000
ODD = 0x5A5A5A5A5A5A5A5A  # a time that is nowhere else in the file


def written(folder: Path, *, checksums: bool) -> Path:
    at = [ODD if row == 500 else row for row in range(ROWS)]
    columns = {"user": ["ada"] * ROWS, "at": at, "partition": [0] * ROWS, "offset": range(ROWS)}
    file = folder / "clicks.parquet"
    pq.write_table(
        pa.table({name: list(column) for name, column in columns.items()}, SCHEMA),
        file,
        compression="none",
        use_dictionary=["user"],
        write_page_checksum=checksums,
        write_statistics=["offset", "partition"],
    )
    return file


def flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    place = raw.index(ODD.to_bytes(8, "little"))
    raw[place] ^= 1
    file.write_bytes(raw)


def by_a_plan(file: Path) -> object:
    steps = sk.group_by_key("user", timestamp="at", unit="ms")
    return steps.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace=0)).count().run(file)


def by_a_task(file: Path) -> object:
    names = tuple(SCHEMA.names)
    wanted = Wanted(names, SCHEMA, names.index("partition"), names.index("offset"))
    return list(read(row_groups([ParquetFile(str(file), file.stat().st_size)], wanted), wanted))


def by_the_replay(file: Path) -> object:
    return list(ReplayReader({"path": str(file)}).read(Stretch(0, ROWS)))


def by_the_sample(file: Path) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "sample_path", lambda _name: file)
        return sk.load_sample()


@pytest.mark.parametrize("way", [by_a_plan, by_a_task, by_the_replay, by_the_sample])
@pytest.mark.filterwarnings("ignore:column 'at' read as")
def test_a_flipped_bit_is_refused_where_a_file_has_checksums(tmp_path: Path, way: Callable[[Path], object]) -> None:
    file = written(tmp_path, checksums=True)
    assert way(file) is not None
    whole = file.read_bytes()
    flip(file)
    with pytest.raises(
        InvalidData, match=r"the file cannot be read; got .*CRC checksum.*; check that clicks.parquet is complete"
    ):
        way(file)
    file.write_bytes(whole)
    assert way(file) is not None


def test_a_file_without_checksums_is_read(tmp_path: Path) -> None:
    assert by_a_plan(written(tmp_path, checksums=False)) is not None


@pytest.mark.lengthy
def test_parquet_is_read_in_one_place() -> None:
    """`pq.read_table` and `pq.ParquetFile` verify nothing unless they are asked to."""
    package = Path(sessionkit.__file__).parent
    readers = {
        file.name
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("read_table", "ParquetFile", "ParquetDataset", "read_pandas", "read_parquet", "dataset")
    }
    assert readers == {"parquet.py"}
