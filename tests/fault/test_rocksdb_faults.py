"""The store on disk after a kill, after a flipped bit, and on a disk that takes no more.

What it promises: after a crash it holds the state after some commit and says which; damaged, it either answers
correctly or refuses to open; and it never hangs.
"""

import itertools
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from sessionkit.errors import StoreCorrupted, StoreFailed
from sessionkit.stores.rocksdb.disk.folder import StoreFolder
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from tests.interpreted import fewer
from tests.reliability._stores import CHILDREN, Child, Model, Row, Writing, record_starts

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stores that are killed")]  # one process makes the children

KILLS, KILLS_IN_A_COMMIT, FLIPS = fewer(50), fewer(40), fewer(300)
LIMIT_S = 5
START_S = 20  # what an unclosed store takes on top, on a busy machine: another Python is started
CHILDREN.set_forkserver_preload([__name__])


def opened(directory: Path, name: str = "clicks") -> RocksDBSessionStore:
    return RocksDBSessionStore(name=name, directory=directory, segment_interval="1000ms", time_ordered=True)


WRITING = Writing("faults", "session by time", keys=40)
apply, after = WRITING.commit, WRITING.after


def held(store: RocksDBSessionStore) -> Model:
    found = list(store.all())
    assert len({s.key for s in found}) == len(found)
    assert sorted(store.find_sessions_by_end(0, 2**62)) == sorted(found)
    return {s.key: Row(s.window_start_ms, s.window_end_ms, s.aggregate) for s in found}


# ---- kill -9


def write_for_ever(pipe: Connection, directory: Path) -> None:
    with opened(directory) as store:
        for batch in itertools.count(store.snapshot(0).position + 1):
            apply(store, batch, pipe.send)


def noted(said: int) -> tuple[int, int]:
    """(last batch that was begun, last that was ended), of what `Writing.commit` says."""
    return said // 2, (said - 1) // 2


def kill_during(child: Child, wait: int, pause_s: float) -> tuple[int, int]:
    """(last batch that was begun, last that was ended) of a child that was killed `pause_s` into its batch `wait`."""
    begun, ended = -1, -1
    for _ in range(10_000):
        said = child.hear(30)
        assert said is not None, "the child ended by itself"
        begun, ended = noted(said)
        if begun > ended and (wait := wait - 1) < 0:
            break
    time.sleep(pause_s)
    assert child.process.pid is not None
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.join()
    while (said := child.hear(1)) is not None:
        begun, ended = noted(said)
    child.pipe.close()
    return begun, ended


def test_kill_at_any_time_loses_and_doubles_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dice, kills, in_a_commit, arrived, position = random.Random(94), 0, 0, 0, -1
    while kills < KILLS or in_a_commit < KILLS_IN_A_COMMIT:
        child = Child(write_for_ever, tmp_path)
        try:
            begun, ended = kill_during(child, dice.randrange(4), dice.uniform(0, 0.0005))
        finally:
            child.end()
        kills, in_a_commit = kills + 1, in_a_commit + (begun != ended)
        with opened(tmp_path) as store:
            position, before = store.snapshot(0).position, position
            arrived += ended < begun == position
            assert position in (begun, begun - 1)
            assert position >= max(ended, before), "a batch that was said to be committed is lost"
            assert held(store) == after(position + 1)
    with opened(tmp_path) as store:
        for batch in range(position + 1, position + 6):  # the source is read again from there
            apply(store, batch)
        assert held(store) == after(position + 6)
    with capsys.disabled():
        inside = f"{in_a_commit} between begin and end of a commit ({arrived} of these batches had reached the disk)"
        print(f"\n{kills} kills, {inside}; {position + 6} batches, 0 lost, 0 twice")


# ---- flipped bits


def answer(pipe: Connection) -> None:
    """Opens the stores it is told and says what they hold, or why they do not."""
    while True:
        directory = pipe.recv()
        try:
            with opened(directory) as store:
                said: Any = (held(store), store.snapshot(0).position)
        except (StoreCorrupted, StoreFailed) as error:
            said = type(error).__name__
        except BaseException as error:
            said = f"unexpected {error!r}"
        pipe.send(said)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One store that was closed, and what a crash left of one: with tables and with a log."""
    place = tmp_path_factory.mktemp("originals")
    for batches in (10, 20):  # each opening makes a table of what the log holds
        with opened(place / "closed") as store:
            for batch in range(batches - 10, batches):
                apply(store, batch)
    shutil.copytree(place / "closed", place / "growing")
    with opened(place / "growing") as store:
        for batch in range(20, 30):
            apply(store, batch)
            if batch in (22, 25):
                store._database.rdict.flush()  # one table more: from then on its log is needed no longer
        time.sleep(0.5)  # and deleted
        shutil.copytree(place / "growing", place / "crashed")
    for log in place.rglob("LOG*"):
        log.unlink()  # RocksDB writes there for people
    return {"closed": place / "closed", "crashed": place / "crashed"}


def flips(original: Path, count: int, seed: int) -> Iterator[tuple[Path, int]]:
    """(file, bit) to flip, each file as often as any other."""
    dice = random.Random(seed)
    files = sorted(file for file in original.rglob("*") if file.is_file() and file.stat().st_size)
    for _ in range(count):
        file = dice.choice(files)
        yield file.relative_to(original), dice.randrange(file.stat().st_size * 8)


def flip(file: Path, bit: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[bit // 8] ^= 1 << bit % 8
    file.write_bytes(raw)


@pytest.mark.parametrize("kind", ["closed", "crashed"])
def test_a_flipped_bit_is_never_a_wrong_answer(
    kind: str, originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = outcomes(kind, originals[kind], tmp_path, flips(originals[kind], FLIPS // 2, 825))
    with capsys.disabled():
        print(f"\n{FLIPS // 2} flipped bits in a store that was {kind}: {counts}")
    assert counts["StoreCorrupted"] > FLIPS // 10


def test_no_flipped_bit_ends_a_log_without_a_word(
    originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Length and type of a record: where RocksDB would stop reading, or never come back, and say nothing."""
    rows = originals["crashed"] / "clicks" / "rows"
    headers = [
        (file.relative_to(originals["crashed"]), bit)
        for file in (*rows.glob("MANIFEST-*"), *rows.glob("*.log"))
        for at in record_starts(file.read_bytes())[-2:]
        for bit in range((at + 4) * 8, (at + 7) * 8)
    ]
    assert len(headers) == 96
    counts = outcomes("crashed", originals["crashed"], tmp_path, headers)
    with capsys.disabled():
        print(f"\n{len(headers)} bits of length and type: {counts}")
    assert counts["StoreCorrupted"] == len(headers)


