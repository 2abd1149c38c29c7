"""`sk.open_trace` and `Written.trace`: what `plan.write(data, records=…)` wrote says what `run.trace` says."""

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.base.result_folders import MANIFEST
from sessionkit.errors import (
    InvalidArgument,
    InvalidData,
    MissingColumn,
    SessionkitError,
    TooLarge,
    UnknownName,
    UnknownRecord,
    UnsupportedData,
)
from sessionkit.steps import targets, write
from sessionkit.trace import written_trace
from sessionkit.views import tables
from tests.kinds import EACH_KIND

KEYS: dict[str, Any] = {"text": (("user",), None), "integers": (("number",), None), "both": (("user", "number"), "@")}
SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)


def clicks(seed: int = 0, size: int = 400) -> pa.Table:
    """Records of three partitions, some late, some without a key or a time."""
    rng = np.random.default_rng(seed)
    partition = rng.choice([0, 1, 5], size)
    return pa.table(
        {
            "user": pa.array(rng.choice(["ada", "bob", "é", "eve", "joe"], size).tolist(), mask=rng.random(size) < 0.1),
            "number": pa.array(rng.integers(-3, 3, size), mask=rng.random(size) < 0.1),
            "at": pa.array(np.arange(size) * 3 + rng.integers(-60, 12, size), mask=rng.random(size) < 0.05),
            "partition": partition,
        }
    )


