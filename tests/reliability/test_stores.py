"""A slice of each long check of stores."""

import random
from pathlib import Path

import pytest

from tests.reliability import store_bits, store_folders, store_kills
from tests.reliability._stores import files_of


def test_kills() -> None:
    outcome = store_kills.check(seed=12, count=20)
    assert outcome.wrong == []
    assert outcome.done == 20
    assert outcome.noted["killed while writing"] > 12
    assert outcome.noted["inside a flush or compaction"] > 0


@pytest.mark.thorough
def test_bits() -> None:
    outcome = store_bits.check(seed=25, count=250)
    assert outcome.wrong == []
    assert outcome.done == sum(outcome.noted.values()) == 250
    for state in store_bits.STATES:
        assert outcome.noted[f"{state}: right"] > 0
        assert outcome.noted[f"{state}: StoreCorrupted"] > 30


def test_a_log_that_was_cut_inside_its_first_header_has_no_record_to_take_out() -> None:
    log = Path("clicks/rows/000007.log")
    files, other = {log: b"\1\2\3"}, store_folders.Folder("one", "closed", {})
    assert store_folders.take_out(random.Random(1), files, other) == "nothing"
    assert files == {log: b"\1\2\3"}


def test_a_file_that_rocksdb_removes_while_the_folder_is_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "000017.sst").write_bytes(b"old")
    (tmp_path / "000018.sst").write_bytes(b"new")
    read = Path.read_bytes

    def removes(file: Path) -> bytes:
        if file.name == "000018.sst":
            (tmp_path / "000017.sst").unlink(missing_ok=True)
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", removes)
    assert files_of(tmp_path) == {Path("000018.sst"): b"new"}


@pytest.mark.thorough
def test_folders() -> None:
    outcome = store_folders.check(seed=35, count=200)
    assert outcome.wrong == []
    assert outcome.done == sum(outcome.noted.values()) == 200
    assert outcome.noted["a state it had"] > 30
    assert outcome.noted["StoreCorrupted"] > 50
    assert outcome.noted["threads"] == outcome.noted["forks"] == 3
