"""Folders of stores put together from others: a state that the store once had, or a refusal; never a mixture.

Files cut at every place, missing, emptied, swapped, of another time and of another store. And several threads and
forked processes over one store.
"""

import os
import random
import shutil
import signal
import threading
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from sessionkit.errors import StoreLocked
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.reliability._stores import (
    KINDS,
    Child,
    Model,
    Row,
    Writing,
    answers,
    expected,
    files_of,
    opened,
    record_starts,
    row_of,
    scratch,
    try_here,
    write_files,
)
from tests.reliability.pieces import Outcome

PIECE, GOAL = 1_000, 100_000
KEYS, LAST = 4, 12
TRY_LIMIT_S, LIMIT_S = 2, 60
OTHERS = 0.03  # so many cases are threads or forks

Files = dict[Path, bytes]


class Folder(NamedTuple):
    """A store as it was at some time."""

    store: str
    state: str
    files: Files


def writings(kind: str) -> dict[str, Writing]:
    """What the two stores of this kind are filled with."""
    return {seed: Writing(seed, kind, KEYS, 20) for seed in ("one", "other")}


def make_folders(pipe: Connection, place: Path) -> None:
    """Sends, for each kind, the folders of two stores at several times."""
    made: dict[str, list[Folder]] = {}
    for kind in KINDS:
        made[kind] = []
        for name, writing in writings(kind).items():
            growing, done = place / kind / name, 0
            for state, batches in (("closed", 3), ("crashed", 2), ("closed", 1), ("two logs", 2), ("closed", 1)):
                with opened(kind, growing) as store:
                    for batch in range(done, done + batches):
                        writing.commit(store, batch)
                    done += batches
                    left = files_of(growing)
                    if state == "two logs":
                        store._database.rdict.flush()
                        writing.commit(store, done)
                        done += 1
                        newer = {file: raw for file, raw in files_of(growing).items() if file.suffix == ".log"}
                        left = {**newer, **left}
                if state == "closed":
                    left = files_of(growing)
                made[kind].append(Folder(name, state, {f: raw for f, raw in left.items() if f.name[:3] != "LOG"}))
            shutil.rmtree(growing)
    pipe.send(made)


# ---- what is done to a folder


def damaged(dice: random.Random, folders: list[Folder]) -> tuple[Folder, list[str], Files]:
    """(a folder, what was done to it, what it then holds)."""
    folder = dice.choice(folders)
    files, done = dict(folder.files), []
    if dice.random() < 0.5:
        files = {file: raw for file, raw in files.items() if file.name != "CLOSED"}
        done.append("no seal")
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        change = dice.choice(CHANGES)
        done.append(f"{change.__name__}: {change(dice, files, dice.choice(folders))}")
    return folder, done, files


def _any(dice: random.Random, files: Files) -> Path:
    """A file; OPTIONS seldom, as they say nothing of the content."""
    chosen = [file for file in files if not file.name.startswith("OPTIONS") or dice.random() < 0.05]
    return dice.choice(chosen or list(files))


def cut(dice: random.Random, files: Files, other: Folder) -> str:
    """At the end of a record, where it has some, or anywhere."""
    file = _any(dice, files)
    starts = record_starts(files[file]) if file.suffix == ".log" or file.name.startswith("MANIFEST") else []
    at = dice.choice(starts) if starts and dice.random() < 0.7 else dice.randint(0, len(files[file]))
    files[file] = files[file][:at]
    return f"{file.name} at {at}"


def take_out(dice: random.Random, files: Files, other: Folder) -> str:
    """A record from the middle of a log or manifest, or the same once more."""
    logs = [file for file in files if file.suffix == ".log" or file.name.startswith("MANIFEST")]
    logs = [file for file in logs if record_starts(files[file])]
    if not logs:
        return "nothing"
    file = dice.choice(logs)
    raw, starts = files[file], [*record_starts(files[file]), len(files[file])]
    number = dice.randrange(len(starts) - 1)
    first, behind = starts[number : number + 2]
    twice = dice.random() < 0.3
    files[file] = raw[:behind] + raw[first:] if twice else raw[:first] + raw[behind:]
    return f"record {number} of {file.name}{' twice' if twice else ''}"


