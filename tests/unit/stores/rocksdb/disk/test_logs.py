"""RocksDB's logs: what a crash leaves is let through, what RocksDB would not notice is found."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from sessionkit.errors import StoreCorrupted
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.rocksdb.disk.logs import BLOCK_BYTES, damage_in_logs
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from tests.reliability._stores import record_starts

pytestmark = pytest.mark.lengthy


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log with small records, and with ones that go over the end of a block."""
    directory = tmp_path_factory.mktemp("state")
    with RocksDBSessionStore(name="clicks", directory=directory) as store:
        for size in (1, 10, 15_000, 20_000, 40_000, 5):
            store.put("ada", 5, 9, "x" * size)
        (file,) = (directory / "clicks" / "rows").glob("*.log")
        raw = file.read_bytes()
    assert len(raw) > 2 * BLOCK_BYTES
    return raw


def damage(tmp_path: Path, raw: bytes, name: str = "000007.log") -> str:
    (tmp_path / name).write_bytes(raw)
    return damage_in_logs(tmp_path)


def headers(log: bytes) -> list[int]:
    found = record_starts(log)
    last = log[found[-1] :]
    assert len(last) == 7 + int.from_bytes(last[4:6], "little")
    return found


def test_what_a_crash_leaves_is_no_damage(tmp_path: Path, log: bytes) -> None:
    """A log that ends anywhere, or in zeros."""
    starts = headers(log)
    assert len(starts) > 7
    near = {cut for at in starts for cut in range(at - 3, at + 20)} | {*range(0, len(log), 977), len(log)}
    for cut in near:
        if 0 <= cut <= len(log):
            assert damage(tmp_path, log[:cut]) == "", cut
    for zeros in (1, 7, 100, BLOCK_BYTES):
        assert damage(tmp_path, log + bytes(zeros)) == ""


