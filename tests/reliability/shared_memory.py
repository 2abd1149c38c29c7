"""States in shared memory, damaged, exchanged and led astray: what is opened is right or nothing; no more is touched.

Of 100 cases 97 are single bits of one file, in a row, so that pieces cover files bit by bit; the rest are cuts, other
files in its place, links, folders that others may write to and, as root, another user's.
"""

import os
import random
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa

from sessionkit.spark.worker import shared_files
from sessionkit.spark.worker.shared_files import SharedFiles
from sessionkit.stores.contract import FixedColumns, SessionColumns, Snapshot, no_columns
from sessionkit.stores.state.chunked_state import ChunkedState
from tests.reliability.pieces import Outcome

PIECE, GOAL = 60_000, 1_000_000
NOT_BITS = 33  # one case in so many is another damage
NOBODY = 65_534


def check(seed: int, count: int) -> Outcome:
    """`count` damages of files of this seed's states."""
    dice, noted, wrong, done = random.Random(seed), Counter[str](), [], 0
    with tempfile.TemporaryDirectory() as folder, _in_place_of_shared_memory(Path(folder)), catch_warnings():
        simplefilter("ignore")  # that a folder is not used
        while done < count:
            case = Case(dice, Path(folder))
            for what in case.damages(dice, count - done):
                outcome = case.answer()
                noted[outcome] += 1
                done += 1
                if outcome not in ("right", "refused"):
                    wrong.append(f"seed {seed}, damage {done}: {what}: {outcome}")
            case.remove()
    return Outcome(done, wrong, dict(noted))


@contextmanager
def _in_place_of_shared_memory(folder: Path) -> Iterator[None]:
    before = shared_files.shared_folder
    shared_files.shared_folder = lambda: folder / "user"
    try:
        yield
    finally:
        shared_files.shared_folder = before


class Case:
    """A state in a file, and another one beside it; and what is not sessionkit's, which stays as it is."""

    def __init__(self, dice: random.Random, root: Path) -> None:
        self.root, self.user = root, root / "user"
        self.of = dice.choice(["sessions", "windows"])
        self.run, self.token, self.other = (_hex(dice) for _ in range(3))
        self.files = SharedFiles(self.run)
        self.state, other = (_state(self.of, dice) for _ in range(2))
        for state, token in ((self.state, self.token), (other, self.other)):
            self.files.save(state, token)
        self.folder = self.user / self.run
        self.file = self.folder / f"0-{self.token}.arrow"
        self.whole, self.right = self.file.read_bytes(), _content(self.state)
        self.victim = root / "victim"
        (self.victim / self.run).mkdir(parents=True, exist_ok=True)
        (self.victim / self.run / self.file.name).write_bytes(self.whole)
        os.utime(self.victim / self.run, (0, 0))
        self.victims = self._of_victim()

    def damages(self, dice: random.Random, most: int) -> Iterator[str]:
        """Damages the file, or what is around it, and mends it again; what was done, in words."""
        bits = len(self.whole) * 8
        first, others = dice.randrange(bits), list(self._others(dice))
        for number in range(min(most, bits)):
            if number % NOT_BITS == 0:
                what, do, undo = others[(number // NOT_BITS) % len(others)]
                do()
                yield what
                undo()
            else:
                bit = (first + number) % bits
                self._write(bit // 8, bytes([self.whole[bit // 8] ^ (1 << bit % 8)]))
                yield f"bit {bit} of {bits} of a state of {self.of}"
                self._write(bit // 8, self.whole[bit // 8 : bit // 8 + 1])

    def _write(self, place: int, data: bytes) -> None:
        with self.file.open("r+b") as file:
            file.seek(place)
            file.write(data)

    def _others(self, dice: random.Random) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
        beside = self.folder / f"0-{self.other}.arrow"
        yield "nothing", lambda: None, lambda: None
        for raw in (b"", self.whole[: dice.randrange(len(self.whole))], self.whole[:-1], self.whole + b"\0"):
            yield f"{len(raw)} of {len(self.whole)} bytes", _bound(self.file.write_bytes, raw), self._mend
        swapped = beside.read_bytes()
        yield "the file of another micro-batch", lambda: self.file.write_bytes(swapped), self._mend
        aside = self.root / "aside"
        for path in (self.file, self.folder, self.user):
            kind = path.name[:5]
            target = self.victim if path == self.user else self.victim / self.run
            target = target / self.file.name if path == self.file else target
            yield f"a link for {kind}", _bound(_link, path, aside, target), _bound(_put_back, path, aside)
            mode = path.stat().st_mode & 0o777
            yield f"{kind} open to all", _bound(path.chmod, 0o777), _bound(path.chmod, mode)
            if os.geteuid() == 0:
                yield f"{kind} of another user", _bound(os.chown, path, NOBODY, -1), _bound(os.chown, path, 0, -1)

    def _mend(self) -> None:
        self.file.write_bytes(self.whole)

    def answer(self) -> str:
        """What comes of opening it, and of a run that keeps a state there meanwhile."""
        try:
            found = self.files.open(self.of, 0, self.token)
            outcome = "refused" if found is None else "right" if _content(found) == self.right else "another content"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return outcome if self._of_victim() == self.victims else "what is not ours was touched"

    def _of_victim(self) -> list[Any]:
        return sorted((str(path), path.stat().st_size) for path in self.victim.rglob("*"))

    def remove(self) -> None:
        """Removes what the case made; a sweep, and the run's own end, while links lead elsewhere."""
        aside = self.root / "aside"
        _link(self.user, aside, self.victim)
        SharedFiles(_hex(random.Random(0))).save(self.state, self.token)
        self.files.remove()
        _put_back(self.user, aside)
        assert self._of_victim() == self.victims, "what is not ours was touched"
        self.files.remove()
        assert not self.folder.exists()


def _bound(do: Callable[..., object], *arguments: Any) -> Callable[[], object]:
    return lambda: do(*arguments)


def _link(path: Path, aside: Path, target: Path) -> None:
    path.rename(aside)
    path.symlink_to(target)


def _put_back(path: Path, aside: Path) -> None:
    path.unlink()
    aside.rename(path)


def _hex(dice: random.Random) -> str:
    return uuid.UUID(int=dice.getrandbits(128), version=4).hex


def _state(of: str, dice: random.Random) -> ChunkedState:
    count, rng = dice.randrange(30), np.random.default_rng(dice.getrandbits(32))
    kind: Any = SessionColumns if of == "sessions" else FixedColumns
    start = rng.integers(0, 10**12, count)
    keys = pa.array([dice.choice(["ada", "é", "", "b" * 40]) + str(i) for i in range(count)], pa.large_string())
    own = np.empty(count, object)
    own[:] = [{"seen": [i, None, 0.5]} for i in range(count)]
    python = {"own": own} if dice.random() < 0.3 else {}
    aggregates = {"count": pa.array(rng.integers(0, 9, count)), "sum": pa.array(rng.random(count)), **python}
    numbers = (start, start + rng.integers(0, 999, count), np.arange(count), np.full(count, -1))
    state = ChunkedState(of, 0)
    columns = kind(keys, np.zeros(count, np.int64), *numbers, aggregates)
    state.commit(no_columns("sessions", pa.large_string(), tuple(aggregates)), columns, {0: Snapshot(count, 90, 80)})
    state.seal()
    return state


def _content(state: ChunkedState) -> object:
    return (repr(state.to_table().to_pydict()), state.snapshots, state._written, state._next)