def remove(dice: random.Random, files: Files, other: Folder) -> str:
    file = _any(dice, files)
    del files[file]
    return file.name


def swap(dice: random.Random, files: Files, other: Folder) -> str:
    """Two files of one folder."""
    one, two = _any(dice, files), _any(dice, files)
    files[one], files[two] = files[two], files[one]
    return f"{one.name} and {two.name}"


def mix(dice: random.Random, files: Files, other: Folder) -> str:
    """A file of another time or store in the place of one that does the same."""
    file = _any(dice, other.files)
    mine = [each for each in files if _part(each) == _part(file)]
    place = dice.choice(mine) if mine and dice.random() < 0.7 else file
    files[place] = other.files[file]
    return f"{file.name} of {other.store}, {other.state}, as {place.name}"


def mix_all(dice: random.Random, files: Files, other: Folder) -> str:
    """All files of one part."""
    part = dice.choice((".log", ".sst", "MANIFEST", "CLOSED", "STORE"))
    for file in [file for file in files if _part(file) == part and dice.random() < 0.7]:
        del files[file]
    files.update({file: raw for file, raw in other.files.items() if _part(file) == part})
    return f"{part} of {other.store}, {other.state}"


CHANGES = (cut, take_out, remove, swap, mix, mix, mix_all)


def _part(file: Path) -> str:
    return file.suffix or file.name.partition("-")[0]


# ---- what comes of it


def judge(pipe: Connection, place: Path, folders: dict[str, list[Folder]], seed: int, numbers: range) -> None:
    """Says of each case what came of it."""
    try_here(TRY_LIMIT_S, pipe.send)
    states = {kind: {name: _states(each) for name, each in writings(kind).items()} for kind in KINDS}
    for number in numbers:
        dice = random.Random(f"{seed} {number}")
        kind = dice.choice(KINDS)
        folder, done, files = damaged(dice, folders[kind])
        with scratch(place) as directory:
            write_files(directory, files)
            outcome = _outcome(kind, directory, states[kind])
        if outcome.startswith("wrong"):
            outcome = f"{outcome}; {kind} store {folder.store!r}, {folder.state}: {', '.join(done)}"
        pipe.send(outcome)


def _states(writing: Writing) -> list[Model]:
    return [writing.after(batches) for batches in range(LAST)]


def _outcome(kind: str, directory: Path, states: dict[str, list[Model]]) -> str:
    """What came of it; beginning with "wrong" if the answers are of no state that one of the stores had."""
    if not (directory / "clicks").exists():
        return "no folder"
    try:
        found = answers(kind, KEYS, directory)
    except Exception as error:
        return f"wrong: {type(error).__name__}: {error}"[:500]
    if isinstance(found, str):
        return found
    for models in states.values():
        for batches, model in enumerate(models):
            if all(answer == expected(question, batches - 1, model) for question, answer in found.items()):
                return "a state it had"
    return f"wrong: {found}"[:500]


def check(seed: int, count: int) -> Outcome:
    """`count` folders, some of them threads or forks."""
    noted: Counter[str] = Counter()
    wrong: list[str] = []
    others = int(count * OTHERS)
    with scratch() as place:
        maker = Child(make_folders, place)
        folders = maker.hear(LIMIT_S)
        assert folders is not None, "the folders were not made"
        maker.end()
        at, until = 0, count - others
        while at < until:
            at, found = _judged(place, folders, seed, range(at, until))
            for number, outcome in found:
                noted[outcome.partition(":")[0]] += 1
                wrong += [f"seed {seed}, case {number}: {outcome}"] if outcome.startswith("wrong") else []
        for number in range(others):
            work = (threads, forks)[number % 2]
            child = Child(work, place, f"{seed} {number}")
            said = child.hear(LIMIT_S)
            child.end()
            noted[work.__name__] += 1
            wrong += [] if said == "right" else [f"seed {seed}, {work.__name__} {number}: {said or 'no answer'}"]
    return Outcome(count, wrong, dict(noted))


