"""The class that Spark calls for a partition of a stream, driven without Spark: its state lies in dicts."""

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.run import Run
from sessionkit.steps.job import STEP_RECORDS, Job, fit
from sessionkit.steps.views import columns_of

pytest.importorskip("pyspark", reason="pyspark is not installed")
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.worker.partition_processor import CHUNK, CHUNK_NUMBER, HEAD, PartitionProcessor
from sessionkit.spark.worker.shared_files import SharedFiles
from sessionkit.spark.worker.shuffle import pack


class Value:
    """A state variable that holds one row, with the fields of its schema."""

    def __init__(self, kept: dict[str, Any], name: str, schema: str) -> None:
        self._kept, self._name = kept, name
        self._types = [int if each.endswith(" long") else str for each in schema.split(", ")]

    def exists(self) -> bool:
        return self._name in self._kept

    def get(self) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._kept[self._name]
        return row

    def update(self, row: tuple[Any, ...]) -> None:
        assert [type(each) for each in row] == self._types
        self._kept[self._name] = row


class Chunks:
    """A state variable that holds chunks by their number."""

    def __init__(self, kept: dict[str, Any], name: str) -> None:
        self._rows = kept.setdefault(name, {})

    def iterator(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self._rows.items()))

    def updateValue(self, key: tuple[int], row: tuple[bytes, bytes]) -> None:
        assert all(type(each) is bytes for each in row)
        self._rows[key] = row

    def removeKey(self, key: tuple[int]) -> None:
        del self._rows[key]


class Kept:
    """What Spark keeps of one partition, by the names of the variables."""

    def __init__(self, variables: dict[str, Any] | None = None) -> None:
        self.variables: dict[str, Any] = {} if variables is None else variables

    def getValueState(self, name: str, schema: str) -> Value:
        assert schema == HEAD
        return Value(self.variables, name, schema)

    def getMapState(self, name: str, key: str, schema: str) -> Chunks:
        assert (key, schema) == (CHUNK_NUMBER, CHUNK)
        return Chunks(self.variables, name)

    def copy(self) -> "Kept":
        """What is there if a micro-batch is tried again."""
        return Kept({name: dict(each) if isinstance(each, dict) else each for name, each in self.variables.items()})


def events_job(plan: sk.Plan, table: pa.Table, types: Mapping[str, pa.DataType] | None = None, **changes: Any) -> Job:
    """The job of a stream's events over these columns; `types` are those of the results of Python functions."""
    empty = plan.run(table.slice(0, 0))
    sent, dropped = empty.changelog().schema, empty.dropped(missing_grace=False).schema
    schema = pa.schema([*sent, *(field for field in dropped if field.name not in sent.names)])
    job = Job(
        columns=tuple(table.column_names),
        source=plan.source,
        windows=plan._complete_windows,
        aggregations=plan._aggregations,
        strategy=plan._strategy,
        retention_ms=plan._complete_windows.retention_ms(None),
        view="events",
        schema=pa.schema([field.with_type((types or {}).get(field.name, field.type)) for field in schema]),
        step_records=STEP_RECORDS,
        suppression=plan._suppression,
    )
    return dataclasses.replace(job, **changes)


def micro_batch(job: Job, plan: sk.Plan, kept: Kept, table: pa.Table, run: str) -> pa.Table:
    """The events of a micro-batch with these records of one partition; `run` names the files in shared memory."""
    stream = SimpleNamespace(plan=plan, _retention_ms=job.retention_ms)
    processor = PartitionProcessor(job, StreamRun._bound.func(stream), run)  # type: ignore[attr-defined]
    processor.init(kept)  # type: ignore[arg-type]
    places = [table.column_names.index(name) for name in ("partition", "offset")]
    packed = pa.Table.from_batches(pack(iter(table.to_batches()), *places, ("partition", "offset"))).to_pandas()
    frames = list(processor.handleInputRows((0,), iter([packed]), None))
    sent = [pa.ipc.open_stream(data).read_all() for frame in frames for data in frame["data"] if data]
    return pa.concat_tables([job.schema.empty_table(), *sent])


def through_processor(
    plan: sk.Plan, table: pa.Table, cuts: list[int], kept: Kept | None = None, *, forgets: bool = False, **job: Any
) -> tuple[pa.Table, Kept]:
    """(all events of one partition's records in these micro-batches, what is kept of it then).

    Args:
        forgets: nothing is found in shared memory, as after a restart and on another machine.
    """
    of_events, events = events_job(plan, table, **job), []
    run, kept = uuid4().hex, Kept() if kept is None else kept
    try:
        for begin, end in pairwise([0, *cuts, len(table)]):
            if begin < end:
                events.append(micro_batch(of_events, plan, kept, table.slice(begin, end - begin), run))
            if forgets:
                SharedFiles(run).remove()
    finally:
        SharedFiles(run).remove()
    return pa.concat_tables([of_events.schema.empty_table(), *events]), kept


def assert_as_local(events: pa.Table, run: Run) -> int:
    """The results and the dropped records are those of the run, in its order; how many results there are."""
    is_dropped = pa.compute.equal(events["what"], "dropped")
    sent = events.filter(pa.compute.invert(is_dropped))
    for got, expected in ((sent, run.changelog()), (events.filter(is_dropped), run.dropped(missing_grace=False))):
        names = expected.column_names
        schema = pa.schema([events.schema.field(name) for name in names])
        assert got.select(names).to_pylist() == fit(columns_of(expected), schema).to_pylist()
    return len(sent)