def test_a_length_beyond_the_end_is_found(tmp_path: Path, log: bytes) -> None:
    """RocksDB would take it for a record that was cut off."""
    last_block = [at for at in headers(log) if at // BLOCK_BYTES == len(log) // BLOCK_BYTES]
    for at in last_block:
        length = int.from_bytes(log[at + 4 : at + 6], "little")
        for bit in range(16):
            other = length ^ 1 << bit
            if at + 7 + other > len(log):
                raw = log[: at + 4] + other.to_bytes(2, "little") + log[at + 6 :]
                assert damage(tmp_path, raw) == f"000007.log is damaged at byte {at:,}"


@pytest.mark.parametrize(
    ("behind", "is_found"),
    [
        *((b"", True), (bytes(6), True), (bytes(6) + b"\1", True), (bytes(6) + b"\4", True)),
        *((bytes(7), False), (bytes(6) + b"\5", False), (bytes(100), False)),
    ],
)
def test_a_record_with_a_wrong_length_is_known_by_its_checksum_and_by_what_is_behind_it(
    tmp_path: Path, log: bytes, behind: bytes, is_found: bool
) -> None:
    """The end of the log, too little for another record, or the header of one."""
    record = log[headers(log)[-1] :]
    raw = record[:5] + bytes([record[5] ^ 0x80]) + record[6:] + behind
    assert damage(tmp_path, raw) == ("000007.log is damaged at byte 0" if is_found else "")


def test_a_record_of_a_recycled_log_is_found(tmp_path: Path, log: bytes) -> None:
    """RocksDB would take it for the end of this one, or never come back."""
    for at in headers(log):
        raw = log[: at + 6] + bytes([log[at + 6] + 4]) + log[at + 7 :]
        for name in ("000007.log", "MANIFEST-000003"):
            assert damage(tmp_path, raw, name).endswith(f" is damaged at byte {at:,}")
            (tmp_path / name).unlink()


def test_the_end_of_a_block_is_filled_up(tmp_path: Path) -> None:
    """No header begins in its last six bytes."""
    length = BLOCK_BYTES - 7 - 3
    block = bytes(4) + length.to_bytes(2, "little") + b"\1" + bytes(length) + bytes(3)
    assert damage(tmp_path, block + bytes(4) + b"\0\0\1") == ""
    assert damage(tmp_path, block + bytes(4) + b"\0\0\5") == f"000007.log is damaged at byte {BLOCK_BYTES:,}"


@pytest.mark.parametrize("kind", [0, 9, 129])
def test_what_rocksdb_says_itself_is_left_to_it(tmp_path: Path, log: bytes, kind: int) -> None:
    assert damage(tmp_path, log[:6] + bytes([kind]) + log[7:]) == ""


def test_other_files_are_not_read(tmp_path: Path) -> None:
    nothing: Any = bytes(6) + b"\5"
    assert damage(tmp_path, nothing, "000007.sst") == ""
    assert damage(tmp_path, nothing, "LOG") == ""
    assert damage(tmp_path, nothing, "MANIFEST-000001") == "MANIFEST-000001 is damaged at byte 0"


# ---- two logs: a table was being made of one while changes went to the other


def commit(store: RocksDBSessionStore, batches: range) -> None:
    for batch in batches:
        with store.all_or_nothing():
            store.put(f"key {batch}", batch, batch, "x" * 30)
        store.commit_snapshots({0: Snapshot(batch, batch, -1)})


def grown(directory: Path) -> RocksDBSessionStore:
    """A store that was opened twice: commits 10 to 14 are in its log."""
    with RocksDBSessionStore(name="clicks", directory=directory) as store:
        commit(store, range(10))
    store = RocksDBSessionStore(name="clicks", directory=directory)
    commit(store, range(10, 15))
    return store


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a kill leaves when it comes while a table is made: commits 10 to 14 in one log, 15 to 19 in the next."""
    place = tmp_path_factory.mktemp("two")
    with grown(place / "growing") as store:
        shutil.copytree(place / "growing", place / "left")
        store._database.rdict.flush()
        commit(store, range(15, 20))
        before = {file.name for file in logs_of(place / "left")}
        for file in logs_of(place / "growing"):
            if file.name not in before:
                shutil.copy(file, rows_of(place / "left"))
    assert len(logs_of(place / "left")) == 2
    return place / "left"


@pytest.fixture
def it(two: Path, tmp_path: Path) -> Path:
    """A copy of `two` that a test may damage."""
    return Path(shutil.copytree(two, tmp_path / "it"))


def rows_of(directory: Path) -> Path:
    return directory / "clicks" / "rows"


def logs_of(directory: Path) -> list[Path]:
    return sorted(file for file in rows_of(directory).glob("*.log") if file.stat().st_size)


def position(directory: Path) -> int:
    with RocksDBSessionStore(name="clicks", directory=directory) as store:
        position = store.snapshot(0).position
        assert [session.aggregate for session in store.all()] == ["x" * 30] * (position + 1)
        return position


def test_two_logs_of_a_kill_are_read(it: Path) -> None:
    assert position(it) == 19


@pytest.mark.parametrize("left", ["all but a byte", "a record less", "nothing", "no file"])
def test_an_older_log_without_its_end_is_damage(it: Path, left: str) -> None:
    older, newer = logs_of(it)
    raw = older.read_bytes()
    cut = {"all but a byte": len(raw) - 1, "a record less": headers(raw)[-1]}.get(left, 0)
    older.write_bytes(raw[:cut])
    said = f"{older.name} lacks its end, as {newer.name} continues after it"
    if left == "a record less":
        said = f"{newer.name} continues with change "
    if left == "no file":
        older.unlink()
        said = f"{older.name} is missing"
    with pytest.raises(StoreCorrupted, match=f"it was not closed, and {said}"):
        position(it)


def test_the_last_log_may_end_anywhere(it: Path) -> None:
    newer = logs_of(it)[1]
    raw = newer.read_bytes()
    for cut in range(len(raw)):
        newer.write_bytes(raw[:cut])
        assert damage_in_logs(rows_of(it)) == ""
    newer.write_bytes(raw[: headers(raw)[-1]])
    assert position(it) == 18


def test_every_cut_of_an_older_log_is_found(it: Path) -> None:
    older, newer = logs_of(it)
    raw = older.read_bytes()
    for cut in range(len(raw)):
        older.write_bytes(raw[:cut])
        assert newer.name in damage_in_logs(rows_of(it)), cut


def test_a_log_that_lacks_a_record_in_its_middle_is_found(it: Path) -> None:
    older, newer = logs_of(it)
    for file in (older, newer):
        raw = file.read_bytes()
        starts = headers(raw)
        for at, behind in itertools.pairwise(starts):
            file.write_bytes(raw[:at] + raw[behind:])
            assert " continues with change " in damage_in_logs(rows_of(it)), (file, at)
        file.write_bytes(raw)


def test_a_manifest_cut_anywhere_is_no_older_store(it: Path) -> None:
    """It forgets tables whose logs are gone."""
    (manifest,) = rows_of(it).glob("MANIFEST-*")
    raw = manifest.read_bytes()
    last = headers(raw)[-1]  # the last edits are written at once, before the manifest is the current one
    for cut in [*headers(raw), last + 1, last + 8]:
        manifest.write_bytes(raw[:cut])
        assert damage_in_logs(rows_of(it)) == f"{manifest.name} lacks its beginning", cut


def test_an_opening_that_a_crash_ended_leaves_an_empty_log(it: Path) -> None:
    """Behind a log that was cut off, too; nothing was written to it."""
    rows, newer = rows_of(it), logs_of(it)[1]
    newer.write_bytes(newer.read_bytes()[:-1])
    (rows / f"{int(newer.stem) + 5:06}.log").touch()
    assert damage_in_logs(rows) == ""
    assert position(it) == 18


# ---- files of another store, made in the same way


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many changes as in `two`, in one log."""
    place = tmp_path_factory.mktemp("another")
    with grown(place / "growing"):
        return Path(shutil.copytree(place / "growing", place / "left"))


def test_a_log_of_another_store_is_found(it: Path, another: Path) -> None:
    """Its changes have the numbers that are expected."""
    older = logs_of(it)[0]
    (of_another,) = logs_of(another)
    assert of_another.name == older.name
    shutil.copy(of_another, older)
    with pytest.raises(StoreCorrupted, match=f"{older.name} has changes of another store at byte 0"):
        position(it)


def test_tables_of_another_store_are_found(it: Path, another: Path) -> None:
    """All that is not a log, with its manifest; the logs follow."""
    rows = rows_of(it)
    for file in rows.iterdir():
        if file.suffix != ".log":
            file.unlink()
    for file in rows_of(another).iterdir():
        if file.suffix != ".log":
            shutil.copy(file, rows)
    with pytest.raises(StoreCorrupted, match="its tables are another store's"):
        position(it)


def test_whose_store_it_is_said_to_be_is_held_against_its_files(it: Path, another: Path) -> None:
    shutil.copy(another / "clicks" / "STORE", it / "clicks")
    with pytest.raises(StoreCorrupted, match=r"\.log has changes of another store at byte 0"):
        position(it)


def test_an_older_log_in_the_place_of_a_later_one_is_found(tmp_path: Path) -> None:
    """What it changes is in tables already, and was changed again since: RocksDB would answer with the older."""
    with RocksDBSessionStore(name="clicks", directory=tmp_path) as store:
        commit(store, range(10))
    with RocksDBSessionStore(name="clicks", directory=tmp_path) as store:
        store.put("ada", 5, 9, "older")
        store.commit_snapshots({0: Snapshot(10, 10, -1)})
        (older,) = logs_of(tmp_path)
        raw = older.read_bytes()
        store.remove("ada", 5, 9)
        store.put("ada", 5, 9, "newer")
        commit(store, range(10, 15))
    (tmp_path / "clicks" / "CLOSED").unlink()
    (last,) = rows_of(tmp_path).glob("*.log")
    last.write_bytes(raw)
    first = int.from_bytes(raw[7:15], "little")
    said = f"{last.name} begins with change {first:,}, which is in a table already"
    with pytest.raises(StoreCorrupted, match=f"it was not closed, and {said}"):
        RocksDBSessionStore(name="clicks", directory=tmp_path)


# ---- logs by hand: what of them RocksDB would not miss


def number(value: int) -> bytes:
    """As RocksDB writes it in a manifest: seven bits a byte, the lowest first."""
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def edit(*numbers: int) -> bytes:
    """Tags and their numbers, one after the other."""
    return b"".join(map(number, numbers))


def record(body: bytes, kind: int = 1) -> bytes:
    return bytes(4) + len(body).to_bytes(2, "little") + bytes([kind]) + body


def batch(sequence: int, count: int, row: bytes = b"mine") -> bytes:
    return sequence.to_bytes(8, "little") + count.to_bytes(4, "little") + row


LOG, NEXT, SEQUENCE = 2, 3, 4  # the tags
WHOLE = edit(LOG, 4, NEXT, 9, SEQUENCE, 9)  # log 4 is the first, and 9 changes are in tables


def gap(rows: Path, logs: dict[int, bytes], *edits: bytes, manifest: int = 3, current: bytes | None = None) -> str:
    """What is wrong with these logs under a manifest of these edits."""
    rows.mkdir()
    (rows / "CURRENT").write_bytes(b"MANIFEST-%06d\n" % manifest if current is None else current)
    (rows / f"MANIFEST-{manifest:06}").write_bytes(b"".join(map(record, edits or (WHOLE,))))
    for name, raw in logs.items():
        (rows / f"{name:06}.log").write_bytes(raw)
    return damage_in_logs(rows, b"mine")


def log_of(*batches: bytes) -> bytes:
    return b"".join(map(record, batches))


TEN, ELEVEN, TWELVE = batch(10, 1), batch(11, 1), batch(12, 1)  # 23 bytes each in a log


@pytest.mark.parametrize(("logs", "said"), [
    ({4: log_of(batch(10, 2), TWELVE)}, ""),
    ({4: log_of(batch(10, 2), batch(13, 1))}, "000004.log continues with change 13 at byte 23, not 12"),
    ({4: log_of(TEN), 5: log_of(ELEVEN)}, ""),
    ({4: log_of(TEN), 5: log_of(TWELVE)}, "000005.log continues with change 12 at byte 0, not 11"),
    ({4: log_of(TEN), 5: log_of(TEN)}, "000005.log continues with change 10 at byte 0, not 11"),
    ({4: log_of(ELEVEN)}, "000004.log continues with change 11 at byte 0, not 10"),
    ({4: log_of(batch(9, 1), TEN)}, "000004.log begins with change 9, which is in a table already"),
    ({4: log_of(batch(1_000, 1))}, "000004.log continues with change 1,000 at byte 0, not 10"),
])  # fmt: skip
def test_changes_follow_each_other(tmp_path: Path, logs: dict[int, bytes], said: str) -> None:
    assert gap(tmp_path / "rows", logs) == said


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ((TEN, batch(11, 1, b"theirs")), "000004.log has changes of another store at byte 23"),
        ((TEN, batch(11, 1, b"min")), "000004.log has changes of another store at byte 23"),
        ((TEN, batch(11, 1, b"mine and more")), ""),
        ((TEN, batch(11, 0, b"")), ""),  # no changes, so there is no row in front of them
        ((TEN, batch(12, 0, b"")), "000004.log continues with change 12 at byte 23, not 11"),
        ((TEN, b"too short", TWELVE), "000004.log continues with change 12 at byte 39, not 11"),
        ((TEN, b"too short", ELEVEN), ""),
    ],
)
def test_changes_are_of_the_store(tmp_path: Path, batches: tuple[bytes, ...], said: str) -> None:
    assert gap(tmp_path / "rows", {4: log_of(*batches)}) == said


