"""What people have, given as they have it: an answer, or a message with the right call."""

import datetime as dt
import decimal
import gzip
import io
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import SessionkitError

ROWS = [
    {"user": "ada", "at": "2024-07-01T09:00:00Z", "amount": 2.5},
    {"user": "ada", "at": "2024-07-01T09:10:00Z", "amount": 3.0},
    {"user": "bo", "at": "2024-07-01T09:05:00Z", "amount": 4.0},
    {"user": "ada", "at": "2024-07-01T11:00:00Z", "amount": 1.0},
]
CSV = "user,at,amount\n" + "".join(f"{row['user']},{row['at']},{row['amount']}\n" for row in ROWS)
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS).assign(at=pd.to_datetime([row["at"] for row in ROWS]))


def table() -> pa.Table:
    return pa.Table.from_pandas(frame(), preserve_index=False)


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(path: Path) -> Path:
    pq.write_table(table(), path)
    return path


def folder(path: Path) -> Path:
    (path / "day").mkdir()
    pq.write_table(table().slice(0, 2), path / "day" / "1.parquet")
    pq.write_table(table().slice(2), path / "day" / "2.parquet")
    (path / "day" / "_SUCCESS").touch()
    return path / "day"


def feather(path: Path) -> Path:
    pyarrow.feather.write_feather(table(), str(path))
    return path


def keyed(keys: list[Any]) -> pd.DataFrame:
    return frame().assign(user=keys)


# As a new user would give them: in each two sessions of the first key, and one of the second.
ANSWERED: dict[str, Callable[[Path], Any]] = {
    "a pandas frame": lambda path: frame(),
    "a pandas frame with text times": lambda path: pd.DataFrame(ROWS),
    "a polars frame": lambda path: pl.from_pandas(frame()),
    "a polars frame that is still lazy": lambda path: pl.from_pandas(frame()).lazy(),
    "a pyarrow table": lambda path: table(),
    "a pyarrow dataset": lambda path: ds.dataset(folder(path), format="parquet", exclude_invalid_files=True),
    "a Parquet file that is open": lambda path: pq.ParquetFile(parquet(path / "clicks.parquet")),
    "a list of dicts": lambda path: ROWS,
    "a dict of columns": lambda path: {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "a CSV file": lambda path: saved(path / "clicks.csv", CSV),
    "a CSV file as text": lambda path: str(saved(path / "clicks.csv", CSV)),
    "a CSV file of Excel": lambda path: saved(
        path / "clicks.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode()
    ),
    "a packed CSV file": lambda path: saved(path / "clicks.csv.gz", gzip.compress(CSV.encode())),
    "a CSV file with semicolons": lambda path: saved(path / "clicks.csv", CSV.replace(",", ";")),
    "a TSV file": lambda path: saved(path / "clicks.tsv", CSV.replace(",", "\t")),
    "a text file": lambda path: saved(path / "clicks.txt", CSV.replace(",", "\t")),
    "JSON lines": lambda path: saved(path / "clicks.jsonl", LINES),
    "JSON lines called .json": lambda path: saved(path / "clicks.json", LINES),
    "JSON": lambda path: saved(path / "clicks.json", json.dumps(ROWS)),
    "a Parquet file": lambda path: parquet(path / "clicks.parquet"),
    "a Feather file": lambda path: feather(path / "clicks.feather"),
    "a folder": folder,
    "a glob": lambda path: str(folder(path) / "*.parquet"),
    "a list of files": lambda path: sorted(folder(path).glob("*.parquet")),
    "a file:// address": lambda path: parquet(path / "clicks.parquet").as_uri(),
    "the bytes of a file": lambda path: io.BytesIO(CSV.encode()),
    "keys that are true or false": lambda path: keyed([True, True, False, True]),
    "keys that are whole floats": lambda path: keyed([1.0, 1.0, 2.0, 1.0]),
    "keys that are UUIDs": lambda path: keyed([uuid.UUID(int=each) for each in (1, 1, 2, 1)]),
    "keys that are decimals": lambda path: keyed([decimal.Decimal(each) for each in ("1.5", "1.5", "2.5", "1.5")]),
    "keys that are dates": lambda path: keyed([dt.date(2024, 7, each) for each in (1, 1, 2, 1)]),
    "sums of decimals": lambda path: frame().assign(amount=[decimal.Decimal(row["amount"]) for row in ROWS]),
    "a time in the index": lambda path: frame().set_index("at"),
    "integers in a category": lambda path: keyed([1, 1, 2, 1]).astype({"user": "category"}),
}
# What cannot be read says what to write instead.
TOLD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no such file": (lambda path: path / "clicks.csv", "there is no such file"),
    "an empty folder": (lambda path: path, "the folder holds no file with records"),
    "an Excel file": (lambda path: saved(path / "clicks.xlsx", b"PK\x03\x04"), "read_excel"),
    "a zip file": (lambda path: saved(path / "clicks.zip", b"PK\x03\x04"), "unzip|unpack|extract"),
    "text in place of a path": (lambda path: io.StringIO(CSV), "BytesIO"),
    "bytes in place of a file": (lambda path: CSV.encode(), "BytesIO"),
    "a series": (lambda path: frame()["at"], "to_frame"),
    "an iterator": (lambda path: iter(ROWS), "list"),
    "a NumPy array": (lambda path: frame().to_numpy(), "DataFrame"),
    "keys with a fraction": (lambda path: keyed([1.5, 1.5, 2.5, 1.5]), "astype"),
    "times that are words": (lambda path: [{**row, "at": "noon"} for row in ROWS], "ISO 8601"),
}


def plan() -> sk.Plan:
    return (
        sk.group_by_key("user", timestamp="at")
        .windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="1h"))
        .aggregate(clicks=sk.count(), spent=sk.sum("amount"))
    )


@pytest.mark.lengthy
@pytest.mark.parametrize("given", ANSWERED.values(), ids=ANSWERED)
def test_an_answer(given: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    result = plan().run(given(tmp_path)).table()
    found = result if isinstance(result, pd.DataFrame) else result.to_pandas()
    assert sorted(found["clicks"]) == [1, 1, 2] and sorted(map(float, found["spent"])) == [1.0, 4.0, 5.5]
    rows: Any = sk.sessionize(given(tmp_path / "again"), by="user", at="at", gap="30m")
    frame_of_rows = rows if isinstance(rows, pd.DataFrame) else rows.to_pandas()
    assert sorted(frame_of_rows["session_rows"]) == [1, 1, 2, 2]


@pytest.mark.parametrize(("given", "said"), TOLD.values(), ids=TOLD)
def test_a_message_with_the_right_call(given: Callable[[Path], Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(SessionkitError, match=said):
        plan().run(given(tmp_path))
