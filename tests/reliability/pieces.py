"""Long checks in pieces: each has a seed of its own and a process of its own, and what was done is written down.

A check is a module of this folder with `PIECE` (cases that take about half a minute), `GOAL` (how many it should come
to) and `check(seed, count)`, which draws its cases from the seed alone.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import json
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

ROOT = Path(__file__).parent.parent.parent
LEDGERS = ROOT / "out" / "reliability"
DONE = Path(__file__).with_name("done.csv")  # what of the ledgers is kept with the code
PAGE = ROOT / "docs" / "reliability.md"  # which shows it
ROW = re.compile(r"^\| `(\w+)` \| (.*) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)  # check, what it does, cases, goal
PIECE_LIMIT_S = 3600
_NOT_CHECKS = ("pieces", "__main__")


class Outcome(NamedTuple):
    """What a piece came to: in `wrong` a text a failure, from which it can be replayed; `noted` counts what was met."""

    done: int
    wrong: list[str]
    noted: dict[str, int]


class Check(Protocol):
    """A module that checks."""

    PIECE: int
    GOAL: int

    def check(self, seed: int, count: int) -> Outcome:
        """`count` cases of this seed."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A line of a ledger."""

    commit: str
    seed: int
    seconds: float
    done: int
    wrong: list[str] = field(default_factory=list)
    noted: dict[str, int] = field(default_factory=dict)


class Kept(NamedTuple):
    """A line of what is kept: a check on a commit."""

    check: str
    commit: str
    cases: int
    wrong: int
    first_seed: int
    last_seed: int