@pytest.mark.parametrize(("logs", "said"), [
    ({4: log_of(TEN), 5: b"", 6: b""}, ""), ({4: log_of(TEN, ELEVEN)[:-1], 5: b""}, ""),
    ({4: log_of(TEN, ELEVEN)[:-1], 5: log_of(ELEVEN)}, "000004.log lacks its end, as 000005.log continues after it"),
    ({4: log_of(TEN) + bytes(9), 5: b""}, ""),
    ({4: log_of(TEN) + bytes(9), 5: log_of(ELEVEN)}, "000004.log lacks its end, as 000005.log continues after it"),
    ({4: log_of(TEN), 5: b"", 6: log_of(ELEVEN)}, "000005.log lacks its end, as 000006.log continues after it"),
    ({4: log_of(TEN) + record(ELEVEN, 2), 5: log_of(ELEVEN)},
     "000004.log lacks its end, as 000005.log continues after it"),
])  # fmt: skip
def test_only_the_last_log_may_lack_its_end(tmp_path: Path, logs: dict[int, bytes], said: str) -> None:
    assert gap(tmp_path / "rows", logs) == said


@pytest.mark.parametrize(
    ("first", "manifest", "logs", "said"),
    [
        (4, 3, [4], ""),
        (4, 3, [2, 4], ""),  # all of log 2 is in tables
        (4, 3, [5], "000004.log is missing"),
        (4, 3, [], "000004.log is missing"),
        (0, 5, [4], ""),  # whoever opens a store makes log 4, and then manifest 5
        (0, 5, [4, 6], ""),
        (0, 5, [3], "000004.log is missing"),
        (0, 5, [3, 4], "000003.log is not one of its logs"),
        (2, 9, [7], "000008.log is missing"),
        (2, 9, [8], ""),
        (300, 3, [300], ""),
        (300, 3, [299], "000300.log is missing"),
    ],
)
def test_the_first_log_is_the_one_that_the_manifest_says(
    tmp_path: Path, first: int, manifest: int, logs: list[int], said: str
) -> None:
    """Until it names one that is there: then the one that was made just before it."""
    rest = itertools.repeat(b"")
    content = dict(zip(logs, itertools.chain([log_of(TEN)], rest), strict=False))
    assert gap(tmp_path / "rows", content, edit(LOG, first, NEXT, 999, SEQUENCE, 9), manifest=manifest) == said


