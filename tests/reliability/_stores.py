"""What the checks of stores share: processes that may die, small stores of three kinds, and what they must answer."""

import multiprocessing
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sessionkit.errors import StoreCorrupted, StoreError
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.rocksdb.disk import open_strictly as strict
from sessionkit.stores.rocksdb.disk.folder import StoreFolder
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore
from tests.memory import MEMORY

NAME = "clicks"
KINDS = ("session", "session by time", "window")
# In memory where there is such a place: what a loss of power would leave is not asked here.
# Children come from a process that has the library loaded and never uses RocksDB: none of its threads are missing.
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload([__name__])


class Child:
    """A process that may be killed, or die, and the pipe to it."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self.pipe, theirs = CHILDREN.Pipe()
        self.process = CHILDREN.Process(target=work, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()

    def hear(self, limit_s: float) -> Any:
        """What it says next; None if it says nothing in time, or has ended."""
        try:
            return self.pipe.recv() if self.pipe.poll(limit_s) else None
        except (EOFError, OSError):  # it may have been killed in the middle of a message
            return None

    def kill(self) -> None:
        self.process.kill()  # knows that it may have ended by itself at this moment
        self.process.join()

    def end(self) -> None:
        """kill -9, and nothing more is heard."""
        self.kill()
        self.pipe.close()


@contextmanager
def scratch(inside: Path | None = None) -> Iterator[Path]:
    """A folder that goes away again; a process that may be killed has it `inside` one of the process that kills it."""
    with tempfile.TemporaryDirectory(dir=inside or MEMORY) as place:
        yield Path(place)


def opened(kind: str, directory: Path, **options: Any) -> Any:
    if kind == "window":
        return RocksDBWindowStore(name=NAME, directory=directory, segment_interval="60000ms", **options)
    by_time = kind == "session by time"
    return RocksDBSessionStore(
        name=NAME, directory=directory, segment_interval="60000ms", time_ordered=by_time, **options
    )


def rows_of(directory: Path) -> Path:
    """The folder of RocksDB's own files."""
    return directory / NAME / "rows"


def files_of(directory: Path) -> dict[Path, bytes]:
    """Every file below the directory, in order of their names, at one moment.

    RocksDB makes and removes files in threads of its own while a store is open: then all are read again.
    """
    while True:
        with suppress(FileNotFoundError):
            files = _listed(directory)
            found = {file.relative_to(directory): file.read_bytes() for file in files}
            if files == _listed(directory):
                return found


def _listed(directory: Path) -> list[Path]:
    return [file for file in sorted(directory.rglob("*")) if file.is_file()]


def write_files(directory: Path, files: dict[Path, bytes]) -> None:
    for folder in sorted({file.parent for file in files}):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for file, raw in files.items():
        (directory / file).write_bytes(raw)


def record_starts(log: bytes) -> list[int]:
    """Where the records of a log begin, in blocks of 32 KiB whose last six bytes hold none."""
    found, at = [], 0
    while at + 7 <= len(log):
        if at % 32_768 > 32_768 - 7:
            at += -at % 32_768
        else:
            found.append(at)
            at += 7 + int.from_bytes(log[at + 4 : at + 6], "little")
    return found


def try_here(limit_s: int, say: Callable[[str], None]) -> None:
    """Lets this process be the one in which a folder that was not closed is tried: it may hang, or die.

    The store starts a Python of its own for that, which takes longer than all the rest. What it runs is the same
    here, and so is what a death in it means.
    """

    def try_in_child(self: StoreFolder) -> None:
        say("trying")
        said = strict.try_open(str(self.rows), limit_s)
        say("tried")
        if said:
            raise self.translated(said, "it was not closed")

    setattr(StoreFolder, "_try_in_child", try_in_child)  # noqa: B010


# ---- what is written: batch n adds one to the counts of some keys and moves their windows on


class Row(NamedTuple):
    """A window as it must be found."""

    start_ms: int
    other_ms: int  # end of a session, timestamp of a window
    aggregate: list[Any]


Model = dict[str, Row]


