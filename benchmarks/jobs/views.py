"""What is asked of a run that was made: nothing of the run itself is timed, and each call has a run that is new."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs.sessions import Job, plan

CALLS = 2  # the first one, in which loops are loaded, and a warm one


def emissions(path: str) -> Job:
    """What was emitted for one key."""
    runs = [plan().run(path, frame="arrow") for _ in range(CALLS)]
    key = runs[0].table()["key"][0].as_py()
    return lambda: len(runs.pop().emissions(key).at)


def comparison(path: str) -> Job:
    """What became of each session when the gap is shorter."""
    pairs = [[plan(gap=gap).run(path, frame="arrow") for gap in ("30m", "10m")] for _ in range(CALLS)]

    def call() -> Any:
        first, second = pairs.pop()
        return first.compare(second).table()

    return call


def changelog(path: str) -> Job:
    """Everything that a table would forward, on update."""
    runs = [plan().run(path, frame="arrow") for _ in range(CALLS)]
    return lambda: runs.pop().changelog()


def sweep(path: str) -> Job:
    """20 gaps by 20 graces: 400 exact runs of the same records."""
    import pyarrow.parquet as pq

    import sessionkit as sk

    table = pq.read_table(path)
    gaps, graces = ([f"{round(step * 60_000 * 1.35**i)}ms" for i in range(20)] for step in (1.0, 0.5))

    def call() -> int:
        cells: Any = sk.sweep(plan(), table, inactivity_gap=gaps, grace=graces).cells
        return len(cells)

    return call
