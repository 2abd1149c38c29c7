"""Suppress on a stream: what goes out is what goes out of a local run, whatever the micro-batches are."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import BufferFull
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of
from tests.partition_processor import assert_as_local, through_processor
from tests.property.test_suppress import NAMED, records

TOGETHER = {
    "count": sk.count(), "least": sk.min("n"), "mean": sk.mean("n"), "words": sk.collect("word"),
    "own": sk.reduce(lambda older, newer: None if newer == 3 else newer, "n"),
}  # fmt: skip
RESULTS: dict[str, Any] = {**NAMED, "together": TOGETHER}
TYPES = {"own": pa.int64()}
BUFFERS: dict[str, Any] = {  # and what is limited
    "until closed": (("until_window_closes",), ()),
    "until closed, few records": (("until_window_closes",), ("records",)),
    "until closed, few bytes": (("until_window_closes",), ("bytes",)),
    "for a time": (("until_time_limit", "4ms"), ()),
    "for a time, few records": (("until_time_limit", "20ms"), ("records",)),
    "for a time, few bytes": (("until_time_limit", "20ms"), ("bytes",)),
    "for a time, or not at all": (("until_time_limit", "30ms"), ("records", "bytes")),
}


def drawn(kind: str, buffer: str, seed: int) -> tuple[sk.Plan, pa.Table, list[int]]:
    """A plan, the records of one partition, and where its micro-batches end.

    What is limited is so to as much as there is, to a little less, or to half of it.
    """
    dice = np.random.default_rng(seed)
    until, limited = BUFFERS[buffer]
    named = RESULTS[list(RESULTS)[seed % len(RESULTS)]]
    plan = plan_of(EACH_KIND[kind], named=named, partition="partition", offset="offset")
    whole = records(seed)
    table = whole.filter(pa.compute.equal(whole["partition"], seed % 3))
    table = table.append_column("offset", pa.array(np.cumsum(dice.integers(1, 4, len(table)))))
    cuts = sorted(dice.integers(0, len(table) + 1, int(dice.integers(0, 9))).tolist())
    waits = plan.suppress(*until).run(table).suppress_buffer()
    most = {name: int(getattr(waits, f"most_{name}")) for name in limited}
    limits: Any = {f"max_{name}": (n, max(0, n - 1), n, n // 2)[seed % 4] for name, n in most.items()}
    strict: Any = {"when_full": "shut_down"} if "or not" in buffer else {}
    return plan.suppress(*until, **limits, **strict), table, cuts


@pytest.mark.thorough
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_any_micro_batches_give_what_a_local_run_gives(kind: str, buffer: str) -> None:
    """Also over the chunks alone, in steps, and where it fails: at the same record, with the same words."""
    sent = whole = failed = 0
    for seed in range(fewer(80)):
        plan, table, cuts = drawn(kind, buffer, seed)
        how: Any = {"types": TYPES, "forgets": seed % 5 < 2, "step_records": 3 if seed % 3 == 0 else 100}
        try:
            local = plan.run(table)
        except BufferFull as full:
            failed += 1
            with pytest.raises(BufferFull) as caught:
                through_processor(plan, table, cuts, **how)
            assert str(caught.value) == str(full), seed
            continue
        events, kept = through_processor(plan, table, cuts, **how)
        if len(table):
            counts, metrics = json.loads(kept.variables["head"][5]), local.metrics()
            assert {name: counts.get(name, 0) for name in metrics} == metrics, seed
        sent += assert_as_local(events, local)
        whole += 1
    assert sent > 0 and whole > 0
    assert bool(failed) is ("closed, few" in buffer or "or not at all" in buffer)