class Writing(NamedTuple):
    """What a store is filled with: everything follows from the seed and the number of a batch."""

    seed: str
    kind: str
    keys: int = 12
    blob: int = 0

    def changes(self, batch: int) -> list[tuple[str, int, int, str]]:
        """(key, start, end or timestamp, text) of each window that the batch writes."""
        dice = random.Random(f"{self.seed} {batch}")
        chosen = dice.sample(range(self.keys), dice.randint(1, max(1, self.keys // 2)))
        return [
            (f"key {n}", batch * 100, batch * 100 + n, "".join(dice.choices("abcdef", k=dice.randint(0, self.blob))))
            for n in chosen
        ]

    def commit(self, store: Any, batch: int, say: Callable[[int], None] = lambda n: None) -> None:
        """Reads, removes and puts, as a plan does; a batch taken twice would count twice."""
        with store.all_or_nothing():
            for key, start, other, text in self.changes(batch):
                found = next(iter(rows_in(store, key)), None)
                if found is not None:
                    self._remove(store, key, found)
                store.put(key, start, *self._values(other, [1 if found is None else found.aggregate[0] + 1, text]))
        say(2 * batch)
        store.commit_snapshots({0: Snapshot(batch, batch * 100, -1)})
        say(2 * batch + 1)

    def _values(self, other: int, aggregate: list[Any]) -> tuple[Any, ...]:
        return (aggregate, other) if self.kind == "window" else (other, aggregate)

    def _remove(self, store: Any, key: str, row: Row) -> None:
        if self.kind == "window":
            store.put(key, row.start_ms, None, row.other_ms)
        else:
            store.remove(key, row.start_ms, row.other_ms)

    def apply(self, model: Model, batch: int) -> None:
        """Makes the changes of a batch in a model."""
        for key, start, other, text in self.changes(batch):
            count = model[key].aggregate[0] if key in model else 0
            model[key] = Row(start, other, [count + 1, text])

    def after(self, batches: int) -> Model:
        """What a store holds that was never interrupted."""
        model: Model = {}
        for batch in range(batches):
            self.apply(model, batch)
        return model


def row_of(found: Any) -> Row:
    other = found.timestamp_ms if hasattr(found, "timestamp_ms") else found.window_end_ms
    return Row(found.window_start_ms, other, found.aggregate)


def rows_in(store: Any, key: str) -> list[Row]:
    found = store.fetch(key, 0, 2**62) if store.noun == "window" else store.fetch(key)
    return [row_of(each) for each in found]


def reads(kind: str, keys: int) -> dict[str, Callable[[Any], Any]]:
    """A fixed set of questions; each answer is a model, or the position."""

    def model(found: Any) -> Model:
        each = list(found)
        by_key = {one.key: row_of(one) for one in each}
        return by_key if len(by_key) == len(each) else {f"{n}": row_of(one) for n, one in enumerate(each)}

    questions: dict[str, Callable[[Any], Any]] = {
        "snapshot": lambda store: store.snapshot(0).position,
        "all": lambda store: model(store.all()),
        "length": len,
        "each key": lambda store: {f"key {n}": row for n in range(keys) for row in rows_in(store, f"key {n}")},
    }
    if kind == "window":
        questions["backward"] = lambda store: model(store.backward_all())
        questions["range"] = lambda store: model(store.fetch_in_keys("key", "kez", 0, 2**62))
    else:
        questions["backward"] = lambda store: model(store.backward_fetch(None, None))
        questions["range"] = lambda store: model(store.find_sessions_in_keys("key", "kez", 0, 2**62))
    if kind == "session by time":
        questions["by end"] = lambda store: model(store.find_sessions_by_end(0, 2**62))
    return questions


def expected(question: str, position: int, model: Model) -> Any:
    """What the question must be answered with."""
    return {"snapshot": position, "length": len(model)}.get(question, model)


def answers(kind: str, keys: int, directory: Path) -> dict[str, Any] | str:
    """What each question was answered with, as far as it was; the class of the error if the store was not opened.

    An error that is not of stores is raised.
    """
    found: dict[str, Any] = {}
    try:
        with opened(kind, directory) as store:
            for question, ask in reads(kind, keys).items():
                try:
                    found[question] = ask(store)
                except StoreCorrupted:
                    continue
    except StoreError as error:
        return found or type(error).__name__
    return found
