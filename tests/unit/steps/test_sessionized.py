"""`sessionize(out=)`: the same rows as in memory, in the same order, whatever fits into a part; and what it refuses."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.base.process import check_room
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, NotBuilt, TooLarge, UnsupportedData
from sessionkit.steps import ranges
from sessionkit.steps import sessionized as steps

COLUMNS: dict[str, Any] = {"by": "user", "at": "at", "gap": "30s"}


def small(monkeypatch: pytest.MonkeyPatch, part: int = 40, step: int = 25) -> None:
    for module, name, number in (
        (ranges, "PART_ROWS", part), (ranges, "STEP_ROWS", step), (ranges, "_SAMPLE", 30), (steps, "STEP_ROWS", step),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, number)


def rows(count: int = 600, seed: int = 1, *, shape: str = "zipf", missing: float = 0.05) -> pa.Table:
    """Rows of users, many of a few of them, on devices, in no order of time and some of equal time."""
    rng = np.random.default_rng(seed)
    kinds = {"zipf": rng.zipf(1.3, count) % 40, "one": np.zeros(count, int), "each": np.arange(count)}
    user = kinds[shape.split(maxsplit=1)[0]]
    user = np.sort(user) if "sorted" in shape else user
    names = [None if gone else f"user {number}" for number, gone in zip(user, rng.random(count) < missing, strict=True)]
    return pa.table(
        {
            "user": pa.array(user - 20) if "integers" in shape else pa.array(names, pa.string()),
            "device": pa.array(["phone", "tv", None], pa.string()).take(pa.array(rng.integers(0, 3, count))),
            "at": pa.array(1_767_225_600_000 + rng.integers(0, 60_000, count) * 100, pa.timestamp("ms", "UTC")),
            "event": pa.array(["view", "login", "logout"]).take(pa.array(rng.integers(0, 3, count))),
            "amount": pa.array(rng.random(count), mask=rng.random(count) < 0.1),
        }
    )


def written(table: pa.Table, folder: Path, **options: Any) -> pa.Table:
    """What it writes of a file with these rows, after a look at what it says of them."""
    pq.write_table(table, folder / "in.parquet", row_group_size=97)
    made = sk.sessionize(folder / "in.parquet", **{**COLUMNS, **options}, out=folder / "out")
    assert made.rows == {"out": len(table)} and made.record_count == len(table)
    assert sorted(path.name for path in folder.iterdir()) == ["in.parquet", "out"]
    return pq.read_table(folder / "out")


def check_same(found: pa.Table, table: pa.Table, **options: Any) -> None:
    expected = sk.sessionize(table, **{**COLUMNS, **options})
    assert sorted(found.column_names) == sorted(expected.column_names)
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore:.*are in no window")
@pytest.mark.parametrize("shape", ["zipf", "zipf sorted", "zipf integers", "one", "each", "each sorted integers"])
@pytest.mark.parametrize("by", ["user", ["user", "device"]], ids=["one column", "two columns"])
def test_the_rows_are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, by: Any) -> None:
    small(monkeypatch)
    table = rows(shape=shape)
    check_same(written(table, tmp_path, by=by), table, by=by)


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore:.*in no window")
@pytest.mark.parametrize("options", [
    {"max_rows": 2, "ids": "key"}, {"ids": "hash", "new_at": "00:30", "timezone": "Asia/Kathmandu"}, {"by": None},
    {"starts_when": ("event", "login"), "ends_when": ("event", "logout"), "prefix": "my_"}, {"offset": "amount"},
    {"gap": {"user 1": "5s", None: "1m"}, "max_length": "2m", "new_when": "device"}, {"partition": "place"},
])  # fmt: skip
def test_with_any_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    small(monkeypatch)
    table = rows().append_column("place", pa.array(np.arange(600) % 3))
    table = table.set_column(4, "amount", pa.array(np.arange(600)[::-1]))
    check_same(written(table, tmp_path, **options), table, **options)


@pytest.mark.filterwarnings("ignore:.*in no window")
@pytest.mark.parametrize("count", [0, 1, 24, 41])
def test_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    small(monkeypatch)
    check_same(written(rows(count), tmp_path), rows(count))


def parts_of(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """The rows that are looked at together from now on; the first is that of no rows."""
    seen: list[pa.Table] = []
    cut = steps.SessionsJob.cut

    def looked_at(job: steps.SessionsJob, table: pa.Table, *more: Any) -> Any:
        seen.append(table)
        return cut(job, table, *more)

    monkeypatch.setattr(steps.SessionsJob, "cut", looked_at)
    return seen


@pytest.mark.filterwarnings("ignore:.*in no window")
@pytest.mark.parametrize("shape", ["zipf", "zipf sorted", "each", "zipf integers sorted"])
def test_a_key_is_in_one_part_unless_it_is_too_long_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    small(monkeypatch)
    seen, table = parts_of(monkeypatch), rows(shape=shape, missing=0.3)
    check_same(written(table, tmp_path), table)
    parts = [part["user"].drop_null().to_pylist() for part in seen[1:]]
    assert all(len(users) <= 40 or len({*users}) == 1 for users in parts)
    counts = Counter(user for users in parts for user in {*users})
    long = {user for user, count in Counter(table["user"].to_pylist()).items() if count > 40}
    assert {user for user, count in counts.items() if count > 1} <= long
    assert bool(long - {None}) == (shape != "each")


@pytest.mark.filterwarnings("ignore:.*in no window")
@pytest.mark.parametrize("options", [
    {}, {"by": None}, {"max_rows": 2, "ids": "key"}, {"gap": "10m"}, {"gap": "10m", "max_length": "20s"},
    {"starts_when": ("event", "login"), "new_at": "00:30"}, {"until": "until"}, {"on_bad_time": "drop"},
    {"partition": "place"}, {"gap": "1h", "max_rows": 2, "ids": "key"}, {"gap": "1h", "ends_when": ("event", "logout")},
    {"until": "until", "max_rows": 3}, {"gap": ("column", "gap"), "new_when": "device"},
])  # fmt: skip
def test_a_long_key_is_read_by_its_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """What is held of it is a part, and the session that may go on, unless there are partitions."""
    small(monkeypatch)
    rng, table = np.random.default_rng(3), rows(shape="one", missing=0)
    at = 1_767_225_600_000 + rng.choice([0, 900_000, 1_800_000, 2_700_000], 600) + rng.integers(0, 600, 600) * 1_000
    gone = rng.random(600) < 0.05 if "on_bad_time" in options else None
    columns = {"at": at, "until": at + rng.integers(0, 9_000, 600)}
    for name, column in columns.items():
        times = pa.array(column, mask=gone).cast(pa.timestamp("ms", "UTC"))
        table = table.drop_columns([name] if name == "at" else []).append_column(name, times)
    table = table.append_column("place", pa.array(np.arange(600) % 3))
    table = table.append_column("gap", pa.array(np.where(np.arange(600) % 7, "20s", "2m")))
    seen = parts_of(monkeypatch)
    check_same(written(table, tmp_path, **options), table, **options)
    assert len(seen) > 12 or "partition" in options
    if "until" not in options and options.get("gap") != ("column", "gap") and "partition" not in options:
        longest = max(pq.read_table(tmp_path / "out")["session_rows"].drop_null().to_pylist())
        assert max(map(len, seen)) <= 40 + 20 + longest


def test_a_session_that_does_not_fit_into_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(steps, "check_room", lambda count, _bytes, *words: check_room(count, 2**50, *words))
    pq.write_table(rows(shape="one", missing=0), tmp_path / "in.parquet")
    with pytest.raises(TooLarge, match="rows of one session"):
        sk.sessionize(tmp_path / "in.parquet", **COLUMNS, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_rows_of_one_key_and_time_that_do_not_fit_into_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    monkeypatch.setattr(ranges, "check_room", lambda count, _bytes, *words: check_room(count, 2**50, *words))
    table = rows(shape="one", missing=0).append_column("place", pa.array([0] * 600))
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(TooLarge, match="rows that cannot be told apart"):
        sk.sessionize(tmp_path / "in.parquet", **COLUMNS, partition="place", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_text_and_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    table = rows(missing=0)
    frame = table.to_pandas()
    for number, part in enumerate(np.array_split(np.arange(600), 3)):
        frame.iloc[part].to_csv(tmp_path / f"{number}.csv", index=False)
    made = sk.sessionize(f"{tmp_path}/*.csv", **COLUMNS, types={"amount": "string"}, out=tmp_path / "out")
    found, expected = pd.read_parquet(tmp_path / "out"), sk.sessionize(frame, **COLUMNS)
    assert found["session_id"].tolist() == expected["session_id"].tolist() and found["user"].equals(frame["user"])
    assert found["amount"].dropna().map(type).unique().tolist() == [str]
    assert "and the type of 'at'" in made.remarks()[0]


def test_what_is_to_be_known_is_said_once_for_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that one part has is no word worth; one that none has is."""
    small(monkeypatch)
    table = rows(missing=0.1)
    table = table.set_column(3, "event", pa.array([*["login"], *["view"] * 599]))
    pq.write_table(table, tmp_path / "in.parquet")
    rules: dict[str, Any] = {"starts_when": ("event", "login"), "ends_when": ("event", "bye")}
    gap = {"user 1": "5s", "user 2": "9s", "cy": "1m", None: "30s"}
    made = sk.sessionize(str(tmp_path / "in.parquet"), **COLUMNS | {"gap": gap}, **rules, out=tmp_path / "out")
    none = table["user"].null_count
    assert made.remarks() == [
        f"{none} of 600 records have no key ('user') and are in no window.",
        "gap={…} names keys that no row has: 'cy'.",
        "ends_when applies to no row: none has 'bye' in column 'event', whose first values are 'view'.",
    ]
    assert repr(made).startswith("Written: 600 records, 0 dropped · out: 600 rows")