def outcomes(kind: str, original: Path, place: Path, flipped: Iterable[tuple[Path, int]]) -> dict[str, int]:
    """How often a copy with one flipped bit answered rightly, and how often it was refused; anything else fails."""
    right = {"closed": (after(20), 19), "crashed": (after(30), 29)}[kind]
    counts = {"right": 0, "StoreCorrupted": 0, "StoreFailed": 0}
    child = Child(answer)
    try:
        for number, (file, bit) in enumerate(flipped):
            damaged = place / str(number)
            shutil.copytree(original, damaged)
            flip(damaged / file, bit)
            child.pipe.send(damaged)
            said = child.hear(LIMIT_S + START_S if kind == "crashed" else LIMIT_S)
            assert said is not None, f"bit {bit} of {file}: no answer"
            outcome = "right" if said == right else said
            assert outcome in counts, f"bit {bit} of {file}: {said}"
            counts[outcome] += 1
            shutil.rmtree(damaged)
    finally:
        child.end()
    return counts


def test_an_opening_that_hangs_is_given_up(
    originals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some flipped bits of a manifest make RocksDB read for ever; a pipe that nobody writes to does so every time."""
    shutil.copytree(originals["crashed"], tmp_path / "hanging")
    current = tmp_path / "hanging" / "clicks" / "rows" / "CURRENT"
    current.unlink()
    os.mkfifo(current)
    with pytest.raises(StoreCorrupted, match="CURRENT is not a plain file"):
        opened(tmp_path / "hanging")
    monkeypatch.setattr(StoreFolder, "_check_files", lambda self: None)
    monkeypatch.setattr("sessionkit.stores.rocksdb.disk.folder.OPEN_LIMIT_S", 1)
    began = time.monotonic()
    with pytest.raises(
        StoreCorrupted, match=r"it was not closed, and did not open within 1 s; nothing was deleted; move "
    ):
        opened(tmp_path / "hanging")
    assert 1 <= time.monotonic() - began < 1 + START_S


def test_a_log_cut_anywhere_is_an_older_commit(originals: dict[str, Path], tmp_path: Path) -> None:
    """What a crash of the machine leaves: the store says how far it came, and the source is read again from there."""
    dice, known = random.Random(63), [(after(n), n - 1) for n in range(26, 31)]
    logs = [file for file in originals["crashed"].rglob("*.log") if file.stat().st_size]
    assert logs
    child = Child(answer)
    seen = set()
    try:
        for number in range(20):
            damaged = tmp_path / str(number)
            shutil.copytree(originals["crashed"], damaged)
            log = dice.choice(logs)
            os.truncate(damaged / log.relative_to(originals["crashed"]), dice.randrange(log.stat().st_size))
            child.pipe.send(damaged)
            said = child.hear(LIMIT_S + START_S)
            assert said in known
            seen.add(said[1])
    finally:
        child.end()
    assert len(seen) > 2


# ---- a disk that takes no more


def write_until_refused(pipe: Connection, directory: Path, limit: int) -> None:
    """Writes under a limit for the size of a file; says the last batch that was committed, and what was raised."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    batch = -1
    try:
        with opened(directory) as store:
            while True:
                apply(store, batch + 1)
                batch += 1
    except StoreFailed as error:
        pipe.send((batch, str(error)))


@pytest.mark.parametrize("limit", [40_000, 100_000, 300_000])
def test_a_full_disk_keeps_what_was_committed(tmp_path: Path, limit: int) -> None:
    child = Child(write_until_refused, tmp_path, limit)
    try:
        batch, said = child.hear(60)
    finally:
        child.end()
    assert said.startswith("store 'clicks' cannot be read or written; got IO error: ")
    with opened(tmp_path) as store:
        position = store.snapshot(0).position
        assert position in (batch, batch + 1)
        assert held(store) == after(position + 1)
        apply(store, position + 1)
        assert held(store) == after(position + 2)