def kept(file: Path = DONE) -> list[Kept]:
    """What was kept so far, of all checks."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return [Kept(name, at, *map(int, numbers)) for name, at, *numbers in list(csv.reader(lines))[1:]]


def keep(ledgers: Iterable[Ledger], file: Path = DONE) -> None:
    """Adds what the ledgers have, but of no commit with a failure: it is mended, and the check begins again.

    A check on a commit whose seeds go on has one line.
    """
    lines = {(line.check, line.commit, line.first_seed): line for line in kept(file)}
    lines |= {
        (line.check, line.commit, line.first_seed): line
        for ledger in ledgers
        for line in ledger.sums()
        if not line.wrong
    }
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(Kept._fields)
        writer.writerows(sorted(lines.values(), key=lambda line: (line.check, line.first_seed)))


def shown_on(page: str) -> str:
    """The page with the numbers that are kept."""

    def row(found: re.Match[str]) -> str:
        cases = sum(line.cases for line in kept() if line.check == found[1])
        return f"| `{found[1]}` | {found[2]} | {cases:,} | {load(found[1]).GOAL:,} |"

    return ROW.sub(row, page)


def names() -> list[str]:
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name for name in found if name not in _NOT_CHECKS and not name.startswith(("test_", "_")))


def load(name: str) -> Check:
    return cast(Check, importlib.import_module(f"tests.reliability.{name}"))


def commit() -> str:
    """The commit that is checked out, with a "+" where files differ from it."""
    git = ("git", "-C", str(ROOT))
    head = subprocess.run([*git, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout
    return (head.stdout.strip() or "unknown") + ("+" if changed.strip() else "")


class Ledger:
    """What was done of a check, a line a piece."""

    def __init__(self, name: str, folder: Path = LEDGERS, done: Path = DONE) -> None:
        self._name, self._kept = name, [line for line in kept(done) if line.check == name]
        self._path = folder / f"{name}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        self.pieces = [Piece(**json.loads(line)) for line in whole.splitlines()]
        if torn:  # by a run that was killed while it wrote
            self._path.write_text(whole + "\n" if whole else "", encoding="utf-8")

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(piece)) + "\n")

    def done(self, at: str) -> int:
        """How many cases were done on this commit."""
        return sum(piece.done for piece in self.pieces if piece.commit == at)

    def done_at_all(self) -> int:
        """How many cases were done, here and on other machines."""
        here = self.sums()
        return sum(
            line.cases for line in {(each.commit, each.first_seed): each for each in [*self._kept, *here]}.values()
        )

    def next_seed(self) -> int:
        """The first seed that was not used on any commit."""
        used = [*(piece.seed for piece in self.pieces), *(line.last_seed for line in self._kept)]
        return max(used, default=-1) + 1

    def sums(self) -> list[Kept]:
        """A line a commit, to be kept."""
        found = []
        for at in dict.fromkeys(piece.commit for piece in self.pieces):
            mine = [piece for piece in self.pieces if piece.commit == at]
            seeds, wrong = [piece.seed for piece in mine], sum(len(piece.wrong) for piece in mine)
            found.append(Kept(self._name, at, sum(piece.done for piece in mine), wrong, min(seeds), max(seeds)))
        return found

    def table(self) -> Iterator[str]:
        """A line a commit, in the order in which they were met."""
        for at in dict.fromkeys(piece.commit for piece in self.pieces):
            mine = [piece for piece in self.pieces if piece.commit == at]
            noted: Counter[str] = Counter()
            for piece in mine:
                noted.update(piece.noted)
            wrong = sum(len(piece.wrong) for piece in mine)
            done, seconds = sum(piece.done for piece in mine), sum(piece.seconds for piece in mine)
            seeds = f"seeds {mine[0].seed} to {max(piece.seed for piece in mine)}"
            met = ", ".join(f"{what} {count:,}" for what, count in sorted(noted.items()))
            yield f"{self._path.stem} on {at}: {done:,} cases, {wrong} wrong, {seconds:,.0f} s, {seeds}; {met}"


def run(name: str, cases: int | None, processes: int, ledger: Ledger) -> int:
    """Goes on until `cases` were done on this commit, or the goal at all; how many of this commit were wrong.

    No new piece is begun after one with a failure: it is to be mended first.
    """
    at, check = commit(), load(name)
    piece = check.PIECE
    if cases is None:
        cases = check.GOAL - ledger.done_at_all() + ledger.done(at)
    under_way: dict[Future[Piece], int] = {}
    seeds = itertools.count(ledger.next_seed())
    with ThreadPoolExecutor(processes) as pool:
        while True:
            left = cases - ledger.done(at) - sum(under_way.values())
            if left > 0 and len(under_way) < processes and not _wrong(ledger, at):
                count = min(piece, left)
                under_way[pool.submit(_in_process, name, next(seeds), count, at)] = count
                continue
            if not under_way:
                return _wrong(ledger, at)
            for finished in wait(under_way, return_when=FIRST_COMPLETED).done:
                under_way.pop(finished)
                ledger.add(finished.result())
                print(f"{name}: {ledger.done(at):,} of {cases:,}, {_wrong(ledger, at)} wrong", flush=True)


def _wrong(ledger: Ledger, at: str) -> int:
    return sum(len(piece.wrong) for piece in ledger.pieces if piece.commit == at)


def _in_process(name: str, seed: int, count: int, at: str) -> Piece:
    """The piece in a Python of its own: one that dies is a failure, and takes nothing else along."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.reliability", name, "--seed", str(seed), "--cases", str(count), "--json"]
    told: dict[str, Any]
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PIECE_LIMIT_S, env={**os.environ}
        )
        told = json.loads(ended.stdout.splitlines()[-1])
    except (json.JSONDecodeError, IndexError):
        told = {
            "done": count,
            "wrong": [f"seed {seed}: the process ended with {ended.returncode}: {ended.stderr[-2000:]}"],
        }
    except subprocess.TimeoutExpired:
        told = {"done": count, "wrong": [f"seed {seed}: not through after {PIECE_LIMIT_S} s"]}
    return Piece(commit=at, seed=seed, seconds=round(time.monotonic() - began, 1), **told)
