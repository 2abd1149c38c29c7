"""Runs a plan on a streaming DataFrame: the same engine over micro-batches, with its windows in Spark's state."""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from sessionkit.errors import InvalidArgument, NotBuilt, UnsupportedData, problem
from sessionkit.packing import RUN_SCHEMA, pack
from sessionkit.spark_input import SparkInput
from sessionkit.spark_types import column, spark_schema
from sessionkit.text import escape_html, html_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# What a query keeps for a micro-batch is what changed in it, not a copy of all.
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


class StreamRun(SparkInput):
    """What a plan makes of a streaming DataFrame: streaming DataFrames, to be written with Spark's own `writeStream`.

    Each source partition is one group of Spark's state, with its own stream time, whatever the micro-batches are. The
    results of a query over all its micro-batches are those of a local run over the same records, in the same order for
    each partition.
    """

    def events(self) -> DataFrame:
        """All that happens, in order of the records of each partition; `what` says what a row is.

        "update", "tombstone" and "final" rows are those of `changelog()`, "dropped" ones those of `dropped()`.
        """
        from sessionkit.spark_state import RESULT, PartitionProcessor

        self._prepare_session()
        job = self.job("events", self._schema)
        source = self.plan.source
        assert source.partition is not None and source.offset is not None
        places, names = (self.place(source.partition), self.place(source.offset)), (source.partition, source.offset)
        processor = PartitionProcessor(job, self._bound, self._name)
        return (
            self.frame.mapInArrow(_packing(places, names), spark_schema(RUN_SCHEMA))
            .groupBy("slot")
            .transformWithStateInPandas(processor, RESULT, "Append", "None")
            .mapInArrow(_unpacking(), spark_schema(job.schema))
        )

    def changelog(self) -> DataFrame:
        """What goes downstream: updates and tombstones, or finals, by the plan's emit strategy."""
        return self._part(column("what") != "dropped", self.empty.changelog_columns)

    def finals(self) -> DataFrame:
        """Each window once, when it is final.

        Raises:
            InvalidArgument: the plan emits updates.
        """
        if self.plan.strategy != "on_window_close":
            want = '.emit("on_window_close")'
            raise InvalidArgument(problem("a plan that emits updates sends no finals", self.plan.strategy, want))
        return self.changelog()

    def dropped(self) -> DataFrame:
        """The records that count in no window, with the reason.

        The grace that a late record of a session lacked is not told: it takes the history of its key.
        """
        return self._part(column("what") == "dropped", self._dropped.column_names)

    def table(self) -> NoReturn:
        """There is no last word on a stream.

        Raises:
            NotBuilt: with what to use instead.
        """
        want = 'changelog() written to a table by key and window, finals(), or sk.open_store("spark", …)'
        raise NotBuilt(problem("a stream has no table of all its windows", "table()", want))

    # ---- to look at

    def summary(self) -> str:
        """What will run and how, in a line."""
        windows, source = self.plan.windows, self.plan.source
        return (
            f"{windows.noun}s on a stream · {windows.in_words()} · emit {self.plan.strategy.replace('_', ' ')} · "
            f"state by {source.partition}, in order of {source.offset}"
        )

    def __repr__(self) -> str:
        return f"StreamRun: {self.summary()}"

    def _repr_html_(self) -> str:
        views = ", ".join(f"<code>.{name}()</code>" for name in ("events", "changelog", "finals", "dropped"))
        return html_block(
            f"<p><b>{escape_html(self.summary())}</b></p><p>{views} are streaming DataFrames: start one with "
            '<code>.writeStream.option("checkpointLocation", …)</code>.</p>'
        )

    # ---- inside

    @cached_property
    def _dropped(self) -> pa.Table:
        table: pa.Table = self.empty.dropped(missing_grace=False)
        return table

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns of what goes downstream, then those that only a dropped record has."""
        sent = self.empty.changelog().schema
        own = [field for field in self._dropped.schema if field.name not in sent.names]
        return pa.schema([*sent, *own])

    @cached_property
    def _bound(self) -> dict[str, str]:
        """What may not change while there is a state."""
        return {**self.plan.bound(), "retention": str(self.retention_ms)}

    @cached_property
    def _name(self) -> str:
        """Of this run's files in shared memory, which go with this process."""
        from sessionkit.spark_state import SharedFiles

        name = uuid.uuid4().hex
        atexit.register(SharedFiles(name).remove)
        return name

    def _part(self, condition: Any, names: Any) -> DataFrame:
        return self.events().where(condition).select(*[column(name) for name in names])

    def _prepare_session(self) -> None:
        """State of any kind needs RocksDB in Spark 4; what the user chose stays."""
        conf = self.frame.sparkSession.conf
        if "RocksDB" not in str(conf.get(_PROVIDER)):
            conf.set(_PROVIDER, _ROCKSDB)
            conf.set(_CHANGELOG, "true")

    def _sampled_types(self, names: list[str]) -> dict[str, pa.DataType]:
        want = f'.with_types({names[0]}="string"), with any type of Spark\'s'
        raise UnsupportedData(problem("on a stream the results of Python functions are declared", names[0], want))


def _packing(places: tuple[int, int], names: tuple[str, str]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack(batches, *places, names)

    return task


def _unpacking() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column(0):
                yield from pa.ipc.open_stream(data.as_buffer())

    return task
