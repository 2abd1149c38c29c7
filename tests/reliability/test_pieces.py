"""The harness of the long checks: nothing is done twice, nothing that failed is passed over."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.reliability import pieces
from tests.reliability.pieces import PAGE, ROW, Kept, Ledger, Piece, keep, kept, names, shown_on


def piece(seed: int, commit: str = "a", wrong: tuple[str, ...] = ()) -> Piece:
    return Piece(commit=commit, seed=seed, seconds=1, done=10, wrong=list(wrong), noted={"met": 2})


def test_a_ledger_counts_by_commit_and_never_gives_a_seed_twice(tmp_path: Path) -> None:
    ledger = Ledger("frames", tmp_path, tmp_path / "done.csv")
    for each in (piece(0), piece(1), piece(2, "b")):
        ledger.add(each)
    again = Ledger("frames", tmp_path, tmp_path / "done.csv")
    assert again.pieces == ledger.pieces
    assert (again.done("a"), again.done("b"), again.next_seed()) == (20, 10, 3)
    assert list(again.table()) == [
        "frames on a: 20 cases, 0 wrong, 2 s, seeds 0 to 1; met 4",
        "frames on b: 10 cases, 0 wrong, 1 s, seeds 2 to 2; met 2",
    ]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    Ledger("frames", tmp_path, tmp_path / "done.csv").add(piece(0))
    file = tmp_path / "frames.jsonl"
    file.write_text(file.read_text() + '{"commit": "a", "see')
    Ledger("frames", tmp_path, tmp_path / "done.csv").add(piece(1))
    assert Ledger("frames", tmp_path, tmp_path / "done.csv").pieces == [piece(0), piece(1)]


def run_with(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger, cases: int | None, failing: int | None = None
) -> list[tuple[int, int]]:
    asked: list[tuple[int, int]] = []

    def in_process(_name: str, seed: int, count: int, at: str) -> Piece:
        asked.append((seed, count))
        return Piece(commit=at, seed=seed, seconds=0, done=count, wrong=["no"] if seed == failing else [])

    monkeypatch.setattr(pieces, "load", lambda _name: SimpleNamespace(PIECE=4, GOAL=100))
    monkeypatch.setattr(pieces, "commit", lambda: "a")
    monkeypatch.setattr(pieces, "_in_process", in_process)
    pieces.run("frames", cases, 2, ledger)
    return asked


def test_a_run_goes_on_where_another_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sorted(run_with(monkeypatch, Ledger("frames", tmp_path, tmp_path / "done.csv"), 10)) == [
        (0, 4),
        (1, 4),
        (2, 2),
    ]
    assert run_with(monkeypatch, Ledger("frames", tmp_path, tmp_path / "done.csv"), 10) == []
    assert run_with(monkeypatch, Ledger("frames", tmp_path, tmp_path / "done.csv"), 13) == [(3, 3)]


def test_no_piece_is_begun_after_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ledger = Ledger("frames", tmp_path, tmp_path / "done.csv")
    run_with(monkeypatch, ledger, 1000, failing=1)
    assert ledger.next_seed() < 6
    assert run_with(monkeypatch, ledger, 1000) == []


def test_a_process_that_dies_is_a_failure() -> None:
    ended = pieces._in_process("no-such-check", 7, 10, "a")
    assert len(ended.wrong) == 1
    assert "seed 7: the process ended with 2" in ended.wrong[0]


def test_another_checkout_goes_on_where_this_one_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = tmp_path / "done.csv"
    here = Ledger("frames", tmp_path / "here", done)
    for each in (piece(0), piece(1), piece(2, "b"), piece(3, "mended", ("no",))):
        here.add(each)
    keep([here], done)
    keep([Ledger("frames", tmp_path / "here", done)], done)  # once more changes nothing
    assert kept(done) == [Kept("frames", "a", 20, 0, 0, 1), Kept("frames", "b", 10, 0, 2, 2)]
    there = Ledger("frames", tmp_path / "there", done)
    assert (there.next_seed(), there.done_at_all(), there.done("a")) == (3, 30, 0)
    assert sorted(run_with(monkeypatch, there, None)) == [(seed, 4) for seed in range(3, 20)] + [(20, 2)]
    keep([there], done)
    assert sum(line.cases for line in kept(done)) == 100


def test_the_page_says_what_was_done() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert shown_on(page) == page
    assert sorted(found[1] for found in ROW.finditer(page)) == names()
    assert [line for line in kept() if line.wrong] == []
