"""What a step of a stream gives: dropped records with what they came with, which no aggregation reads."""

from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.steps.job import RECORD, Job
from sessionkit.steps.partition_run import PartitionRun

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
