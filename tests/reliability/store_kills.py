"""kill -9 of a process that writes to a store: what it committed is there afterwards, once, and nothing else.

A small write buffer makes RocksDB flush and compact all the time, so many kills fall inside of both.
"""

import random
import struct
import time
from collections import Counter
from itertools import count as counting
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rocksdict import Options

from sessionkit.stores.rocksdb.disk import open_strictly as strict
from sessionkit.stores.rocksdb.disk.folder import OPEN_LIMIT_S
from tests.reliability._manifest import state_of
from tests.reliability._stores import KINDS, Child, Model, Row, Writing, opened, reads, rows_of, scratch, try_here
from tests.reliability.pieces import Outcome

PIECE, GOAL = 100, 10_000
KILLS_A_STORE = 20
BUFFER_BYTES = 64 << 10  # the smallest that RocksDB takes
LIMIT_S = 120  # for an answer, on a busy machine
KEYS, BLOB = 60, 3000
RATES = (0, 1 << 19, 1 << 20)  # bytes a second that become tables; 0: as many as there are


def slow_tables(bytes_a_second: int) -> None:
    """Lets flushes and compactions take their time, as on a slow disk: more kills fall inside of them."""

    def options(**named: Any) -> Options:
        made = Options(**named)
        made.set_ratelimiter(bytes_a_second, 5_000, 10)
        made.set_level_zero_file_num_compaction_trigger(2)
        return made

    setattr(strict, "Options", options)  # noqa: B010


def write_for_ever(pipe: Connection, writing: Writing, directory: Path, rate: int, anew: bool) -> None:
    """Opens the store, says what it holds, and goes on writing; `anew`: as a user does, with a Python to try it in."""
    strict.LOG_BYTES = BUFFER_BYTES
    if rate:
        slow_tables(rate)
    if not anew:
        try_here(OPEN_LIMIT_S, lambda said: None)
    try:
        store = opened(writing.kind, directory)
        pipe.send({question: ask(store) for question, ask in reads(writing.kind, KEYS).items()})
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    for batch in counting(store.snapshot(0).position + 1):
        writing.commit(store, batch, lambda said: pipe.send_bytes(struct.pack("<q", said)))


class Store:
    """A store that is killed again and again, and what must be in it."""

    def __init__(self, seed: str, directory: Path) -> None:
        self.dice = random.Random(seed)
        self.seed, self.directory = seed, directory
        self.writing = Writing(seed, self.dice.choice(KINDS), KEYS, BLOB)
        self.rate = self.dice.choice(RATES)
        self.model: Model = {}
        self.position = self.begun = self.ended = -1  # in the model; the last batches that a child began and ended
        self.noted: Counter[str] = Counter()

    def kill_once(self) -> str:
        """Opens it in a new process, which writes until it is killed; what was wrong before it did."""
        child = Child(write_for_ever, self.writing, self.directory, self.rate, self.dice.random() < 0.02)
        try:
            if self.dice.random() < 0.1:
                time.sleep(self.dice.uniform(0, 0.05))
                child.kill()
                self._hear_rest(child, opening=True)
                return ""
            said = child.hear(LIMIT_S)
            wrong = self._wrong_in(said)
            if wrong:
                return wrong
            self._wait(child)
            child.kill()
            self._hear_rest(child, opening=False)
        finally:
            child.end()
        self._note()
        return ""

    def _wait(self, child: Child) -> None:
        """Until some batches are through, and then a little."""
        for _ in range(self.dice.choice((0, 1, 3, 8, 20))):
            if child.pipe.poll(LIMIT_S):
                self._take(child.pipe.recv_bytes())
        time.sleep(self.dice.uniform(0, 0.004))

    def _take(self, said: bytes) -> None:
        batch, is_end = divmod(struct.unpack("<q", said)[0], 2)
        self.begun, self.ended = (self.begun, batch) if is_end else (batch, self.ended)

    def _hear_rest(self, child: Child, *, opening: bool) -> None:
        try:
            if opening and child.pipe.poll(0):
                child.pipe.recv()  # what it held: the next one says so, too
            while child.pipe.poll(0):
                self._take(child.pipe.recv_bytes())
        except (EOFError, OSError):  # it may have been killed in the middle of a message
            pass
        self.noted["killed while opening or soon after" if opening else "killed while writing"] += 1

    def _wrong_in(self, said: Any) -> str:
        if not isinstance(said, dict):
            return f"no answer within {LIMIT_S} s, or it died" if said is None else f"not opened: {said}"
        position = said["snapshot"]
        if not max(self.ended, self.position) <= position <= max(self.begun, self.ended, self.position):
            return f"at {position}, though {self.begun} was begun, {self.ended} ended, {self.position} seen before"
        self.noted["a batch arrived that was not said to be"] += position > self.ended
        for batch in range(self.position + 1, position + 1):
            self.writing.apply(self.model, batch)
        self.position = position
        for question, answer in said.items():
            right = {"snapshot": position, "length": len(self.model)}.get(question, self.model)
            if answer != right:
                return f"at {position}, {question}: {_difference(answer, right)}"
        return ""

    def _note(self) -> None:
        """Inside of what the kill fell, as far as the files tell."""
        state = state_of(rows_of(self.directory))
        self.noted["inside a flush"] += state.flushing
        self.noted["inside a compaction"] += state.compacting
        self.noted["inside a flush or compaction"] += state.flushing or state.compacting
        self.noted["while old files were deleted"] += state.deleting


def _difference(answer: Any, right: Any) -> str:
    if not isinstance(answer, dict):
        return f"{answer}, not {right}"
    differing = {key for key in {*answer, *right} if answer.get(key) != right.get(key)}
    shown = [f"{key}: {_short(answer.get(key))}, not {_short(right.get(key))}" for key in sorted(differing)[:3]]
    return f"{len(differing)} of {len(right)} windows; {'; '.join(shown)}"


def _short(row: Row | None) -> str:
    return str(row)[:60]


def check(seed: int, count: int) -> Outcome:
    """`count` kills; when exactly they come is up to the machine."""
    wrong: list[str] = []
    noted: Counter[str] = Counter()
    done = 0
    for number in counting():
        if done >= count or wrong:
            break
        with scratch() as directory:
            store = Store(f"{seed} {number}", directory)
            for _ in range(min(KILLS_A_STORE, count - done)):
                found = store.kill_once()
                if found:
                    wrong.append(f"store {store.seed!r} ({store.writing.kind}), kill {done}: {found}")
                    break
                done += 1
            else:
                found = _last_look(store)
                wrong += [f"store {store.seed!r} ({store.writing.kind}), at the end: {found}"] if found else []
            noted.update(store.noted)
    return Outcome(done, wrong, dict(noted))


def _last_look(store: Store) -> str:
    child = Child(write_for_ever, store.writing, store.directory, 0, True)
    try:
        return store._wrong_in(child.hear(LIMIT_S))
    finally:
        child.end()