def test_an_error_names_the_row_of_the_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    table = rows(missing=0)
    frame = table.to_pandas()
    frame["until"] = frame["at"].where(frame.index != 417, frame["at"] - pd.Timedelta("1s"))
    frame.to_parquet(tmp_path / "in.parquet")
    with pytest.raises(InvalidData, match="has ends before column 'at'; got 1, the first in row 417;"):
        sk.sessionize(tmp_path / "in.parquet", **COLUMNS, until="until", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_what_is_in_the_place_stays(tmp_path: Path) -> None:
    first = written(rows(), tmp_path)
    again: dict[str, Any] = {"data": tmp_path / "in.parquet", **COLUMNS, "out": tmp_path / "out"}
    with pytest.raises(InvalidArgument, match="there is something of this name already"):
        sk.sessionize(**again)
    assert pq.read_table(tmp_path / "out").equals(first)
    sk.sessionize(**again | {"gap": "1h"}, overwrite=True)
    assert not pq.read_table(tmp_path / "out").equals(first)
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"mine\.txt"):
        sk.sessionize(**again, overwrite=True)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(rows(), tmp_path / "in.parquet")
    looked, real = [], steps.of_files

    def of_files(*given: Any) -> Any:
        looked.append(real(*given))
        return looked[-1]._replace(read=lambda *_: iter([])) if len(looked) == 2 else looked[-1]

    monkeypatch.setattr(steps, "of_files", of_files)
    with pytest.raises(InvalidData, match="the files changed while they were read; got 600 rows at first, and 0 later"):
        sk.sessionize(tmp_path / "in.parquet", **COLUMNS, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(("options", "error", "telling"), [
    ({"data": rows(3)}, InvalidArgument, "out= takes the paths of files; got Table; sessionize"),
    ({"grace": "5m"}, NotBuilt, "rows are written without a grace; got grace='5m'; sessionize without grace="),
    ({"on_bad_time": "partition_time"}, NotBuilt, r"sessionize\(out=\) looks at a part of the records at a time"),
    ({"by": "nobody"}, MissingColumn, "column 'nobody' is not in in.parquet"),
    ({"gap": "soon"}, InvalidArgument, "gap is no length and no column"),
    ({"at": "event"}, InvalidData, "column 'event' has texts that are no times; got 600, the first in row 0"),
    ({"by": "amount"}, UnsupportedData, "amount"),
    ({"out": "out.csv"}, InvalidArgument, "results are written as folders of Parquet; got out=out.csv"),
])  # fmt: skip
def test_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], error: type[Exception], telling: str
) -> None:
    pq.write_table(rows(missing=0), tmp_path / "in.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=telling):
        sk.sessionize(**{"data": "in.parquet", **COLUMNS, "out": "out", **options})
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_column_of_the_data_is_not_replaced(tmp_path: Path) -> None:
    table = rows().append_column("late", pa.array([True] * 600))
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InvalidArgument, match=r"has a column of this name already; got 'late'; .*prefix="):
        sk.sessionize(tmp_path / "in.parquet", **COLUMNS, out=tmp_path / "out")