def plan_of(windows: Any = SESSIONS, key: str = "text") -> sk.Plan:
    names, sep = KEYS[key]
    how: dict[str, Any] = {"unit": "ms", "on_bad_time": "drop", "partition": "partition"}
    return sk.group_by_key(*names, sep=sep, timestamp="at", **how).windowed_by(windows).count()


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small row groups in several files."""
    for module, name, value in (
        (write, "TRACED_RECORDS", 30), (write, "NOTE_RECORDS", 90), (targets, "GROUP_ROWS", 20),
        (targets, "_HELD_ROWS", 20), (written_trace, "MOST_WAITING", 3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def written(folder: Path, windows: Any = SESSIONS, key: str = "text", data: pa.Table | None = None) -> sk.Written:
    pq.write_table(clicks() if data is None else data, folder / "clicks.parquet")
    return plan_of(windows, key).write(folder / "clicks.parquet", records=folder / "records")


def in_order(losses: pa.Table) -> list[Any]:
    """Rows of losses, those of keys that are alike in any order."""
    return sorted(losses.to_pylist(), key=lambda row: (-row["late"], -row["records"], str(row["key"])))


# ---- the answers


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_the_answers_are_those_of_a_run_in_memory(kind: str, key: str, tmp_path: Path) -> None:
    written(tmp_path, EACH_KIND[kind], key)
    run, trace = plan_of(EACH_KIND[kind], key).run(clicks()), sk.open_trace(tmp_path / "records", frame="arrow")
    assert len([*(tmp_path / "records").glob("*.parquet")]) > 3
    assert pq.ParquetFile(tmp_path / "records" / "part-00000.parquet").num_row_groups > 3
    want = run.trace.records()
    assert len(trace) == len(want) and trace.counts() == run.trace.counts()
    assert trace.records().equals(want)
    some = [each for each in want["key"].unique().to_pylist() if each is not None][:2]
    of_some = want.filter(pc.is_in(want["key"], pa.array(some, want["key"].type)))
    assert trace.records(*some).equals(of_some)
    part = of_some.filter((pc.field("partition") == 5) & (pc.field("offset") >= 20) & (pc.field("offset") <= 90))
    assert len(part) and trace.records(*some, partition=5, from_offset=20, until_offset=90).equals(part)
    assert trace.records(most=7).equals(want.slice(0, 7))
    for decision in ("opened", "added", "dropped"):
        assert trace.records(decision=decision).equals(run.trace.where(decision=decision))
    lost = want.take(pa.array(np.unique(run.trace.dropped_at)))
    assert trace.dropped().equals(lost) and len(lost) > 20
    assert trace.dropped(some[0]).equals(lost.filter(pc.field("key") == some[0]))
    assert trace.dropped(reason="null_key").equals(run.trace.where(reason="null_key"))
    late = want.filter(pa.array(run.trace.late_for_some))
    assert trace.dropped(reason="late").equals(late) and len(late) > 5
    assert in_order(trace.losses()) == in_order(tables.losses(run.trace))  # as run.losses() shows them
    assert trace.losses(2).equals(trace.losses().slice(0, 2))
    assert sum(trace.losses()["late"].to_pylist()) == int((run.trace.late_for_some & (run.trace.batch.key >= 0)).sum())


@pytest.mark.usefixtures("in_parts")
def test_keys_that_lose_as_many_come_in_the_order_of_run_losses(tmp_path: Path) -> None:
    users = pa.array([f"user {(7 * row) % 101}" for row in range(300)])
    data = clicks(1, 300).set_column(0, "user", users)
    got, want = written(tmp_path, data=data).trace.losses(), plan_of().run(data).losses()
    assert isinstance(want, pa.Table) and got["key"].tolist() == want["user"].to_pylist()
    assert got.to_numpy().tolist() == want.to_pandas().to_numpy().tolist()


def test_frames_are_of_the_kind_that_was_asked_for(tmp_path: Path) -> None:
    made = written(tmp_path)
    assert isinstance(made.trace.records(most=2), pd.DataFrame)
    assert isinstance(sk.open_trace(str(tmp_path / "records"), frame="polars").losses(1), pl.DataFrame)
    assert isinstance(sk.open_trace(tmp_path / "records", frame="arrow").dropped(), pa.Table)


def test_no_records_are_a_trace_too(tmp_path: Path) -> None:
    trace = written(tmp_path, data=clicks().slice(0, 0)).trace
    assert (len(trace), trace.counts(), len(trace.records()), len(trace.losses())) == (0, {}, 0, 0)


def test_it_shows_what_it_is_of_and_how_to_read_it(tmp_path: Path) -> None:
    made = written(tmp_path)
    assert repr(made.trace) == f"Trace of 400 records in {tmp_path / 'records'} (1 file)"
    moved = tmp_path / "<b>moved"
    shutil.move(tmp_path / "records", moved)
    shown = sk.open_trace(moved)._repr_html_()
    assert "&lt;b&gt;moved" in shown and "<code>.records(key)</code>" in shown


def test_names_that_people_guess_lead_to_those_that_there_are(tmp_path: Path) -> None:
    trace: Any = written(tmp_path).trace
    for name, said in (
        ("table", r"trace\.records: The records of"), ("windows", r'plan\.write\(data, table="clicks"\)'),
        ("explain", r'plan\.run\(data, keys=\["ada"\]\)'), ("where", r'trace\.dropped\(reason="late"\)'),
    ):  # fmt: skip
        with pytest.raises(UnknownName, match=f"trace has no such name; got {name}; .*{said}"):
            getattr(trace, name)
    with pytest.raises(InvalidArgument, match=r"written\.trace is a value, not a method"):
        trace()
    with pytest.raises(UnknownName, match=r"sk\.open_trace: The decisions"):
        _ = sk.read_trace  # type: ignore[attr-defined]


# ---- how much is read


class Watched:
    """A file or a row group whose reads are noted."""

    def __init__(self, part: Any, reads: list[tuple[Any, ...]]) -> None:
        self._part, self._reads = part, reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def split_by_row_group(self, condition: Any) -> list[Any]:
        return [Watched(each, self._reads) for each in self._part.split_by_row_group(condition)]

    def to_table(self, columns: list[str], filter: Any) -> pa.Table:
        table = self._part.to_table(columns=columns, filter=filter)
        self._reads.append((columns, len(table), self._part.row_groups[0].num_rows))
        return table


def watched(trace: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    reads: list[tuple[Any, ...]] = []
    return dataclasses.replace(trace, _files=[Watched(each, reads) for each in trace._files]), reads


@pytest.mark.usefixtures("in_parts")
def test_a_rare_key_takes_the_rows_of_few_groups(tmp_path: Path) -> None:
    users = ["ada"] * 400
    users[250] = users[251] = "zoe"
    trace, reads = watched(written(tmp_path, data=clicks().set_column(0, "user", pa.array(users))).trace)
    assert len(trace.records("zoe")) == 2
    assert sum(found for _, found, _ in reads) == 2 and sum(rows for _, _, rows in reads) <= 40
    reads.clear()
    assert len(trace.records(partition=1, from_offset=100, until_offset=104)) == 5
    assert sum(rows for _, _, rows in reads) <= 60
    reads.clear()
    assert len(trace.records(most=5)) == 5 and len(reads) == 1


@pytest.mark.usefixtures("in_parts")
def test_counting_reads_the_columns_that_it_counts_a_row_group_at_a_time(tmp_path: Path) -> None:
    trace, reads = watched(written(tmp_path).trace)
    trace.counts()
    trace.losses()
    assert {tuple(columns) for columns, _, _ in reads} == {("decision", "reason"), ("key", "decision", "reason")}
    assert sum(rows for _, _, rows in reads) == 800 and max(rows for _, _, rows in reads) == 20


@pytest.mark.usefixtures("in_parts")
def test_a_frame_of_very_many_records_has_to_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_trace, "MOST_ROWS", 50)
    trace, reads = watched(written(tmp_path).trace)
    with pytest.raises(TooLarge, match=r"these are many records for a frame; got more than 50; most="):
        trace.records()
    assert sum(found for _, found, _ in reads) <= 70  # and no more were read
    assert len(trace.records(most=300)) == 300
    assert len(trace.records(until_offset=9)) == 30


@pytest.mark.usefixtures("in_parts")
def test_going_through_all_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    told: list[Any] = []

    @contextmanager
    def noted(words: str, total: float | None = None) -> Iterator[Any]:
        told.append((words, total))
        yield told.append

    monkeypatch.setattr(written_trace, "progress", noted)
    written(tmp_path).trace.counts()
    assert told[0] == ("counting records", 400) and told[1:] == sorted(told[1:]) and told[-1] == 400


# ---- what is refused


def test_calls_that_ask_for_nothing_that_there_is(tmp_path: Path) -> None:
    trace: Any = written(tmp_path).trace
    for key, said in (("zoe", "another key"), (5, "keys of type string"), (None, "keys of"), (("a", 1), "joined text")):
        with pytest.raises(UnknownRecord, match=f"there is no record of this key.*{said}"):
            trace.records("ada", key)
    assert len(trace.records("zoe", partition=0)) == 0  # it may be elsewhere
    for call in (lambda: trace.records(most=0), lambda: trace.losses(0), lambda: trace.dropped(most=-1)):
        with pytest.raises(InvalidArgument, match="most= is the number of rows"):
            call()
    with pytest.raises(InvalidArgument, match="one of 'opened', 'added', 'merged', 'dropped'"):
        trace.records(decision="late")
    with pytest.raises(InvalidArgument, match="reason must be a known choice"):
        trace.dropped(reason="dropped")
    with pytest.raises(InvalidArgument, match="takes a whole number as partition"):
        trace.records(partition="0")
    with pytest.raises(InvalidArgument, match="takes text or a path as folder"):
        sk.open_trace(7)  # type: ignore[call-overload]


def test_a_write_without_records_has_no_trace(tmp_path: Path) -> None:
    made = plan_of().write(clicks(), table=tmp_path / "table")
    with pytest.raises(InvalidArgument, match=r"no decisions were written; got folders of table=; plan\.write"):
        _ = made.trace
    pq.write_table(clicks().drop_null(), tmp_path / "clicks.parquet")
    how: dict[str, Any] = {"by": "user", "at": "at", "gap": "10ms", "unit": "ms"}
    out = sk.sessionize(tmp_path / "clicks.parquet", out=tmp_path / "out", **how)
    with pytest.raises(InvalidArgument, match="no decisions were written"):
        _ = out.trace


@pytest.mark.parametrize("name", ["table", "changelog", "dropped"])
def test_another_result_is_no_trace(name: str, tmp_path: Path) -> None:
    plan_of().write(clicks(), **{name: tmp_path / name})
    with pytest.raises(InvalidArgument, match=r"another result of plan\.write, without its records; got .*part-00000"):
        sk.open_trace(tmp_path / name)


@pytest.mark.parametrize(
    "manifest",
    [None, "", "[]", "{}", '{"format": 1, "files": []}', '{"format": 99, "files": [["r/part-00000.parquet", 1, ""]]}',
     '{"format": 1, "files": [["r/../../secret.parquet", 1, ""]]}', '{"format": 1, "files": [7]}',
     '{"format": 1, "files": [["part-0.parquet", "many", ""]]}', "[" * 100_000],
)  # fmt: skip
def test_a_folder_that_write_did_not_write_is_no_trace(manifest: str | None, tmp_path: Path) -> None:
    written(tmp_path)
    place = tmp_path / "records" / MANIFEST
    if manifest is None:
        place.unlink()
    else:
        place.write_text(manifest)
    with pytest.raises(InvalidArgument, match=r"this is no folder that plan\.write wrote; got .*records"):
        sk.open_trace(tmp_path / "records")
    for other in (tmp_path / "nowhere", tmp_path, tmp_path / "clicks.parquet"):
        with pytest.raises(InvalidArgument, match="this is no folder"):
            sk.open_trace(other)


@pytest.mark.usefixtures("in_parts")
def test_a_file_that_is_gone_or_was_cut_is_named(tmp_path: Path) -> None:
    made = written(tmp_path)
    part = tmp_path / "records" / "part-00001.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:-9])
    with pytest.raises(InvalidData, match=r"a file is not as it was written; got .*part-00001\.parquet has .* of"):
        _ = made.trace
    part.unlink()
    with pytest.raises(InvalidData, match=r"part-00001\.parquet is gone"):
        _ = made.trace
    part.write_bytes(whole)
    trace = made.trace
    part.unlink()
    with pytest.raises(InvalidData, match=r"the file cannot be read.*part-00001"):
        trace.counts()


def replaced(folder: Path, table: pa.Table) -> None:
    """Puts a table into the place of the first file, and into the manifest."""
    part = folder / "part-00000.parquet"
    pq.write_table(table, part)
    body = json.loads((folder / MANIFEST).read_text())
    body["files"][0][1] = part.stat().st_size
    (folder / MANIFEST).write_text(json.dumps(body))


@pytest.mark.parametrize("kind", ["session", "sliding"])
def test_a_column_that_is_missing_or_of_another_type_is_named(kind: str, tmp_path: Path) -> None:
    windows = {"session": SESSIONS, "sliding": sk.SlidingWindows(time_difference_ms=10, grace_ms=5)}[kind]
    folder = written(tmp_path, windows).folders["records"]
    table = pq.read_table(folder)
    for name in table.column_names:
        replaced(folder, table.drop_columns([name]))
        with pytest.raises(MissingColumn, match=f"a file lacks a column of its records; got no column '{name}' in"):
            sk.open_trace(folder)
        replaced(folder, table.set_column(table.column_names.index(name), name, pa.nulls(400, pa.list_(pa.int8()))))
        with pytest.raises(UnsupportedData, match=f"a column of the records is of another type; got '{name}': list"):
            sk.open_trace(folder)
    replaced(folder, table.append_column("more", pa.nulls(400)))
    assert sk.open_trace(folder, frame="arrow").records().equals(table)


@pytest.mark.usefixtures("in_parts")
def test_files_of_two_kinds_are_no_trace(tmp_path: Path) -> None:
    folder = written(tmp_path).folders["records"]
    table = pq.read_table(folder / "part-00000.parquet")
    replaced(folder, table.set_column(0, "partition", table["partition"].cast(pa.int32())))
    with pytest.raises(UnsupportedData, match=r"the columns of a file have other types; got .*part-00001"):
        sk.open_trace(folder)


def test_a_decision_that_there_is_not_is_not_left_out_of_the_counts(tmp_path: Path) -> None:
    folder = written(tmp_path).folders["records"]
    table = pq.read_table(folder)
    words = pa.array(["jumped", *table["decision"].to_pylist()[1:]])
    replaced(folder, table.set_column(5, "decision", words).set_column(6, "reason", pa.nulls(400, pa.string())))
    with pytest.raises(InvalidData, match="a record did what no record can; got 'jumped'"):
        sk.open_trace(folder).counts()


def test_a_flipped_bit_is_found_wherever_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path, data=clicks(2, 5_000)).folders["records"]
    part, rng = folder / "part-00000.parquet", np.random.default_rng(0)
    whole, want, found = part.read_bytes(), sk.open_trace(folder, frame="arrow").records(), 0
    for at in rng.integers(4, len(whole), 100).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        part.write_bytes(damaged)
        try:
            assert sk.open_trace(folder, frame="arrow").records().equals(want)
        except SessionkitError as error:
            found += isinstance(error, InvalidData)
    assert found > 50


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path).folders["records"]
    part = folder / "part-00000.parquet"
    part.write_bytes(b"x" * part.stat().st_size)
    with pytest.raises(InvalidData, match=r"the file cannot be read.*check that part-00000\.parquet is complete"):
        sk.open_trace(folder)
