"""Rounds on a cluster in which something is killed: what was lost, and what is there twice.

`python -m tests.cluster.kills --kills 30` prints a table; without kills it runs the cluster until Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sessionkit.spark.worker.shared_files import SharedFiles
from tests.cluster.job import VIEWS, WAITING, deadly
from tests.cluster.standalone import ROOT, Cluster, ClusterFailed, kill, wait
from tests.spark.common import records, write_files

KINDS = ("executor", "worker", "python", "driver")
ROUND_TIMEOUT_S = 300  # a busy machine takes several times as long as one round does
MICRO_BATCHES = 3
MARKED = "a task"  # where a task kills, at a record; "before" and "after" are moments of the driver's
IN_PART = "written in part"  # all executors at once
_NEVER = "nothing was killed"


@dataclass
class Killed:
    """What was killed, in which phase, and what became of the results."""

    kind: str
    phase: str
    lost: int
    doubled: int
    seconds: float


class Rounds:
    """A driver on a cluster, started again where it was killed, and the results that it should give."""

    def __init__(self, cluster: Cluster, seed: int = 7) -> None:
        self.cluster, self.folder = cluster, cluster.folder / "job"
        self.dice = random.Random(seed)
        table = records(4)
        cuts = [len(table) * place // MICRO_BATCHES for place in range(1, MICRO_BATCHES)]
        write_files(table, self.folder / "in", cuts)
        for name in ("kills", "results"):
            (self.folder / name).mkdir()
        self.local = deadly(self.folder).run(table)
        found = self.local.trace.records()
        self.counted = found.filter(pa.compute.not_equal(found["decision"], "dropped"))["offset"].to_pylist()
        # Spark starts one Python on the driver's machine, too, for the state of a stream: it finds ./deps
        (self.folder / "deps").mkdir()
        unpacking = ["tar", "-xzf", str(cluster.archive), "-C", str(self.folder / "deps")]
        subprocess.run(unpacking, check=True, timeout=120)
        self._driver: subprocess.Popen[str] | None = None
        self._said: queue.Queue[str] = queue.Queue()
        self._number = 0

    # ---- the driver

    def start(self) -> None:
        settings = {"PYTHONPATH": f"{ROOT}", "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        command = [sys.executable, "-m", "tests.cluster.job", str(self.folder), self.cluster.master]
        with (self.folder / "log").open("ab") as log:
            self._driver = subprocess.Popen(
                [*command, str(self.cluster.archive)], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True, start_new_session=True, env={**self.cluster.environment, **settings},
            )  # fmt: skip
        said: queue.Queue[str] = queue.Queue()
        self._said = said
        threading.Thread(target=_listen, args=(self._driver, said), daemon=True).start()
        self.cluster.include(self._driver)

    def end(self) -> None:
        if self._driver is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.wait()
        shared = self.folder / "shared"
        for run in shared.read_text().split() if shared.exists() else ():
            SharedFiles(run).remove()

    def say(self, line: str) -> None:
        assert self._driver is not None and self._driver.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._driver.stdin.write(f"{line}\n")
            self._driver.stdin.flush()

    def do(self, kind: str) -> Path:
        """One round to its end; a driver that is gone is started again, and goes on."""
        line = self.begin(kind)
        return self.finish(line)

    def begin(self, kind: str) -> str:
        if self._driver is None:
            self.start()
        self._number += 1
        self.say(f"{kind} {self._number}")
        return f"{kind} {self._number}"

    def finish(self, line: str, timeout_s: float = ROUND_TIMEOUT_S) -> Path:
        end = time.monotonic() + timeout_s
        while True:
            try:
                said = self._said.get(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                raise ClusterFailed(f"{line}: not within {timeout_s:.0f} s: {self.log()}") from None
            if said.startswith(f"done {line}"):
                return self.folder / "results" / line.split()[1]
            if said.startswith("failed"):
                raise ClusterFailed(json.loads(said.removeprefix("failed ")))
            if not said:  # it is gone
                assert self._driver is not None
                if self._driver.wait(timeout=10) != -signal.SIGKILL:
                    raise ClusterFailed(f"the driver ended: {self.log()}")
                self.start()
                self.say(line)

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3_000:]

    # ---- kills

    def killed(self, kind: str, of: str, where: str) -> Killed:
        """A round ("batch" or "stream") in which `kind` is killed, in a task or at a moment that the driver tells."""
        began = time.monotonic()
        kills = self.folder / "kills"
        if self._driver is None:
            self.do("prepare")
        if where in (MARKED, IN_PART):
            mark = kills / str(self.counted[self.dice.randrange(50, len(self.counted))])
            mark.write_text(kind if where == MARKED else WAITING)
        elif where in ("before", "after"):
            (kills / where).write_text(kind)
        line = self.begin(of)
        phase = f"{of}, {where}"
        if where == MARKED:
            wait(lambda: not any(kills.iterdir()), ROUND_TIMEOUT_S, f"a kill in {phase}")
        elif where == IN_PART:
            self._kill_in_part()
        else:
            phase = self._kill_at(kind, of, where)
        if kind == "worker":
            self.cluster.add_worker()  # which joins late
        place = self.finish(line)
        lost, doubled = self.compared(of, place)
        shutil.rmtree(place)
        self.cluster.tidy()
        return Killed(kind, phase, lost, doubled, time.monotonic() - began)

    def _kill_in_part(self) -> None:
        """All executors, once one task has written its results and another one waits at its mark."""

        def is_written_in_part() -> bool:
            folders = (name for _, names, _ in os.walk(self.folder / "results") for name in names)
            return any(name.startswith("task_") for name in folders)

        wait(is_written_in_part, ROUND_TIMEOUT_S / 3, "results of a task")
        time.sleep(1)  # until the driver has heard of it
        kill(*self.cluster.executors())
        [mark] = (self.folder / "kills").iterdir()
        mark.unlink()

    def _kill_at(self, kind: str, of: str, where: str) -> str:
        """Kills at a moment that is told by the driver, or in a view or a micro-batch, after some time in it."""
        mark, phase = self.folder / "kills" / where, self.folder / "phase"
        wanted = f"{of}, {where}" if where in (*(f"{view}()" for view in VIEWS), "a micro-batch") else "are written"
        wait(lambda: phase.exists() and phase.read_text().endswith(wanted.removeprefix(of)), ROUND_TIMEOUT_S, wanted)
        if where in ("before", "after"):
            if kind != "driver":
                self._kill(kind)
                mark.unlink()
            else:
                wait(lambda: not mark.exists(), ROUND_TIMEOUT_S, wanted)
            return f"{of}, {where} results are written"
        time.sleep(self.dice.uniform(0, 0.8))
        at = phase.read_text()
        self._kill(kind)
        return at

    def _kill(self, kind: str) -> None:
        if kind == "driver":
            assert self._driver is not None
            os.killpg(self._driver.pid, signal.SIGKILL)
            return
        choice = {"executor": self.cluster.executors, "worker": self.cluster.workers, "python": self.cluster.pythons}
        wait(choice[kind], 20, f"a process to kill: {kind}")
        kill(self.dice.choice(choice[kind]()))

    # ---- results

    def compared(self, of: str, place: Path) -> tuple[int, int]:
        """(rows that are missing, rows that are there too often), beside the local run."""
        lost = doubled = 0
        for got, expected in self._batch(place) if of == "batch" else self._stream(place):
            got_rows, expected_rows = Counter(_rows(got, expected.schema)), Counter(_rows(expected, expected.schema))
            lost += (expected_rows - got_rows).total()
            doubled += (got_rows - expected_rows).total()
        return lost, doubled

    def _batch(self, place: Path) -> list[tuple[pa.Table, pa.Table]]:
        metrics = json.loads((place / "metrics").read_text())
        assert metrics == self.local.metrics(), metrics
        return [(pq.read_table(place / view), getattr(self.local, view)()) for view in VIEWS if view != "metrics"]

    def _stream(self, place: Path) -> list[tuple[pa.Table, pa.Table]]:
        parts = sorted(place.glob("batch=*"))
        events = pa.concat_tables(pq.read_table(part, partitioning=None) for part in parts)
        is_dropped = pa.compute.equal(events["what"], "dropped")
        sent = events.filter(pa.compute.invert(is_dropped))
        return [
            (sent, self.local.changelog()),
            (events.filter(is_dropped), self.local.dropped(missing_grace=False)),
        ]


def _rows(table: pa.Table, schema: pa.Schema) -> list[str]:
    columns = [table[field.name].cast(field.type) for field in schema]
    return [repr(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def _listen(driver: subprocess.Popen[str], said: queue.Queue[str]) -> None:
    assert driver.stdout is not None
    for line in driver.stdout:
        said.put(line.strip())
    said.put("")


# ---- a table


PLACES = (
    *[("batch", MARKED)] * 2,
    *(("batch", f"{view}()") for view in VIEWS),
    *[("stream", MARKED)] * 2,
    *(("stream", where) for where in ("before", "after", "a micro-batch")),
)


def many(count: int, seed: int) -> list[Killed]:
    """Each kind in turn, in each phase in turn."""
    found = []
    with Cluster() as cluster:
        rounds = Rounds(cluster, seed)
        try:
            for number in range(count):
                killed = rounds.killed(KINDS[number % len(KINDS)], *PLACES[number % len(PLACES)])
                found.append(killed)
                said = f"{killed.kind}, {killed.phase}: lost {killed.lost}, doubled {killed.doubled}"
                print(f"{number + 1:3}  {said}  ({killed.seconds:.0f} s)", flush=True)
        finally:
            rounds.end()
            print(shown(found), flush=True)
    return found


def shown(found: list[Killed]) -> str:
    """One line for each kind and phase."""
    groups: dict[tuple[str, str], list[Killed]] = {}
    for each in found:
        groups.setdefault((each.kind, each.phase), []).append(each)
    lines = [f"{'killed':10} {'phase':36} {'times':>5} {'lost':>5} {'doubled':>7}"]
    for (kind, phase), group in sorted(groups.items()):
        lost, doubled = sum(each.lost for each in group), sum(each.doubled for each in group)
        lines.append(f"{kind:10} {phase:36} {len(group):5} {lost:5} {doubled:7}")
    lost, doubled = sum(each.lost for each in found), sum(each.doubled for each in found)
    lines.append(f"{'all':10} {'':36} {len(found):5} {lost:5} {doubled:7}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if asked.kills:
        found = many(asked.kills, asked.seed)
        sys.exit(any(each.lost or each.doubled for each in found))
    with Cluster() as cluster:
        print(f"{cluster.master}, with the archive {cluster.archive}; Ctrl-C ends it", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
