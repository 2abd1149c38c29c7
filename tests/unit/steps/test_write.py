"""`plan.write`: what it refuses, what it leaves alone, and how errors name what is wrong; its rows: test_write.py."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.base.result_folders import MANIFEST
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, NotBuilt, UnsupportedData
from sessionkit.records.files import pieces
from sessionkit.steps import targets
from sessionkit.steps import write as steps

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)
ROWS = pa.table(
    {
        "user": ["ada", "bob", "ada", None, "bob", "ada"],
        "at": [0, 3, 8, 9, 90, 4],
        "v": [1, 2, None, 4, 5, 6],
    }
)


def plan_of(windows: Any = SESSIONS, **more: Any) -> sk.Plan:
    source = {"timestamp": "at", "unit": "ms", **more}
    return sk.group_by_key("user", **source).windowed_by(windows).aggregate(n=sk.count(), total=sk.sum("v"))


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_RECORDS", 2)
    monkeypatch.setattr(steps, "TRACED_RECORDS", 2)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(path: Path) -> list[Any]:
    return sorted(map(repr, pq.read_table(path).to_pylist()))


# ---- folders


def test_a_folder_has_parquet_and_a_list_of_what_is_ours(tmp_path: Path) -> None:
    made = plan_of().write(ROWS, table=tmp_path / "deep" / "table")
    assert names_in(tmp_path / "deep") == ["table"]
    assert names_in(tmp_path / "deep" / "table") == [MANIFEST, "part-00000.parquet"]
    assert made.folders == {"table": tmp_path / "deep" / "table"}
    said = "1 of 6 records has no key ('user') and is in no window."
    assert repr(made) == f"Written: 6 records, 2 dropped · table: 3 rows\n{said}"
    assert made.counts == {"opened": 3, "added": 1, "late": 1, "null_key": 1}
    assert made.remarks() == [said]
    column = pq.ParquetFile(tmp_path / "deep" / "table" / "part-00000.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_what_is_there_is_replaced_on_request_alone_and_only_if_it_is_ours(tmp_path: Path) -> None:
    out = tmp_path / "table"
    plan_of().write(ROWS, table=out)
    with pytest.raises(InvalidArgument, match="overwrite=True to replace"):
        plan_of().write(ROWS.slice(0, 1), table=out)
    assert len(rows(out)) == 3
    plan_of().write(ROWS.slice(0, 1), table=out, overwrite=True)
    assert len(rows(out)) == 1
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"files that sessionkit did not write are in the way.*notes\.txt"):
        plan_of().write(ROWS, table=out, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert len(rows(out / "part-00000.parquet")) == 1
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "data.csv").write_text("a,b")
    for overwrite in (False, True):
        with pytest.raises(InvalidArgument):
            plan_of().write(ROWS, table=mine, overwrite=overwrite)
    assert names_in(mine) == ["data.csv"]
    assert names_in(tmp_path) == ["mine", "table"]


def test_a_file_that_somebody_changed_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "table"
    plan_of().write(ROWS, table=out)
    (part,) = out.glob("*.parquet")
    part.write_bytes(part.read_bytes() + b"changed")
    with pytest.raises(InvalidArgument, match="files that sessionkit did not write"):
        plan_of().write(ROWS, table=out, overwrite=True)


def test_the_manifest_is_of_the_files_that_are_there(tmp_path: Path) -> None:
    plan_of().write(ROWS, table=tmp_path / "table", records=tmp_path / "records")
    for name in ("table", "records"):
        listed = json.loads((tmp_path / name / MANIFEST).read_text())["files"]
        assert [(each[0], each[1]) for each in listed] == [
            (f"{name}/part-00000.parquet", (tmp_path / name / "part-00000.parquet").stat().st_size)
        ]


def test_row_groups_stay_small_and_files_are_joined_from_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "GROUP_ROWS", 4)
    plan_of().write(ROWS, records=tmp_path / "records")
    found = pq.ParquetFile(tmp_path / "records" / "part-00000.parquet").metadata
    assert [found.row_group(number).num_rows for number in range(found.num_row_groups)] == [4, 2]


def test_two_results_need_a_folder_each(tmp_path: Path) -> None:
    for changelog in (tmp_path / "a", tmp_path / "a" / "b", tmp_path):
        with pytest.raises(InvalidArgument, match="two results cannot go to one folder"):
            plan_of().write(ROWS, table=tmp_path / "a", changelog=changelog)
    with pytest.raises(InvalidArgument, match="write needs a folder"):
        plan_of().write(ROWS)
    assert names_in(tmp_path) == []


# ---- plans and records


@pytest.mark.parametrize(
    ("plan", "way"),
    [
        (plan_of(offset="at", sort=True), "ORDER BY"),
        (plan_of(sort="timestamp"), "ORDER BY"),
        (plan_of(ambiguous="infer"), 'ambiguous="earliest"'),
        (plan_of(on_bad_time="partition_time"), 'on_bad_time="drop"'),
        (plan_of(partition="v", arrival="at", idle_after="1m"), "without idle_after="),
        (plan_of().suppress("until_window_closes"), r"plan\.suppress\(None\)"),
    ],
)
def test_what_takes_all_records_at_once_is_refused_with_the_way(plan: sk.Plan, way: str, tmp_path: Path) -> None:
    with pytest.raises(NotBuilt, match=way):
        plan.write(ROWS, table=tmp_path / "table")
    assert names_in(tmp_path) == []


def test_no_records_give_files_without_rows(tmp_path: Path) -> None:
    made = plan_of().write(ROWS.slice(0, 0), **{name: tmp_path / name for name in steps.TARGETS})
    run = plan_of().run(ROWS.slice(0, 0))
    assert made.rows == dict.fromkeys(steps.TARGETS, 0)
    assert pq.read_table(tmp_path / "table").equals(run.table())
    assert pq.read_table(tmp_path / "changelog").equals(run.changelog())


def test_an_error_names_the_row_of_the_data_and_leaves_nothing(tmp_path: Path) -> None:
    late = pa.table({"user": ["a"] * 7, "at": [1, 2, 3, 4, 5, None, 7], "v": range(7)})
    with pytest.raises(InvalidData, match="row 5"):
        plan_of().write(late, table=tmp_path / "table")
    stepping_back = pa.table({"user": ["a"] * 5, "at": range(5), "v": range(5), "o": [1, 2, 3, 4, 3]})
    with pytest.raises(InvalidData, match="offset 3 after 4"):
        plan_of(offset="o").write(stepping_back, table=tmp_path / "table")
    with pytest.raises(MissingColumn, match="'v'"):
        plan_of().write(late.drop_columns("v"), table=tmp_path / "table")
    assert names_in(tmp_path) == []


def test_offsets_that_step_back_between_two_steps_are_refused(tmp_path: Path) -> None:
    for offsets in ([1, 5, 5, 6], [1, 5, 4, 6]):
        data = pa.table({"user": ["a"] * 4, "at": range(4), "v": range(4), "o": offsets})
        with pytest.raises(InvalidData, match=f"offset {offsets[2]} after 5"):
            plan_of(offset="o").write(data, table=tmp_path / "table")


def test_what_a_store_has_read_is_passed_over_as_in_a_run(tmp_path: Path) -> None:
    data = pa.table({"user": ["a", "b", "a", "b"], "at": [1, 2, 30, 90], "v": range(4), "o": [1, 4, 5, 9]})
    plan, stores = plan_of(offset="o"), [sk.open_store("memory", name) for name in ("at-once", "in-steps")]
    for store in stores:
        plan.run(data.slice(0, 2), store=store)
    for again in range(2):
        run = plan.run(data, store=stores[0])
        made = plan.write(data, table=tmp_path / f"{again}", records=tmp_path / f"r{again}", store=stores[1])
        assert rows(tmp_path / f"{again}") == sorted(map(repr, run.table().to_pylist()))
        assert pq.read_table(tmp_path / f"r{again}").equals(run.trace.records())
        assert made.dropped_count == run.metrics()["records-dropped"] == 0
        assert made.counts["replayed"] == run.metrics()["replayed-records"]
        assert list(stores[0].all()) == list(stores[1].all())
    stepping_back = data.set_column(3, "o", pa.array([1, 2, 2, 3]))
    with pytest.raises(InvalidData, match=r"offset 2 after 2|an offset appears twice"):
        plan.write(stepping_back, table=tmp_path / "none", store=stores[1])


def test_anything_that_a_plan_takes(tmp_path: Path) -> None:
    """Frames, lists, columns, datasets and readers; the last ones are read as they are wanted."""
    pq.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=2)
    frame = ROWS.to_pandas().astype({"v": "Int64"})
    expected = sorted(map(repr, plan_of().run(ROWS).table().to_pylist()))
    asked: list[int] = []

    def batches() -> Any:
        for number, batch in enumerate(ROWS.to_batches(max_chunksize=1)):
            asked.append(number)
            yield batch

    inputs: list[Any] = [
        frame, pl.from_arrow(ROWS), pl.from_arrow(ROWS).lazy(), ROWS, ROWS.to_batches()[0],
        ROWS.to_pylist(), frame.to_dict("list"), ds.dataset(tmp_path / "rows.parquet"), ds.dataset(ROWS),
        pq.ParquetFile(tmp_path / "rows.parquet"), (tmp_path / "rows.parquet").open("rb"),
        pa.RecordBatchReader.from_batches(ROWS.schema, batches()),
    ]  # fmt: skip
    for number, data in enumerate(inputs):
        made = plan_of().write(data, table=tmp_path / str(number))
        assert rows(tmp_path / str(number)) == expected, type(data)
        assert made.record_count == 6
    assert asked == [0, 1, 2, 3, 4, 5]


def test_functions_of_python_give_one_type(tmp_path: Path) -> None:
    grouped = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(SESSIONS)
    longest = grouped.aggregate(all=sk.reduce(lambda a, b: f"{a}{b}", "user"))
    longest.write(ROWS, table=tmp_path / "table")
    assert rows(tmp_path / "table") == sorted(map(repr, longest.run(ROWS).table().to_pylist()))
    mixed = pa.table({"user": list("abcd"), "at": [0, 100, 200, 300], "v": pa.array([1, 2, 3, 4])})
    several = grouped.aggregate(odd=sk.reduce(lambda a, b: b, "v"))
    several.write(mixed, table=tmp_path / "fine")
    own = sk.aggregation(
        initializer=lambda: None, aggregator=lambda key, value, old: value if value < 3 else str(value),
        merger=lambda key, old, new: new, value="v",
    )  # fmt: skip
    with pytest.raises(UnsupportedData, match=r"a result of 'odd' does not fit into int64.*of the type of the first"):
        grouped.aggregate(odd=own).write(mixed, table=tmp_path / "none")
    assert names_in(tmp_path) == ["fine", "table"]


# ---- text


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_value_of_another_type_than_the_first_is_refused_with_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a run would have read the whole column otherwise."""
    monkeypatch.setattr(pieces, "HEAD_BYTES", 40)
    monkeypatch.setattr(pieces, "_LEAST_HEAD", 40)
    values = [*range(20), "1.5"]
    csv = write_lines(tmp_path / "a.csv", ["user,at,v", *(f"ada,{at},{v}" for at, v in enumerate(values))])
    plain = [f'{{"user": "ada", "at": {at}, "v": {v}}}' for at, v in enumerate(values)]
    for path in (csv, write_lines(tmp_path / "a.jsonl", plain)):
        with pytest.raises(InvalidData, match="types="):
            plan_of().write(path, table=tmp_path / "table")
        typed = plan_of(types={"v": "float64"})
        typed.write(path, table=tmp_path / "table")
        assert rows(tmp_path / "table") == sorted(map(repr, typed.run(path, frame="arrow").table().to_pylist()))
        typed.write(path, table=tmp_path / "table", overwrite=True)
        for each in (tmp_path / "table").iterdir():
            each.unlink()
        (tmp_path / "table").rmdir()


