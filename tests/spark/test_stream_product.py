"""Window kinds, emit strategies, numbers of partitions, sizes of micro-batches: each as the local run.

SESSIONKIT_PRODUCT=1 takes all combinations, else a selection in which any two choices meet.
"""

from functools import reduce
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.steps import job
from tests.spark.common import IS_WHOLE, STRATEGIES, WINDOWS, assert_same_events, collected, plan_of, records

pytest.importorskip("pyspark", reason="pyspark is not installed")
from sessionkit.spark.reading.replay_source import ReplaySource
from tests.optional import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PARTITIONS = (1, 2, 7)
# rows a micro-batch: of how many
TRIGGERS = {1: 24, 7: 84, 1_200: 1_200} if IS_WHOLE else {1: 6, 7: 21, 1_200: 1_200}


class Case(NamedTuple):
    """One plan over so many partitions, in micro-batches of so many rows."""

    kind: str
    strategy: str
    partitions: int
    rows: int


WHOLE = [Case(*values) for values in product(WINDOWS, STRATEGIES, PARTITIONS, TRIGGERS)]


def selected() -> list[Case]:
    """Of the whole product, the fewest that a greedy choice needs until any two values of two choices have met."""
    left, chosen = {pair for case in WHOLE for pair in pairs(case)}, []
    while left:
        chosen.append(max(WHOLE, key=lambda case: len(pairs(case) & left)))
        left -= pairs(chosen[-1])
    return chosen


def pairs(case: Case) -> set[object]:
    return set(combinations(zip(Case._fields, case, strict=True), 2))


CASES = WHOLE if IS_WHOLE else selected()


def played(spark: SparkSession, table: pa.Table, rows: int, path: Path) -> DataFrame:
    """A stream of so many rows a micro-batch, in which they come in no order."""
    dice = np.random.default_rng(rows)
    places = [first + dice.permutation(min(rows, len(table) - first)) for first in range(0, len(table), rows)]
    pq.write_table(table.take(pa.array(np.concatenate(places))), path)
    return spark.readStream.format("sessionkit.replay").options(path=str(path), rowsPerBatch=rows).load()


@pytest.mark.parametrize("rows", TRIGGERS)
def test_a_stream_is_the_local_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: int
) -> None:
    """All plans in one query: what it takes is the number of micro-batches."""
    monkeypatch.setattr(job, "STEP_RECORDS", 90)
    spark.dataSource.register(ReplaySource)
    cases = [case for case in CASES if case.rows == rows]
    tables = {partitions: records(partitions).slice(0, TRIGGERS[rows]) for partitions in PARTITIONS}
    streams = {p: played(spark, table, rows, tmp_path / f"{p}.parquet") for p, table in tables.items()}
    runs = [plan_of(WINDOWS[case.kind], case.strategy) for case in cases]
    events = [
        plan.stream(streams[case.partitions]).events().selectExpr(f"{number} plan", "*")
        for number, (case, plan) in enumerate(zip(cases, runs, strict=True))
    ]
    union = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), events)
    with collected(union, tmp_path / "checkpoint") as batches:
        got = pa.concat_tables(batches)
    assert len(batches) == TRIGGERS[rows] // rows
    whats: set[str] = set()
    for number, (case, plan) in enumerate(zip(cases, runs, strict=True)):
        mine = got.filter(pa.compute.equal(got["plan"], number))
        assert_same_events(mine, plan.run(tables[case.partitions]))
        whats |= set(mine["what"].to_pylist())
    assert {"update", "final", "dropped"} <= whats
    with capsys.disabled():
        print(
            f"\n{len(cases)} plans, each in {len(batches)} micro-batches of {rows}: {len(got):,} events as run locally"
        )


def test_any_two_choices_meet() -> None:
    assert {pair for case in CASES for pair in pairs(case)} == {pair for case in WHOLE for pair in pairs(case)}
    assert len(CASES) < len(WHOLE) / 4 or IS_WHOLE
