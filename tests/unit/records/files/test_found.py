"""Which files a path means: folders, globs, lists, URLs, and what is said of those that are none."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, SessionkitError
from sessionkit.records.files.tables import read_file

ROWS = "user,at\nada,{}\n"


def folder(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def times(path: Any) -> list[Any]:
    return read_file(path, ["at"]).table["at"].to_pylist()


def refused(path: Any, telling: str, columns: list[str] | None = None) -> None:
    with pytest.raises(SessionkitError) as caught:
        read_file(path, columns)
    assert telling in str(caught.value)


def test_a_folder_is_read_in_the_order_of_names_without_what_is_hidden(tmp_path: Path) -> None:
    marks: dict[str, str | bytes] = {
        "_SUCCESS": "", ".part.crc": "x", "part.crc": "x", "_temporary/0": "x", ".x/y": "x",
    }  # fmt: skip
    parts: dict[str, str | bytes] = {f"{name}.csv": ROWS.format(at) for name, at in (("b", 2), ("a", 1), ("sub/c", 3))}
    data = folder(tmp_path / 'it\'s "Ü"', marks | parts | {"empty.csv": ""})
    assert times(data) == times(str(data)) == [1, 2, 3]
    assert times(data / "*.csv*") == times(f"file://{data}".replace(" ", "%20") + "/[ab].csv") == [1, 2]


def test_a_list_is_read_in_the_order_of_names_and_says_so(tmp_path: Path) -> None:
    data = folder(tmp_path, {f"{at}.csv": ROWS.format(at) for at in (1, 2, 3)})
    read = read_file([data / "3.csv", str(data / "1.csv")], ["at"])
    assert read.table["at"].to_pylist() == [1, 3]
    telling = "the files of the list are read in the order of their names, which is not the order of the list"
    guessed = (
        'the list holds 2 files, and the type of \'at\' (int64) was guessed; types={"at": "string"} in group_by_key'
    )
    assert read.remarks == [telling, f"{guessed} would set one"]


def test_the_home_folder_and_urls_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, {"a b.csv": ROWS.format(5)})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert times("~/a b.csv") == times(f"file://{tmp_path}/a%20b.csv") == times(tmp_path / "a b.csv") == [5]


def test_folders_named_by_values_become_columns(tmp_path: Path) -> None:
    for day, shop, at in (("2024-07-01", "007", 1), ("2024-07-02", "__HIVE_DEFAULT_PARTITION__", 2)):
        place = tmp_path / f"day={day}" / f"shop={shop}" / "number=4"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"at": [at]}), place / "x.parquet")
    read = read_file(tmp_path, ["shop", "number", "at", "day"], keys=["shop"])
    assert read.table.to_pydict() == {
        "shop": ["007", None],
        "number": [4, 4],
        "at": [1, 2],
        "day": ["2024-07-01", "2024-07-02"],
    }
    assert "holds 2 files, and the type of 'number' (int64) was guessed; types=" in read.remarks[0]
    assert read_file(tmp_path / "day=*" / "*" / "*" / "*.parquet").table.column_names == ["at", "day", "shop", "number"]
    assert read_file(tmp_path, ["number"], types={"number": "string"}).table["number"].to_pylist() == ["4", "4"]


def test_types_that_differ_from_file_to_file_are_those_of_one_long_file(tmp_path: Path) -> None:
    data = folder(tmp_path, {"a.csv": "v,at\n1,2024-07-01T00:00:00Z\n", "b.csv": "at,v\n2024-07-01 02:00:00,x\n"})
    assert read_file(data).table.to_pydict() == {"v": ["1", "x"], "at": ["2024-07-01T00:00:00Z", "2024-07-01 02:00:00"]}


def test_files_whose_columns_differ_are_named(tmp_path: Path) -> None:
    data = folder(tmp_path / "csv", {"a.csv": "user,at\nada,1\n", "b.csv": "user,when\nada,1\n"})
    with pytest.raises(MissingColumn, match=r"column 'at' is not in b.csv; got \['user', 'when'\]"):
        read_file(data, ["at"])
    with pytest.raises(InvalidData, match=r"b.csv has other columns than a.csv; got 'at', 'when' in one of them only"):
        read_file(data)
    assert read_file(data, ["user"]).table.num_rows == 2
    parquet = folder(tmp_path / "parquet", {})
    parquet.mkdir()
    for name, values in (("a", [1]), ("b", [2]), ("c", ["x"])):
        pq.write_table(pa.table({"v": values}), parquet / f"{name}.parquet")
    with pytest.raises(InvalidData, match=r"c.parquet has other types than a.parquet; got .*int64 vs string"):
        read_file(parquet)


def test_a_mistake_gets_the_right_call(tmp_path: Path) -> None:
    data = folder(
        tmp_path, {"clicks.csv": "user;at\nada;1;2\n", "clicks.xlsx": "x", "clicks.zip": "x", "clicks.dat": "x"}
    )
    refused(data / "clicks.csv", "got ['user;at']; pass separator=\";\" in group_by_key", ["at"])
    refused(data / "clicks.xlsx", f'not read; got clicks.xlsx; run the plan on pandas.read_excel("{data}/clicks.xlsx")')
    refused(
        data / "clicks.zip", f'plan on pandas.read_csv("{data}/clicks.zip") if one CSV file is in it; unpack others'
    )
    refused(data / "clicks.dat", "the file is of an unknown kind; got clicks.dat; a file of Parquet, CSV, TSV, JSON")
    refused(data / "click.csv", "there is no such file; got", None)
    refused(data / "click.csv", 'perhaps "clicks.csv"?')
    refused(data / "nothing*.csv", "there is no such file")
    refused([], "the list names no file")
    (data / "empty").mkdir()
    refused(data / "empty", "the folder holds no file with records; got")
    mixed = folder(tmp_path / "mixed", {"a.csv": "user,at\n", "b.json": "{}", "README.md": "x"})
    refused(mixed, "the file is of an unknown kind; got README.md")
    (mixed / "README.md").unlink()
    refused(
        mixed, "holds files of several kinds; got CSV (a.csv), JSON (b.json); files of one kind, such as those of a"
    )
    folder(tmp_path / "delta", {"_delta_log/0.json": "{}", "a.parquet": "x"})
    refused(tmp_path / "delta", "the folder is a Delta table")


@pytest.mark.parametrize("where", ["here", "above"])
def test_links_that_lead_in_a_circle_or_nowhere(tmp_path: Path, where: str) -> None:
    data = folder(tmp_path / "data", {"a.csv": ROWS.format(1), "sub/b.csv": ROWS.format(2)})
    os.symlink(data if where == "above" else data / "sub", data / "sub" / "loop")
    os.symlink(data / "sub", tmp_path / "linked")
    assert times(data) == [1, 2]
    assert times(tmp_path / "linked") == ([2] if where == "here" else [2, 1])
    os.symlink("self.csv", data / "self.csv")
    refused(data / "self.csv", "there is no such file")
    refused(data, "a link in the folder leads nowhere; got")


class _Bucket:
    """As much of a file system of fsspec as is used."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def isdir(self, path: str) -> bool:
        return any(name.startswith(path.rstrip("/") + "/") for name in self.files)

    def isfile(self, path: str) -> bool:
        return path in self.files

    exists = isfile

    def find(self, path: str, *, detail: bool) -> dict[str, dict[str, int]]:
        assert detail
        return {name: {"size": len(raw)} for name, raw in self.files.items() if name.startswith(path)}

    unstrip_protocol = "s3://{}".format

    def glob(self, path: str) -> list[str]:
        return [name for name in self.files if Path(name).match(path)]

    def open(self, path: str, mode: str) -> Any:
        import io

        assert mode == "rb"
        return io.BytesIO(self.files[path])


