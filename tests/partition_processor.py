"""The class that Spark calls for a partition of a stream, driven without Spark: its state lies in dicts."""

import dataclasses
import pickle
from collections.abc import Iterator, Mapping
from itertools import pairwise
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
from sessionkit.spark.worker.shuffle import Packed, pack


class _Value:
    """A state variable that holds one row, of exactly the fields of its schema."""

    def __init__(self, kept: dict[str, Any], name: str, schema: str) -> None:
        self._kept, self._name, self._width = kept, name, len(schema.split(", "))

    def exists(self) -> bool:
        return self._name in self._kept

    def get(self) -> tuple[Any, ...]:
        row: tuple[Any, ...] = pickle.loads(self._kept[self._name])
        return row

    def update(self, row: tuple[Any, ...]) -> None:
        assert len(row) == self._width and all(isinstance(each, int | str) for each in row)
        self._kept[self._name] = pickle.dumps(row)


class _Map:
    """A state variable that holds chunks by their number."""

    def __init__(self, kept: dict[str, Any], name: str) -> None:
        self._rows = kept.setdefault(name, {})

    def iterator(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self._rows.items()))

    def updateValue(self, key: tuple[int], row: tuple[bytes, bytes]) -> None:
        assert all(isinstance(each, bytes) for each in row)
        self._rows[key] = row

    def removeKey(self, key: tuple[int]) -> None:
        del self._rows[key]


class StateOfOne:
    """What Spark keeps of one partition; a copy of `kept` is what is there if a micro-batch is tried again."""

    def __init__(self, kept: dict[str, Any] | None = None) -> None:
        self.kept: dict[str, Any] = {} if kept is None else kept

    def getValueState(self, name: str, schema: str) -> _Value:
        assert schema == HEAD
        return _Value(self.kept, name, schema)

    def getMapState(self, name: str, key: str, schema: str) -> _Map:
        assert (key, schema) == (CHUNK_NUMBER, CHUNK)
        return _Map(self.kept, name)

    def copy(self) -> "StateOfOne":
        return StateOfOne({name: dict(each) if isinstance(each, dict) else each for name, each in self.kept.items()})


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


def bound_of(plan: sk.Plan) -> dict[str, str]:
    """What a stream notes of the plan in its state."""
    return StreamRun._bound.func(_StreamOf(plan, plan._complete_windows.retention_ms(None)))  # type: ignore[attr-defined, no-any-return]


@dataclasses.dataclass
class _StreamOf:
    plan: sk.Plan
    _retention_ms: int


def micro_batch(processor: PartitionProcessor, state: StateOfOne, table: pa.Table) -> pa.Table | None:
    """The events of a micro-batch with these records of one partition; what was kept changes once it is through."""
    places = [table.column_names.index(name) for name in ("partition", "offset")]
    packed = pa.Table.from_batches(pack(iter(table.to_batches()), *places, ("partition", "offset"))).to_pandas()
    processor.init(state)  # type: ignore[arg-type]
    sent = []
    for frame in processor.handleInputRows((0,), iter([packed[list(Packed._fields)]]), None):
        sent += [pa.ipc.open_stream(data).read_all() for data in frame["data"] if data]
    return pa.concat_tables(sent) if sent else None


def through_processor(
    plan: sk.Plan,
    table: pa.Table,
    cuts: list[int],
    state: StateOfOne | None = None,
    *,
    forgets: bool = False,
    **job: Any,
) -> tuple[pa.Table, StateOfOne]:
    """(all events of one partition's records in these micro-batches, the state behind them).

    Args:
        forgets: nothing is found in shared memory, as on another machine.
    """
    what = events_job(plan, table, **job)
    run, state = uuid4().hex, StateOfOne() if state is None else state
    events = [what.schema.empty_table()]
    try:
        for begin, end in pairwise([0, *cuts, len(table)]):
            if begin == end:
                continue
            part = micro_batch(PartitionProcessor(what, bound_of(plan), run), state, table.slice(begin, end - begin))
            events += [] if part is None else [part]
            if forgets:
                SharedFiles(run).remove()
    finally:
        SharedFiles(run).remove()
    return pa.concat_tables(events), state


def assert_as_local(events: pa.Table, run: Run, job: Job) -> int:
    """The results and the dropped records are those of the run, in its order; how many results there are."""
    is_dropped = pa.compute.equal(events["what"], "dropped")
    for got, expected in (
        (events.filter(pa.compute.invert(is_dropped)), run.changelog()),
        (events.filter(is_dropped), run.dropped(missing_grace=False)),
    ):
        names = [name for name in expected.column_names if name != "what" or "what" in got.column_names]
        kinds = pa.schema([job.schema.field(name) for name in names])
        assert got.select(names).to_pylist() == fit(columns_of(expected.select(names)), kinds).to_pylist()
    return len(events) - int(pa.compute.sum(is_dropped).as_py() or 0)
