"""Every bit of small stores, one at a time: the same answers, or a refusal; never another answer, never a hang.

A seed takes each `SLICES`-th bit, beginning with its own: `SLICES` seeds are all bits, of OPTIONS one bit a byte. A
folder that was not closed is tried by this check in the process that then opens it, which the store would do in a
Python of its own: if it dies or hangs there, that is the store's refusal.
"""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.reliability._stores import (
    KINDS,
    Child,
    Writing,
    answers,
    expected,
    files_of,
    opened,
    reads,
    rows_of,
    scratch,
    try_here,
    write_files,
)
from tests.reliability.pieces import Outcome

SLICES = 300
PIECE = 1_000  # at most so many bits are in a slice
GOAL = 288_000  # all of them, and so many more that no slice is cut short
MOST_BYTES = 8 << 10  # of a store, without OPTIONS
KEYS = 4
TRY_LIMIT_S, LIMIT_S = 2, 60
STATES = ("closed", "crashed")
BATCHES = {"closed": 6, "crashed": 9}


class Case(NamedTuple):
    """A bit of a file of a store."""

    kind: str
    state: str
    file: Path  # in the folder of the store's directory
    bit: int

    def __str__(self) -> str:
        return f"bit {self.bit} of {self.file} of a {self.kind} store that was {self.state}"


def writing_of(kind: str) -> Writing:
    """What the small stores of this kind are filled with."""
    return Writing("bits", kind, KEYS, 20)


def make_originals(pipe: Connection, place: Path) -> None:
    """Makes each store as it was closed, and as a crash left it while a table was made: with two logs."""
    for kind in KINDS:
        writing, growing = writing_of(kind), place / "growing"
        with opened(kind, growing) as store:
            for batch in range(6):
                writing.commit(store, batch)
        shutil.copytree(growing, place / kind / "closed")
        # That was two tables, one with the header. With two more RocksDB merges them, and waits for a second where one
        # of them is damaged.
        with opened(kind, growing) as store:
            writing.commit(store, 6)
            shutil.copytree(growing, place / kind / "crashed")
            store._database.rdict.flush()
            writing.commit(store, 7)
            writing.commit(store, 8)
            crashed = rows_of(place / kind / "crashed")
            for log in rows_of(growing).glob("*.log"):
                if not (crashed / log.name).exists():
                    shutil.copy(log, crashed)
        shutil.rmtree(growing)
    for log in place.rglob("LOG*"):
        log.unlink()  # RocksDB writes there for people
    pipe.send("made")


def cases(place: Path, slice_: int) -> Iterator[Case]:
    number = 0
    for kind in KINDS:
        for state in STATES:
            for file, raw in files_of(place / kind / state).items():
                few = file.name.startswith("OPTIONS")
                bits = (at * 8 + at % 8 for at in range(len(raw))) if few else range(len(raw) * 8)
                for bit in bits:
                    if number % SLICES == slice_:
                        yield Case(kind, state, file, bit)
                    number += 1


def judge(pipe: Connection, place: Path, work: list[tuple[int, Case]]) -> None:
    """Says of each case what came of it."""
    try_here(TRY_LIMIT_S, pipe.send)
    right = {(kind, state): writing_of(kind).after(BATCHES[state]) for kind in KINDS for state in STATES}
    files = {of: files_of(place / of[0] / of[1]) for of in right}
    for number, case in work:
        with scratch(place) as directory:
            raw = bytearray(files[case.kind, case.state][case.file])
            raw[case.bit // 8] ^= 1 << case.bit % 8
            write_files(directory, {**files[case.kind, case.state], case.file: bytes(raw)})
            pipe.send((number, _outcome(case, directory, right[case.kind, case.state])))


def _outcome(case: Case, directory: Path, model: Any) -> str:
    """What came of it; beginning with "wrong" if that must not be."""
    try:
        found = answers(case.kind, KEYS, directory)
    except Exception as error:
        return f"wrong: {type(error).__name__}: {error}"[:500]
    if isinstance(found, str):
        return found
    for question, answer in found.items():
        if answer != expected(question, BATCHES[case.state] - 1, model):
            return f"wrong: {question}: {answer}"[:500]
    return "right" if len(found) == len(reads(case.kind, KEYS)) else "right or refused, read by read"


def check(seed: int, count: int) -> Outcome:
    noted: Counter[str] = Counter()
    wrong: list[str] = []
    with scratch() as place:
        maker = Child(make_originals, place)
        assert maker.hear(LIMIT_S) == "made"
        maker.end()
        wrong += [f"{small} is not small" for small in _large_ones(place)]
        todo = list(enumerate(cases(place, seed % SLICES)))
        random.Random(seed).shuffle(todo)
        todo = todo[:count]
        done = len(todo)
        while todo:
            left, found = _judged(place, todo)
            for case, outcome in found:
                noted[f"{case.state}: {outcome}" if not outcome.startswith("wrong") else "wrong"] += 1
                if outcome.startswith("wrong"):
                    wrong.append(f"seed {seed}: {case}: {outcome}")
            todo = left
    return Outcome(done, wrong, dict(noted))


def _judged(place: Path, todo: list[tuple[int, Case]]) -> tuple[list[tuple[int, Case]], list[tuple[Case, str]]]:
    """(what is left, what came of the others): a process goes on until it is through, dies or hangs."""
    child, found, trying = Child(judge, place, todo), [], False
    try:
        while len(found) < len(todo):
            said = child.hear(LIMIT_S)
            if said is None:
                outcome = "refused, as the process that tried it died" if trying else "wrong: it died or hung"
                found.append((todo[len(found)][1], outcome))
                break
            if isinstance(said, tuple):
                found.append((todo[len(found)][1], said[1]))
            trying = said == "trying"
    finally:
        child.end()
    return todo[len(found) :], found


def _large_ones(place: Path) -> Iterator[str]:
    for kind in KINDS:
        for state in STATES:
            files = files_of(place / kind / state)
            size = sum(len(raw) for file, raw in files.items() if not file.name.startswith("OPTIONS"))
            if size > MOST_BYTES:
                yield f"the {kind} store that was {state}, with {size:,} bytes,"