def test_urls_are_read_through_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"at": [3]}), tmp_path / "x.parquet")
    files = {
        "b/data/day=2/b.csv": ROWS.format(2).encode(),
        "b/data/day=1/a.csv": ROWS.format(1).encode(),
        **dict.fromkeys(("b/data/_SUCCESS", "b/y.xlsx"), b""),
        "b/x.parquet": (tmp_path / "x.parquet").read_bytes(),
    }

    def url_to_fs(url: str) -> tuple[_Bucket, str]:
        if "denied" in url:
            raise PermissionError("access denied")
        if "gs://" in url:
            raise ImportError("Install gcsfs")
        return _Bucket(files), url.removeprefix("s3://")

    core: Any = ModuleType("fsspec.core")
    core.url_to_fs = url_to_fs
    monkeypatch.setitem(sys.modules, "fsspec", ModuleType("fsspec"))
    monkeypatch.setitem(sys.modules, "fsspec.core", core)
    assert read_file("s3://b/data").table.to_pydict() == {"user": ["ada"] * 2, "at": [1, 2], "day": [1, 2]}
    assert read_file("s3://b/data/day=*/*.csv").table["day"].to_pylist() == [1, 2]
    assert times("s3://b/x.parquet") == [3]
    assert times(["s3://b/data/day=1/a.csv"]) == [1]
    refused("s3://b/y.xlsx", 'got y.xlsx; run the plan on pandas.read_excel("s3://b/y.xlsx")')
    refused("s3://b/nowhere.csv", "there is no such file; got s3://b/nowhere.csv")
    refused("s3://denied/a.csv", "the URL s3://denied/a.csv cannot be read; got PermissionError: access denied")
    refused("gs://b/a.csv", "got gs://b/a.csv; pip install gcsfs, or the path of a file on this machine")


def test_without_fsspec_a_url_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(
        InvalidArgument, match=r"a package that is not installed; got s3://b/a\.csv; pip install s3fs, or"
    ):
        read_file("s3://b/a.csv")


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_what_is_piped_in_is_not_read_and_says_so(path: str) -> None:
    refused(path, "what is piped in is not read; got")
