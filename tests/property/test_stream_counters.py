"""The counters of a stream are those of one run over the same records: wherever its micro-batches end."""

import dataclasses
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.stores.state.chunked_state import Chunk, ChunkedState
from tests.unit.spark.worker.test_by_key import WINDOWS, job_of, plan_for, records

pytest.importorskip("pyspark", reason="pyspark is not installed")
from sessionkit.spark.worker.stream_partition import counted
from sessionkit.steps.partition_run import PartitionRun
from sessionkit.steps.views import WHOLE
from tests.kinds import in_ms

RETENTION_MS = 40_000  # a closed window can still be found, and met, for a while
CASES = [
    (kind, strategy, retention_ms)
    for kind, windows in WINDOWS.items()
    for strategy in ("on_window_update", "on_window_close")
    for retention_ms in (None, RETENTION_MS)
    if (strategy == "on_window_close" or not windows.trailing_only)
    and (windows.is_ever_closed or (strategy, retention_ms) == ("on_window_update", None))
]


def through(kind: str, strategy: str, table: pa.Table, cuts: list[int], retention_ms: int | None) -> Counter[str]:
    """The counters after so many micro-batches of one partition, each with the state that the one before it left."""
    plan, partition = plan_for(kind, strategy), table["partition"][0].as_py()
    sent, dropped = (job_of(plan, table, view, retention_ms) for view in ("changelog", "dropped"))
    own = [field for field in dropped.schema if field.name not in sent.schema.names]
    job = dataclasses.replace(sent, view="events", schema=pa.schema([*sent.schema, *own]))
    state, counts, log = ChunkedState(job.holds, partition), Counter[str](), {}
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        if end == begin:
            continue
        run = PartitionRun(job, partition, state)
        half = (begin + end + 1) // 2  # a micro-batch can take several steps
        for first, last in ((begin, half), (half, end)):
            if last > first:
                [*run.step(table.slice(first, last - first))]
        counts = counted(counts, run.view.counts)
        change = state.seal()
        log |= {chunk.number: chunk for chunk in change.written}
        for number in change.forgotten:
            del log[number]
        chunks = [Chunk(*chunk) for chunk in log.values()]
        state = ChunkedState.read(job.holds, partition, chunks, state.snapshot(partition))
    return counts


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "strategy", "retention_ms"), CASES)
def test_the_counters_are_those_of_one_run(kind: str, strategy: str, retention_ms: int | None) -> None:
    windows = WINDOWS[kind]
    seed = CASES.index((kind, strategy, retention_ms))
    dice, whole = np.random.default_rng(seed), records(seed)
    table = whole.filter(pa.compute.equal(whole["partition"], 3))
    expected = plan_for(kind, strategy).run(table, retention=in_ms(retention_ms)).metrics()
    assert expected["windows-closed"] > 20 or not windows.is_ever_closed
    for batches in (0, 11):
        cuts = sorted(dice.integers(0, len(table), batches).tolist())
        got = through(kind, strategy, table, cuts, retention_ms)
        assert {name: got[name] for name in expected} == expected, f"seed {seed}, cut at {cuts}"


def test_counters_that_were_not_kept_from_the_first_record_on_are_left_out() -> None:
    """Windows of a state from before they were counted are not known, and no number is made up for them."""
    windows = dict.fromkeys(WHOLE, 2)
    assert counted({}, {**windows, "process-total": 2}) == {**windows, "process-total": 2}
    assert counted(windows, dict.fromkeys(WHOLE, -2)) == dict.fromkeys(WHOLE, 0)
    assert dict(counted({"process-total": 7}, {**windows, "process-total": 2})) == {"process-total": 9}
