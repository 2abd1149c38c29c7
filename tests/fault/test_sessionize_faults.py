"""`sessionize(out=)` after a kill at any of its steps, after Ctrl-C, and on a disk that is full."""

import shutil
import signal
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.steps import ranges
from sessionkit.steps import sessionized as steps
from tests.fault.ended import say_what_is_full, signal_before
from tests.interpreted import ALL
from tests.reliability._stores import CHILDREN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("writes that are killed")]

CHILDREN.set_forkserver_preload([__name__])


def rows(count: int = 300) -> pa.Table:
    rng = np.random.default_rng(7)
    at = pa.array(1_767_225_600_000 + rng.integers(0, 60_000, count), pa.timestamp("ms", "UTC"))
    return pa.table({"user": pa.array(rng.zipf(1.3, count) % 20), "at": at, "amount": rng.random(count)})


def sessionized(data: Any, gap: str = "1s", **more: Any) -> Any:
    return sk.sessionize(data, by="user", at="at", gap=gap, **more)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows, a former result, and a file of the user's beside it."""
    for module, name in ((ranges, "PART_ROWS"), (ranges, "STEP_ROWS"), (steps, "STEP_ROWS")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back at the end
    folder = tmp_path / "first"
    (folder / "out").mkdir(parents=True)
    pq.write_table(rows(), folder / "in.parquet", row_group_size=30)
    (folder / "out" / "notes.txt").write_text("mine")
    sessionized(folder / "in.parquet", "5s", out=folder / "out" / "rows")
    return folder


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.parent / name))


def write(folder: Path) -> None:
    """The call that is killed, in many small parts."""
    ranges.PART_ROWS, ranges.STEP_ROWS, steps.STEP_ROWS = 40, 25, 25
    sessionized(folder / "in.parquet", out=folder / "out" / "rows", overwrite=True)


def until_signalled(folder: Path, changes: int, by: signal.Signals) -> None:
    """Writes, and sends itself a signal before the change of this number that it makes to files in the folder."""
    signal_before(changes, folder / "out", by)
    write(folder)


def until_full(folder: Path, limit: int, said: Connection) -> None:
    """Writes where no file can have more bytes, and says what was wrong."""
    say_what_is_full(partial(write, folder), limit, said)


def check(folder: Path, *, is_new: bool | None = None) -> None:
    """What is in the place is whole: the former rows or the new ones."""
    found = pq.read_table(folder / "out" / "rows").to_pylist()
    former, new = (sessionized(rows(), gap).to_pylist() for gap in ("5s", "1s"))
    assert found in ([new] if is_new else [former, new])
    assert (folder / "out" / "notes.txt").read_text() == "mine"
    if is_new is not None:
        assert sorted(each.name for each in (folder / "out").iterdir()) == ["notes.txt", "rows"]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_ended_at_any_change_nothing_half_is_taken_for_whole(folder: Path, by: signal.Signals) -> None:
    ended = 0
    for changes in range(1, 400, 7 if ALL else 14):
        copy = copied(folder, str(changes))
        child = CHILDREN.Process(target=until_signalled, args=(copy, changes, by))
        child.start()
        child.join()
        check(copy)
        if by == signal.SIGINT:  # it cleared up behind itself
            assert not [each for each in (copy / "out").iterdir() if each.name.startswith(".rows")]
        if child.exitcode == 0:
            break
        ended += 1
        write(copy)
        check(copy, is_new=True)
    assert ended >= 3


def test_on_a_full_disk_nothing_half_is_left(folder: Path) -> None:
    refused = 0
    for limit in (0, 500, 2_000, 4_000, 8_000):
        copy = copied(folder, f"full {limit}")
        heard, said = CHILDREN.Pipe(duplex=False)
        child = CHILDREN.Process(target=until_full, args=(copy, limit, said))
        child.start()
        said.close()
        error = heard.recv()
        child.join()
        refused += error != ""
        assert error == "" or str(copy / "out") in error
        check(copy, is_new=None if error == "" else False)
        write(copy)
        check(copy, is_new=True)
    assert refused >= 3