def _judged(place: Path, folders: Any, seed: int, numbers: range) -> tuple[int, list[tuple[int, str]]]:
    """(the next case, what came of those before): a process goes on until it is through, dies or hangs."""
    child, found, trying, at = Child(judge, place, folders, seed, numbers), [], False, numbers.start
    try:
        while at < numbers.stop:
            said = child.hear(LIMIT_S)
            if said is None:
                found.append((at, "refused, as the process that tried it died" if trying else "wrong: it died or hung"))
                return at + 1, found
            trying = said == "trying"
            if said not in ("trying", "tried"):
                found.append((at, said))
                at += 1
    finally:
        child.end()
    return at, found


# ---- threads and forks


def _store(dice: random.Random, kind: str, directory: Path) -> Any:
    if dice.random() < 0.5:
        return opened(kind, directory)
    return MemoryWindowStore() if kind == "window" else MemorySessionStore()


def threads(pipe: Connection, place: Path, seed: str) -> None:
    """Each thread commits to a partition of its own; all of it must be there, and no call may fail."""
    dice = random.Random(seed)
    kind, several, batches = dice.choice(KINDS), dice.randint(2, 5), dice.randint(5, 25)
    failures: list[str] = []
    with scratch(place) as directory, _store(dice, kind, directory) as store:

        def work(partition: int) -> None:
            try:
                for batch in range(batches):
                    _commit(store, kind, partition, batch)
                    list(store.all(partition=partition))
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")

        running = [threading.Thread(target=work, args=(partition,)) for partition in range(several)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        for partition in range(several):
            found = {each.key: row_of(each) for each in store.all(partition=partition)}
            if found != {f"key {n}": Row(n, n, [1]) for n in range(batches)}:
                failures.append(f"partition {partition} holds {len(found)} of {batches}")
            if store.snapshot(partition).position != batches - 1:
                failures.append(f"partition {partition} is at {store.snapshot(partition).position}")
    pipe.send("; ".join(failures)[:500] or "right")


def _commit(store: Any, kind: str, partition: int, batch: int) -> None:
    with store.all_or_nothing():
        times = (batch, [1], batch) if kind == "window" else (batch, batch, [1])
        store.put(f"key {batch}", *times, partition=partition)
        store.commit_snapshots({partition: Snapshot(batch, batch, -1)})


def forks(pipe: Connection, place: Path, seed: str) -> None:
    """A forked process is refused, ends by itself, and its parent's store is as before."""
    dice = random.Random(seed)
    kind, before, between = dice.choice(KINDS), dice.randint(0, 5), dice.randint(0, 5)
    with scratch(place) as directory:
        with opened(kind, directory) as store:
            for batch in range(before):
                _commit(store, kind, 0, batch)
            child = os.fork()
            if not child:
                signal.alarm(LIMIT_S // 2)
                os._exit(_child_of_fork(store, kind, directory, before))
            for batch in range(before, before + between):
                _commit(store, kind, 0, batch)
            status = os.waitpid(child, 0)[1]
        with opened(kind, directory) as store:
            found = len(store)
    right = (status, found) == (0, before + between)
    pipe.send("right" if right else f"the child ended with {status}, {found} of {before + between} windows")


def _child_of_fork(store: Any, kind: str, directory: Path, batch: int) -> int:
    calls = (
        lambda: _commit(store, kind, 0, batch),
        lambda: list(store.all()),
        lambda: opened(kind, directory / "another"),
    )
    for number, call in enumerate(calls):
        try:
            call()
        except StoreLocked:
            continue
        return 1 + number
    store.close()
    return 0