def test_text_in_small_pieces_is_what_it_is_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines in quotes, empty texts in quotes and without, objects over many lines, arrays, fields that some lack."""
    monkeypatch.setattr(pieces, "HEAD_BYTES", 60)
    monkeypatch.setattr(pieces, "_LEAST_HEAD", 60)
    monkeypatch.setattr(pieces, "_BLOCK", 16)
    quoted = ["user,at,v", *(f'"a\n""{at % 3},",{at * 7},{at}' for at in range(9)), '"",80,1', ",81,2"]
    objects = [{"user": f"{{u}}\n{at % 2}", "at": at * 7, "v": at, "deep": {"x": [{"y": 1}]}} for at in range(9)]
    files = {
        "a.csv": "\n".join(quoted),
        "b.jsonl": "\n".join(map(json.dumps, objects)),
        "c.json": "\n".join(json.dumps(each, indent=2) for each in objects),
        "d.json": json.dumps(objects),
        "e.jsonl": '{"user": "a", "at": 1, "v": 5}\n' + '{"user": "b", "at": 2}\n' * 9 + '{"at": 3, "v": 1}',
        "f.txt": "\n".join(["user at v", *(f"u{at % 2} {at} 1" for at in range(9))]),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        plan_of().write(tmp_path / name, table=tmp_path / f"out {Path(name).stem}")
        expected = plan_of().run(tmp_path / name, frame="arrow").table()
        assert rows(tmp_path / f"out {Path(name).stem}") == sorted(map(repr, expected.to_pylist())), name


def test_fields_inside_columns_and_columns_of_folders(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        table = pa.table({"who": [{"user": "a"}, {"user": "b"}], "at": [day, day + 1], "js": ['{"v": 1}', '{"v": 2}']})
        pq.write_table(table, tmp_path / "in" / f"day={day}" / "x.parquet")
    plan = sk.group_by_key("who.user", timestamp="at", unit="ms", partition="day").windowed_by(SESSIONS)
    plan = plan.aggregate(total=sk.sum("js.v"), days=sk.sum("day"))
    plan.write(tmp_path / "in", table=tmp_path / "out")
    assert rows(tmp_path / "out") == sorted(map(repr, plan.run(tmp_path / "in", frame="arrow").table().to_pylist()))


def test_a_frame_of_spark_is_refused_with_the_way() -> None:
    class DataFrame:
        __module__ = "pyspark.sql.frame"

    with pytest.raises(InvalidArgument, match=r"plan\.run\(df\)\.table\(\)\.write"):
        plan_of().write(DataFrame(), table="nowhere")


def test_records_in_no_order_are_told_as_a_run_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_RECORDS", 5_000)
    times = [(n * 7919) % 3_000 * 1_000 for n in range(3_000)]
    data = {"user": ["ada"] * 3_000, "at": times, "v": [1] * 3_000}
    written = plan_of().write(data, table=tmp_path / "out")
    assert written.dropped_count > 2_000
    assert "came too late and" in repr(written) and "because" in written.remarks()[0]
    assert plan_of().write(ROWS, table=tmp_path / "rows").remarks()[1:] == []
