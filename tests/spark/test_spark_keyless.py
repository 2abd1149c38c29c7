"""A plan without a key column on Spark: the answers are those of the same plan in one process, batch and stream."""

from pathlib import Path

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.optional import SparkSession
from tests.spark.common import WINDOWS, assert_events, in_order, read_stream, records, shuffled, write_files

pytestmark = pytest.mark.spark

BASE = sk.group_by_key(timestamp="at", partition="partition", offset="offset")
PLANS = {
    name: BASE.windowed_by(windows).emit(emit).aggregate(count=sk.count(), total=sk.sum("amount"))
    for (name, windows), emit in zip(WINDOWS.items(), ("on_window_update", "on_window_close") * 2, strict=True)
}


def same(got: pa.Table, expected: pa.Table) -> bool:
    assert got.column_names == expected.column_names
    assert "key" not in got.column_names
    return all(got[name].to_pylist() == expected[name].cast(got[name].type).to_pylist() for name in got.column_names)


@pytest.mark.parametrize("kind", PLANS)
def test_a_run_gives_what_one_process_gives(spark: SparkSession, kind: str) -> None:
    table = in_order(records(2).slice(0, 400), "partition", "offset")
    local, run = PLANS[kind].run(table), PLANS[kind].run(shuffled(spark, table))
    assert same(run.table().toArrow(), local.table())
    assert same(run.changelog().toArrow(), local.changelog())
    assert same(run.dropped().toArrow(), local.dropped())
    assert same(run.losses().toArrow(), local.losses())
    assert run.metrics() == local.metrics()
    if kind == "session":
        assert same(run.merges().toArrow(), local.merges())
        merge = local.merges().to_pylist()[0]
        at = {"window_start": merge["window_start"], "partition": merge["partition"]}
        assert str(run.explain(**at)).startswith("Session of all records, ")
        assert str(run.lineage(None, **at)) == str(local.lineage(None, **at))
        assert run.lanes().layout.yaxis.ticktext[0].startswith("<b>all records · ")


@pytest.mark.parametrize("kind", PLANS)
def test_a_stream_gives_what_one_process_gives(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = records(2).slice(0, 400)
    run = PLANS[kind].stream(read_stream(spark, write_files(table, tmp_path / "in", [250])))
    assert assert_events(run, PLANS[kind].run(table), tmp_path / "checkpoint") == 2
    state = sk.read_state(tmp_path / "checkpoint").toArrow()
    assert {*state["key"].to_pylist()} == {b""}


def test_what_needs_a_key_says_so(spark: SparkSession) -> None:
    df = shuffled(spark, records(2).slice(0, 40))
    run = PLANS["session"].run(df)
    with pytest.raises(InvalidArgument, match=r"no key to divide the records by; got by_key\(\); the run as it is"):
        run.by_key()
    with pytest.raises(InvalidArgument, match="this plan has no keys; got 'ada'"):
        run.of("ada")
    with pytest.raises(NotBuilt, match="group records by a key; got no key column"):
        sk.audit(PLANS["session"], df)
