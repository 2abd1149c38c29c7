"""What a step gives: dropped records of a stream with what they came with, and the most that waits in suppress."""

from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.steps.job import RECORD, Job
from sessionkit.steps.partition_run import PartitionRun, run_job

ROWS: list[dict[str, Any]] = [
    {"user": "ada", "at": 10, "n": 1, "p": 0, "o": 0},
    {"user": None, "at": 11, "n": 2, "p": 0, "o": 3},
    {"user": "bob", "at": 90, "n": None, "p": 0, "o": 4},
    {"user": "bob", "at": 90, "n": 4, "p": 0, "o": 5},
    {"user": "ada", "at": 12, "n": 5, "p": 0, "o": 9},
]
WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=5, grace_ms=5),
    "sliding": sk.SlidingWindows(time_difference_ms=10, grace_ms=5),
}


MOST = pa.schema([("partition", pa.int64()), ("name", pa.string()), ("count", pa.int64())])


def events_of(kind: str, cut: int, *, carried: bool) -> pa.Table:
    """The events of the records in two steps; what each came with is its offset, as a struct."""
    plan = sk.group_by_key("user", timestamp="at", unit="ms", partition="p", offset="o")
    plan = plan.windowed_by(WINDOWS[kind]).aggregate(total=sk.sum("n"))
    table = pa.Table.from_pylist(ROWS)
    empty = plan.run(table.slice(0, 0))
    sent, dropped = empty.changelog().schema, empty.dropped(missing_grace=False).schema
    schema = pa.schema([*sent, *(field for field in dropped if field.name not in sent.names)])
    if carried:
        record = pa.array([{"o": row["o"]} for row in ROWS])
        table = table.append_column(RECORD, record)
        schema = schema.append(pa.field(RECORD, record.type))
    job = Job(
        columns=tuple(table.column_names), source=plan.source, windows=plan.windows, aggregations=plan._aggregations,
        strategy=plan._strategy, retention_ms=plan.windows.retention_ms(None), view="events", schema=schema,
    )  # fmt: skip
    run = PartitionRun(job, 0)
    return pa.Table.from_batches([*run.step(table.slice(0, cut)), *run.step(table.slice(cut))], schema)


@pytest.mark.parametrize("cut", [1, 3, 4])
@pytest.mark.parametrize("kind", WINDOWS)
def test_each_dropped_record_has_what_it_came_with(kind: str, cut: int) -> None:
    """Wherever the steps are cut; what is sent on has none, and is what it is without."""
    events = events_of(kind, cut, carried=True)
    for row in events.to_pylist():
        assert row[RECORD] == ({"o": row["offset"]} if row["what"] == "dropped" else None)
    assert events.drop_columns([RECORD]).equals(events_of(kind, cut, carried=False))
    dropped = events.filter(pa.compute.equal(events["what"], "dropped"))
    reasons = {row["offset"]: row["reason"] for row in dropped.to_pylist()}
    null_value = {4: "null_value"} if kind == "sliding" else {}  # a record of its own is no value
    assert reasons == {3: "null_key", 9: "late", **null_value}


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("step_records", [1, 3, 1_000])
def test_the_most_that_waits_is_counted_over_any_steps(kind: str, step_records: int) -> None:
    """As results and as bytes, which a buffer of a local run counts result by result; a limit lets some go early."""
    at = [10, 14, 11, 33, 31, 52, 50, 58, 59, 90, 91, 60, 95, 140]
    table = pa.table({"user": ["ada", "bob"] * 7, "at": at, "n": range(14), "p": [0] * 14, "o": range(14)})
    plan = sk.group_by_key("user", timestamp="at", unit="ms", partition="p", offset="o")
    plan = plan.windowed_by(WINDOWS[kind]).aggregate(total=sk.sum("n"), last=sk.last("at"))
    for most in (10**6, 300):
        waits = plan.suppress("until_time_limit", "40ms", max_bytes=most)
        windows = waits._complete_windows
        job = Job(
            columns=tuple(table.column_names), source=waits.source, windows=windows, aggregations=waits._aggregations,
            strategy=waits._strategy, retention_ms=windows.retention_ms(None), view="most_waiting", schema=MOST,
            step_records=step_records, suppression=waits._suppression,
        )  # fmt: skip
        counted = pa.Table.from_batches(run_job(job, iter(table.to_batches())), MOST).to_pylist()
        buffer = waits.run(table).suppress_buffer()
        expected = {"most": buffer.most_records, "bytes": buffer.most_bytes}
        assert counted == [{"partition": 0, "name": name, "count": count} for name, count in expected.items()]
        assert buffer.most_bytes > 300
