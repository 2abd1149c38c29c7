"""A disk that fills up at any write of a report, of a stream's folder, of a new store.

Half of the cases cap the size of each file (at any byte), the others run on a file system of a few pages or a few names
(where this machine lets us have one). Whatever happens, the user's files are as they were, former results are there to
the byte or were replaced whole, the error is sessionkit's own and names the path, and with room the next try works.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sessionkit as sk
from sessionkit.base.result_folders import MANIFEST, Results
from sessionkit.errors import SessionkitError
from sessionkit.report.page import Findings, page
from sessionkit.report.spark_job import RESULTS
from sessionkit.spark.query.result_folders import BatchFolder
from tests.reliability._surroundings import can_hide
from tests.reliability.pieces import ROOT, Outcome

PIECE = 300
GOAL = 10_000
MINE = {"thesis.tex": b"mine", "deep/notes.txt": b"mine, too"}
_PAGE = 4096
Write = Callable[[Path, int], None]


def check(seed: int, count: int) -> Outcome:
    """`count` full disks, in a process that may have file systems of its own."""
    private = ["unshare", "--mount", "--propagation", "private"] if can_hide() else []
    command = [*private, sys.executable, "-m", "tests.reliability.full_disk", str(seed), str(count), str(len(private))]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if ended.returncode:
        return Outcome(count, [f"seed {seed}: the process ended with {ended.returncode}: {ended.stderr[-2000:]}"], {})
    return Outcome(*json.loads(ended.stdout.splitlines()[-1]))


# ---- what is written


@cache
def _page() -> str:
    records = pa.table({"user": ["ada", "bob", "ada"], "at": [1_000, 2_000, 90_000]})
    windows = sk.SessionWindows(inactivity_gap="10s", grace="5s")
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows)
    run = plan.count().run(records)
    return page(Findings(title="clicks", plan=plan.count(), counts=run.metrics(), local=run))


@cache
def _table(number: int) -> pa.Table:
    return pa.table({"number": np.random.default_rng(number).random(2_000)})


def _report(folder: Path, number: int) -> None:
    """Writes a folder of results as the command line does, with the work of Spark done by Arrow."""
    text = f"{_page()}<!-- {number} -->"
    with Results(folder / "out", RESULTS) as results:
        for name in ("table", "changelog", "trace/records", "trace/windows"):
            results.write(name, lambda path: _spark_writes(path, number))
        results.write("report.html", lambda path: path.write_text(text, encoding="utf-8"))
        results.place()


def _stream(folder: Path, number: int) -> None:
    """A micro-batch that is run again and again."""

    def parquet(path: str) -> None:
        _spark_writes(Path(path.removeprefix("file://")), number)

    conf = SimpleNamespace(get=lambda name, otherwise: otherwise, set=lambda name, value: None, unset=lambda name: None)
    writer = SimpleNamespace(mode=lambda mode: SimpleNamespace(parquet=parquet))
    rows: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf=conf), write=writer)
    BatchFolder(str(folder / "out"), str(folder / "checkpoint"))(rows, 7)


def _spark_writes(path: Path, number: int) -> None:
    path.mkdir()
    for part in range(2):
        pq.write_table(_table(number), path / f"part-{part}-{number}.parquet")
    (path / "_SUCCESS").touch()


def _store(folder: Path, number: int) -> None:
    """A new store; one that is there already is opened and closed."""
    of = "sessions" if number % 2 else "windows"
    sk.open_store("rocksdb", f"store-{of}", of=of, directory=folder / "out").close()


WRITES: dict[str, Write] = {"report": _report, "stream": _stream, "store": _store}


# ---- disks


@dataclass(frozen=True)
class Disk:
    """A case: what is written, over what, and how little room there is."""

    what: str
    over: bool
    kind: str  # "file", "pages" or "names"
    room: int

    def run(self, noted: Counter[str]) -> str:
        """What is wrong; nothing if all is right."""
        write = WRITES[self.what]
        with _folder(self.kind) as folder:
            for name, content in MINE.items():
                path = folder / "out" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if self.over:
                write(folder, 1)
            before = _tree(folder)
            said = ""
            with self._full(folder):
                try:
                    write(folder, 3)
                    noted["had room"] += 1
                except SessionkitError as error:
                    said = str(error)
                    noted[type(error).__name__] += 1
            if said and str(folder / "out") not in said:
                return f"the error names no path: {said}"
            after = _tree(folder)
            if any(after.get(f"out/{name}") != content for name, content in MINE.items()):
                return f"the user's files are {sorted(after)}"
            if said and self.what != "store" and after != before:
                return f"{said}; but it left {sorted(after.keys() ^ before.keys()) or 'other content'}"
            write(folder, 5)
            if self.what != "store" and len(_tree(folder)) != len(MINE) + (13 if self.what == "report" else 3):
                return f"with room it is {sorted(_tree(folder))}"
        return ""

    @contextlib.contextmanager
    def _full(self, folder: Path) -> Iterator[None]:
        if self.kind == "file":
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.room, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            return
        found = os.statvfs(folder)
        pages = (found.f_blocks - found.f_bfree) + (self.room if self.kind == "pages" else 10**5)
        names = (found.f_files - found.f_ffree) + (self.room if self.kind == "names" else 10**5)
        _mount(f"remount,size={pages * _PAGE},nr_inodes={names}", folder)
        try:
            yield
        finally:
            _mount("remount,size=1g,nr_inodes=100000", folder)


@contextlib.contextmanager
def _folder(kind: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sessionkit-full-")).resolve()
    if kind != "file":
        _mount("size=1g,nr_inodes=100000", folder)
    try:
        yield folder
    finally:
        if kind != "file":
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(folder)


def _mount(options: str, folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def _tree(folder: Path) -> dict[str, bytes]:
    """All files but manifests, which may list more than there is, and logs that RocksDB writes for people."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _draw(drawn: random.Random, private: bool) -> Disk:
    what = drawn.choice(("report", "report", "stream", "stream", "store"))
    kind = drawn.choice(("file", "pages", "names") if private else ("file",))
    most = {"file": 6_000_000, "pages": 1_500, "names": 40}[kind]
    if what != "report":
        most = {"file": 40_000, "pages": 40, "names": 24}[kind]
    room = drawn.randrange(most) if drawn.random() < 0.5 else int(most ** drawn.random()) - 1
    return Disk(what, drawn.random() < 0.7, kind, room)


def main(seed: int, count: int, private: bool) -> None:
    """Says the outcome as JSON."""
    drawn, noted = random.Random(seed), Counter[str]()
    wrong = []
    for number in range(count):
        disk = _draw(drawn, private)
        noted[disk.kind] += 1
        try:
            said = disk.run(noted)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said:
            wrong.append(f"seed {seed}, case {number}, {disk}: {said}")
    print(json.dumps(Outcome(count, wrong, dict(noted))))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] != "0")
