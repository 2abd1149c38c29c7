"""`plan.write` after a kill at any of its steps, after Ctrl-C, and on a disk that is full.

Nothing half is taken for whole, nothing of the user's is touched, and the same call goes on to the same rows.
"""

import json
import os
import resource
import shutil
import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.base.result_folders import MANIFEST
from sessionkit.errors import InvalidArgument, WriteFailed
from sessionkit.steps import write as steps
from tests.fault.ended import say_what_is_full, signal_before
from tests.interpreted import ALL
from tests.reliability._stores import CHILDREN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("writes that are killed")]

RECORDS, STEP, NOTE = 400, 20, 60
CHILDREN.set_forkserver_preload([__name__])


def plan() -> sk.Plan:
    grouped = sk.group_by_key("user", timestamp="at", unit="ms", partition="partition", offset="offset")
    windows = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=20)
    return grouped.windowed_by(windows).aggregate(n=sk.count(), total=sk.sum("v"), all=sk.collect("v"))


def records() -> pa.Table:
    rng = np.random.default_rng(7)
    at = np.maximum(0, np.arange(RECORDS) * 3 + rng.integers(-60, 10, RECORDS))
    users, partition = rng.choice(["ada", "bob", "eve"], RECORDS).tolist(), np.arange(RECORDS) % 3
    values = pa.array(rng.integers(0, 9, RECORDS), mask=rng.random(RECORDS) < 0.1)
    return pa.table({"user": users, "at": at, "partition": partition, "offset": np.arange(RECORDS) // 3, "v": values})


def write(folder: Path, store: Any = None) -> sk.Written:
    """The call that is killed: one target is new, the other replaces one of before."""
    for name, number in (("STEP_RECORDS", STEP), ("TRACED_RECORDS", STEP), ("NOTE_RECORDS", NOTE)):
        setattr(steps, name, number)
    return plan().write(
        folder / "in.parquet", table=folder / "out" / "table", changelog=folder / "out" / "log", store=store,
        overwrite=True,
    )  # fmt: skip


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEP_RECORDS", "TRACED_RECORDS", "NOTE_RECORDS"):
        monkeypatch.setattr(steps, name, getattr(steps, name))  # put back at the end


@pytest.fixture
def folder(tmp_path: Path, small_steps: None) -> Path:
    """Records, a former result, and a file of the user's beside it."""
    pq.write_table(records(), tmp_path / "in.parquet", row_group_size=30)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    plan().write(records().slice(0, 9), changelog=tmp_path / "out" / "log")
    return tmp_path


def opened_store(folder: Path) -> Any:
    return sk.open_store("rocksdb", "sessions", directory=folder / "store")


def until_killed(folder: Path, changes: int, by: signal.Signals, *, with_store: bool) -> None:
    """Writes, and sends itself a signal before the change of this number that it makes to files in the folder."""
    signal_before(changes, folder / "out", by)
    if not with_store:
        write(folder)
        return
    with opened_store(folder) as store:
        write(folder, store)


def killed(folder: Path, changes: int, *, by: signal.Signals = signal.SIGKILL, with_store: bool = False) -> bool:
    """Whether a process that writes was ended at this change, as it was not done before."""
    child = CHILDREN.Process(target=until_killed, args=(folder, changes, by), kwargs={"with_store": with_store})
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL if by == signal.SIGKILL else 1)
    return child.exitcode != 0


@cache
def run_of_size(size: int) -> sk.Run:
    return plan().run(records().slice(0, size))


def run_of(folder: Path) -> sk.Run:
    """The run over the records that the folder has, or had a moment ago."""
    return run_of_size(pq.read_metadata(folder / "in.parquet").num_rows)


def check_places(folder: Path, before: pa.Table) -> None:
    """What is in a place is whole: the former rows or the new ones."""
    run = run_of(folder)
    assert (folder / "out" / "notes.txt").read_text() == "mine"
    if (folder / "out" / "table").exists():
        assert rows(folder / "out" / "table") == sorted(map(repr, run.table().to_pylist()))
    if (folder / "out" / "log").exists():
        assert any(pq.read_table(folder / "out" / "log").equals(each) for each in (before, run.changelog()))
    shown = {each.name for each in (folder / "out").iterdir() if not each.name.startswith(".")}
    assert shown <= {"table", "log", "notes.txt"}


def rows(path: Path) -> list[str]:
    return sorted(map(repr, pq.read_table(path).to_pylist()))


def check_whole(folder: Path) -> None:
    run = run_of(folder)
    assert rows(folder / "out" / "table") == sorted(map(repr, run.table().to_pylist()))
    assert pq.read_table(folder / "out" / "log").equals(run.changelog())
    assert sorted(each.name for each in (folder / "out").iterdir()) == ["log", "notes.txt", "table"]


def test_killed_at_any_change_the_same_call_goes_on_to_the_same_rows(folder: Path) -> None:
    before, kills, resumed = pq.read_table(folder / "out" / "log"), 0, 0
    for changes in range(1, 400, 7 if ALL else 14):
        if not killed(folder, changes):
            break
        kills += 1
        check_places(folder, before)
        note = folder / "out" / ".table.sessionkit" / "note.json"
        owner = json.loads(note.read_text())["owner"] if note.exists() else None
        made = write(folder)
        assert made.record_count == RECORDS
        check_whole(folder)
        if owner is not None:
            assert json.loads((folder / "out" / "table" / MANIFEST).read_text())["wrote"] == owner
            resumed += 1
    assert kills >= (20 if ALL else 10)
    assert resumed >= (10 if ALL else 5)


def test_killed_again_and_again_it_ends_with_the_same_rows(folder: Path) -> None:
    """Each process makes some changes more than it takes to go on from the note of the one before."""
    before = pq.read_table(folder / "out" / "log")
    kills = 0
    while killed(folder, 90):
        kills += 1
        check_places(folder, before)
        assert kills < 50
    assert kills >= 1
    check_whole(folder)


def test_killed_at_any_change_the_store_is_moved_on_once(folder: Path) -> None:
    pytest.importorskip("rocksdict")
    expected = sk.open_store("memory", "sessions")
    plan().run(folder / "in.parquet", store=expected)
    # the last changes, around the renames and the commit
    tried = range(100, 400, 10)
    total = tried[bisect_left(tried, True, key=lambda number: not killed_in_copy(folder, number))]
    for changes in range(total - 24, total + 1, 3):
        copy = copied(folder, f"store {changes}")
        killed(copy, changes, with_store=True)
        with opened_store(copy) as store:
            is_done = (
                store.snapshot(0).position >= 0 and not (copy / "out" / ".table.sessionkit" / "note.json").exists()
            )
            if not is_done:
                assert write(copy, store).record_count == RECORDS
                check_whole(copy)
            assert not [*(copy / "out").glob(".*/part-*.parquet")]
            assert [list(store.all(partition=p)) for p in range(3)] == [
                list(expected.all(partition=p)) for p in range(3)
            ]
            assert [store.snapshot(p) for p in range(3)] == [expected.snapshot(p) for p in range(3)]


def copied(folder: Path, name: str) -> Path:
    shutil.copytree(folder / "out", folder / name / "out")
    shutil.copy2(folder / "in.parquet", folder / name / "in.parquet")
    return folder / name


def killed_in_copy(folder: Path, changes: int) -> bool:
    return killed(copied(folder, f"count {changes}"), changes, with_store=True)


def test_a_changed_file_or_another_plan_begins_anew(folder: Path) -> None:
    assert killed(folder, 40)
    assert (folder / "out" / ".table.sessionkit" / "note.json").exists()
    other = records().slice(0, 200)
    pq.write_table(other, folder / "in.parquet", row_group_size=30)
    assert write(folder).record_count == 200
    check_whole(folder)


def test_two_calls_do_not_write_to_one_place(folder: Path) -> None:
    refused: list[str] = []

    def again(number: float) -> None:
        if not refused:
            child = CHILDREN.Process(
                target=until_killed, args=(folder, 10_000, signal.SIGKILL), kwargs={"with_store": False}
            )
            child.start()
            child.join()
            refused.append(str(child.exitcode))

    reader = pa.RecordBatchReader.from_batches(records().schema, _calling(again))
    for name, number in (("STEP_RECORDS", STEP), ("TRACED_RECORDS", STEP)):
        setattr(steps, name, number)
    plan().write(reader, table=folder / "out" / "table")
    assert refused == ["1"]
    assert plan().run(records(), frame="arrow").table().num_rows == pq.read_table(folder / "out" / "table").num_rows


def _calling(call: Callable[[float], None]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(records().to_batches(max_chunksize=STEP)):
        call(number)
        yield batch


def test_ctrl_c_at_any_change_leaves_what_the_same_call_goes_on_from(folder: Path) -> None:
    """And nothing where nothing was noted yet."""
    before, stopped = pq.read_table(folder / "out" / "log"), 0
    for changes in range(1, 400, 13 if ALL else 26):
        copy = copied(folder, f"stopped {changes}")
        if not killed(copy, changes, by=signal.SIGINT):
            break
        stopped += 1
        check_places(copy, before)
        note = copy / "out" / ".table.sessionkit" / "note.json"
        left = {each.name for each in (copy / "out").iterdir() if each.name.startswith(".")}
        assert bool(left) == note.exists()
        write(copy)
        check_whole(copy)
    assert stopped >= (10 if ALL else 6)


def test_ctrl_c_when_all_is_in_place_leaves_nothing(folder: Path) -> None:
    """A hidden folder without a note stayed."""
    tried = range(100, 400, 10)
    total = tried[bisect_left(tried, True, key=lambda number: not stopped_in_copy(folder, number))]
    for changes in range(total - 30, total):
        stopped_in_copy(folder, changes)
        out = folder / f"stopped {changes}" / "out"
        left = {each.name for each in out.iterdir() if each.name.startswith(".")}
        assert bool(left) == (out / ".table.sessionkit" / "note.json").exists(), (changes, left)


def stopped_in_copy(folder: Path, changes: int) -> bool:
    copy = folder / f"stopped {changes}"
    return killed(copy if copy.exists() else copied(folder, copy.name), changes, by=signal.SIGINT)


def test_a_reader_that_is_stopped_leaves_nothing(folder: Path) -> None:
    def stop(number: float) -> None:
        if number == 12:
            os.kill(os.getpid(), signal.SIGINT)  # as a terminal does it: to the process
            time.sleep(0.5)  # so that it meets the call where it waits for this reader, which is no main thread

    reader = pa.RecordBatchReader.from_batches(records().schema, _calling(stop))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            plan().write(reader, table=folder / "out" / "table")
    finally:
        signal.signal(signal.SIGINT, before)
    assert {each.name for each in (folder / "out").iterdir()} == {"notes.txt", "log"}


def until_full(folder: Path, limit: int, said: Connection) -> None:
    """Writes where no file can have more bytes, and says what was wrong."""
    say_what_is_full(partial(write, folder), limit, said)


def test_on_a_full_disk_nothing_half_is_left_and_with_room_it_goes_on(folder: Path) -> None:
    before, refused = pq.read_table(folder / "out" / "log"), 0
    for limit in (0, 100, 1_000, 2_500, 4_000, 6_000):
        copy = copied(folder, f"full {limit}")
        heard, said = CHILDREN.Pipe(duplex=False)
        child = CHILDREN.Process(target=until_full, args=(copy, limit, said))
        child.start()
        said.close()
        error = heard.recv()
        child.join()
        refused += error != ""
        assert error == "" or str(copy / "out") in error
        check_places(copy, before)
        write(copy)
        check_whole(copy)
    assert refused >= 4
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert issubclass(WriteFailed, OSError)
    assert issubclass(InvalidArgument, ValueError)