COMPARATOR = number(1) + number(4) + b"\2\3\4\5"
IN_TABLE = "000004.log begins with change 10, which is in a table already"


def table(last: int) -> bytes:
    """An edit that adds a table: level, number, size, two keys of 300 bytes, its first and last change, and more."""
    key = number(300) + b"\4" * 300
    return edit(103, 0, 400, 5_000) + key + key + edit(1, last, 5, 2, 4, 4, 1)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([WHOLE], ""),
        ([edit(NEXT, 4) + edit(LOG, 4, SEQUENCE, 9)], ""),
        ([edit(NEXT, 3) + edit(LOG, 4, SEQUENCE, 9)], "MANIFEST-000003 lacks its beginning"),
        ([edit(LOG, 4, SEQUENCE, 9)], "MANIFEST-000003 lacks its beginning"),
        ([COMPARATOR + WHOLE], ""),
        ([number(1 << 13 | 7) + number(4) + b"\2\3\4\5" + WHOLE], ""),
        ([edit(9, 1, 10, 2, 203, 3) + WHOLE], ""),
        ([edit(7, 1) + WHOLE], "MANIFEST-000003 lacks its beginning"),  # a file: the numbers stood before it
        ([WHOLE + edit(7, 1) + edit(LOG, 5)], ""),
        ([edit(LOG, 2, NEXT, 9, SEQUENCE, 5), edit(SEQUENCE, 9), edit(LOG, 4)], ""),
        ([WHOLE, edit(LOG, 5)], "000005.log is missing"),
        ([edit(LOG, 4, NEXT, 9, SEQUENCE, 8)], "000004.log continues with change 10 at byte 0, not 9"),
        ([WHOLE, edit(SEQUENCE, 2**40)], ""),  # the log had got so far when a table was made of the one before
        ([edit(LOG, 4, NEXT, 9, SEQUENCE, 10)], "000004.log begins with change 10, which is in a table already"),
        ([WHOLE, edit(SEQUENCE, 50) + table(9)], ""),
        ([WHOLE, edit(SEQUENCE, 50) + table(10)], IN_TABLE),
        ([WHOLE, edit(SEQUENCE, 50) + table(10), edit(SEQUENCE, 60, 6, 0, 400) + table(0)], IN_TABLE),  # merged
        ([WHOLE, edit(SEQUENCE, 50) + table(10)[:-3]], IN_TABLE),
    ],
)
def test_numbers_of_a_manifest(tmp_path: Path, edits: list[bytes], said: str) -> None:
    assert gap(tmp_path / "rows", {4: log_of(TEN)}, *edits) == said


