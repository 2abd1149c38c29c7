"""States in shared memory: only what this user wrote, whole and for this micro-batch, is believed, or goes."""

import getpass
import os
import resource
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.spark.worker import shared_files
from sessionkit.spark.worker.shared_files import SharedFiles, shared_folder
from sessionkit.stores.contract import SessionColumns, Snapshot, no_columns
from sessionkit.stores.state.chunked_state import ChunkedState

RUN, TOKEN, OTHER = uuid.uuid4().hex, uuid.uuid4().hex, uuid.uuid4().hex
OLD_S = time.time() - 2 * 86_400


def state_of(*keys: str, partition: int = 0) -> ChunkedState:
    count = np.arange(len(keys))
    columns = SessionColumns(
        pa.array(keys, pa.large_string()),
        np.full(len(keys), partition),
        *(count * 10, count * 10 + 5, count, np.full(len(keys), -1)),
        {"count": pa.array(count + 1)},
    )
    state = ChunkedState("sessions", partition)
    state.commit(no_columns("sessions", pa.large_string(), ("count",)), columns, {partition: Snapshot(9, 90, 80)})
    state.seal()
    return state


def content(state: ChunkedState | None) -> object:
    return None if state is None else (state.to_table().to_pydict(), state.snapshots, state._written)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of /dev/shm and of the temporary folder."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def file(root: Path) -> Path:
    """Of a state that was kept."""
    SharedFiles(RUN).save(state_of("ada", "bob"), TOKEN)
    return shared_folder() / RUN / f"0-{TOKEN}.arrow"


def opened(token: str = TOKEN) -> object:
    return content(SharedFiles(RUN).open("sessions", 0, token))


def test_what_was_kept_is_opened(file: Path) -> None:
    assert opened() == content(state_of("ada", "bob"))
    assert opened(OTHER) is None


@pytest.mark.thorough
def test_a_flipped_bit_is_not_believed(file: Path) -> None:
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        assert opened() is None, f"byte {place}"


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_cut_file_is_not_believed(file: Path, kept: int) -> None:
    file.write_bytes(file.read_bytes()[:kept])
    assert opened() is None


def test_the_state_after_another_micro_batch_is_not_believed(file: Path) -> None:
    SharedFiles(RUN).save(state_of("cy"), OTHER)
    file.with_name(f"0-{OTHER}.arrow").replace(file)
    assert opened() is None


def test_a_link_in_place_of_a_file_is_not_followed(file: Path) -> None:
    file.rename(file.with_name("aside"))
    file.symlink_to("aside")
    assert opened() is None


def test_a_pipe_in_place_of_a_file_holds_nobody_up(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    assert opened() is None


@pytest.mark.parametrize("place", ["user", "run"])
def test_a_strangers_link_leads_nowhere(root: Path, place: str) -> None:
    """In place of the folder it would have had what it leads to used, and swept."""
    victim = root / "home"
    for name in ("photos", OTHER):
        (victim / name).mkdir(parents=True)
        (victim / name / "mine.txt").write_text("mine")
        os.utime(victim / name, (OLD_S, OLD_S))
    link = shared_folder() if place == "user" else shared_folder() / RUN
    link.parent.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(victim)
    before = sorted(victim.rglob("*"))
    with pytest.warns(UserWarning, match="keeps no state in shared memory"):
        SharedFiles(RUN).save(state_of("ada"), TOKEN)
    SharedFiles(RUN).remove()
    assert sorted(victim.rglob("*")) == before
    assert opened() is None


def test_an_open_umask_opens_nothing(root: Path, open_umask: None) -> None:
    SharedFiles(RUN).save(state_of("ada"), TOKEN)
    found = [shared_folder(), *shared_folder().rglob("*")]
    assert len(found) == 3
    assert [each for each in found if stat.S_IMODE(each.stat().st_mode) & 0o077] == []
    assert opened() is not None


@pytest.mark.parametrize("place", ["user", "run"])
def test_a_folder_that_others_can_write_to_is_not_used(file: Path, place: str) -> None:
    (file.parent if place == "run" else file.parent.parent).chmod(0o777)
    assert opened() is None
    with pytest.warns(UserWarning, match="keeps no state in shared memory"):
        SharedFiles(RUN).save(state_of("cy"), OTHER)
    assert opened(OTHER) is None


def test_what_another_user_owns_is_not_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told by asking as another user, which needs no right to make one."""
    folder = shared_folder()
    monkeypatch.setattr(shared_files, "shared_folder", lambda: folder)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    assert opened() is None
    SharedFiles(RUN).remove()
    assert file.exists()


def test_only_what_bears_the_name_of_a_run_is_swept(file: Path) -> None:
    """Of a run that is gone its states go; what somebody put beside them, and there, stays."""
    folder = shared_folder()
    gone, mixed, recent = (uuid.uuid4().hex for _ in range(3))
    for name in (gone, mixed, recent, "photos"):
        (folder / name).mkdir(mode=0o700)
        (folder / name / f"1-{TOKEN}.arrow").touch()
    (folder / mixed / "mine.txt").write_text("mine")
    (folder / uuid.uuid4().hex).symlink_to(folder / "photos")
    (folder / "notes").write_text("mine")
    before = {path for path in folder.rglob("*") if path.parent.name not in (gone, mixed)}
    for name in (gone, mixed, "photos", "notes"):
        os.utime(folder / name, (OLD_S, OLD_S))
    SharedFiles(OTHER).save(state_of("cy"), TOKEN)
    now = set(folder.rglob("*"))
    assert {folder / gone, folder / gone / f"1-{TOKEN}.arrow", folder / mixed / f"1-{TOKEN}.arrow"} & now == set()
    assert now >= (before - {folder / gone}) | {folder / mixed / "mine.txt"}


def test_a_run_removes_its_own_states(file: Path) -> None:
    SharedFiles(OTHER).save(state_of("cy"), TOKEN)
    SharedFiles(RUN).remove()
    assert sorted(each.name for each in shared_folder().iterdir()) == [OTHER]


def test_the_two_newest_states_of_a_partition_stay(root: Path) -> None:
    files, tokens = SharedFiles(RUN), [uuid.uuid4().hex for _ in range(4)]
    for number, token in enumerate(tokens):
        files.save(state_of("ada"), token)
        os.utime(shared_folder() / RUN / f"0-{token}.arrow", (number, number))
        files.save(state_of("bob", partition=10), token)
    kept = {each.name for each in (shared_folder() / RUN).iterdir()}
    assert {name for name in kept if name.startswith("0-")} == {f"0-{token}.arrow" for token in tokens[2:]}
    assert len(kept) == 4


def test_where_there_is_no_room_no_half_written_file_stays(root: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        SharedFiles(RUN).save(state_of("ada"), TOKEN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [*(shared_folder() / RUN).iterdir()] == []


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """As in a container whose list of users lacks the number that it runs under."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert shared_folder().name == f"sessionkit-{os.geteuid()}"
