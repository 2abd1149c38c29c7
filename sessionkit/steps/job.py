"""What to do with the records of a partition, as a value that can travel to another process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation, columns_read
from sessionkit.records.batch import RecordBatch, read_records, without_null_values
from sessionkit.records.row_names import rows_by_place
from sessionkit.records.source import Source
from sessionkit.suppression.settings import Suppression
from sessionkit.windows.contract import WindowKind

# A column that no aggregation reads: each record as it came, for those that are dropped. No user names a column so.
RECORD = "sessionkit record"
STEP_RECORDS = 500_000  # fewer, and the fixed cost of a step shows; more, and it leaves the processor's cache


@dataclass(frozen=True, kw_only=True)
class Job:
    """A task on the records, as a value that can travel to another process."""

    columns: tuple[str, ...]  # names of the columns, in the order in which they come
    source: Source
    windows: WindowKind
    aggregations: tuple[tuple[str, Aggregation], ...]
    strategy: str
    retention_ms: int
    view: str
    schema: pa.Schema
    step_records: int = STEP_RECORDS
    suppression: Suppression | None = None

    @property
    def holds(self) -> str:
        """The kind of the state's contents: "sessions" or "windows"."""
        return self.windows.holds

    @property
    def value_columns(self) -> tuple[str, ...]:
        return columns_read(self.aggregations)

    def read(self, table: pa.Table) -> RecordBatch:
        """Some records, checked, with the reasons for which some count nowhere."""
        with rows_by_place(table, self.source, self.source.offset):
            batch = read_records(table, self.source, self.value_columns)
        batch = batch if self.windows.takes_null_values else without_null_values(batch)
        if RECORD not in self.columns:
            return batch
        return batch.replace(values={**batch.values, RECORD: table[RECORD].combine_chunks()})