@pytest.mark.parametrize("current", [b"", b"MANIFEST-000004\n", b"MANIFEST-x\n", b"\xff\n", b"LOG\n"])
def test_which_manifest_is_the_current_one_is_left_to_rocksdb(tmp_path: Path, current: bytes) -> None:
    assert gap(tmp_path / "rows", {}, current=current) == ""


@pytest.mark.parametrize("parts", [(10,), (7, 5), (2, 3, 4), (12,)])
def test_a_record_of_several_parts_is_one(tmp_path: Path, parts: tuple[int, ...]) -> None:
    """However short they are."""

    def split(body: bytes) -> bytes:
        cuts = [0, *itertools.accumulate(parts)]
        kinds = [2, *[3] * (len(parts) - 1)]
        found = [
            record(body[low:high], kind) for (low, high), kind in zip(itertools.pairwise(cuts), kinds, strict=True)
        ]
        return b"".join(found) + record(body[cuts[-1] :], 4)

    whole, torn = record(TEN) + split(ELEVEN) + record(TWELVE), record(TEN) + split(TWELVE)
    assert gap(tmp_path / "whole", {4: whole}) == ""
    assert gap(tmp_path / "torn", {4: torn}) == "000004.log continues with change 12 at byte 23, not 11"
    theirs = record(TEN) + split(batch(11, 1, b"theirs"))
    assert gap(tmp_path / "theirs", {4: theirs}) == "000004.log has changes of another store at byte 23"
