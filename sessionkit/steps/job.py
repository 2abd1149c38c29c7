"""What to do with the records of a partition, as a value that can travel; and results as columns of declared types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation, columns_read
from sessionkit.base.arrays import of_type
from sessionkit.base.result_columns import AS_STORED
from sessionkit.errors import UnsupportedData, errors_as, problem, shorten
from sessionkit.records.batch import RecordBatch, read_records, without_null_values
from sessionkit.records.row_names import rows_by_place
from sessionkit.records.source import Source
from sessionkit.suppression.settings import Suppression
from sessionkit.windows.contract import WindowKind

_NOT_ARROW = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


def _declare(name: str) -> str:
    return f'declare it: .with_types({name}="string"), with any type of Spark\'s, such as "struct<a: bigint>"'


def fit(columns: Mapping[str, Any], schema: pa.Schema, want: Callable[[str], str] = _declare) -> pa.Table:
    """The columns as a table of exactly this schema; refuses results that are not of its type, with what is wanted."""
    return pa.Table.from_arrays([_column(columns[field.name], field, want) for field in schema], schema=schema)


def type_of(name: str, values: Sequence[Any], want: Callable[[str], str] = _declare) -> pa.DataType:
    """The one Arrow type that holds all these results of a Python function; UnsupportedData if none is known."""
    several = f"the results of {name!r} have no single type"
    with errors_as(UnsupportedData, several, want(name), _NOT_ARROW):
        kind = pa.array(list(values)).type
    if pa.types.is_null(kind):
        got = "no result that is not None"
        raise UnsupportedData(problem(f"the type of {name!r} cannot be determined", got, want(name)))
    misfit = next((value for value in values if not _holds(kind, value)), None)
    if misfit is not None:
        raise UnsupportedData(problem(several, shorten(misfit), want(name)))
    return kind


def _column(column: Any, field: pa.Field, want: Callable[[str], str]) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _objects(column.tolist(), field, want)
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(column)
    return of_type(column, field.type)


def _objects(values: list[Any], field: pa.Field, want: Callable[[str], str]) -> pa.Array:
    misfit = next((value for value in values if not _holds(field.type, value)), None)
    try:
        if misfit is None:
            return pa.array([_entries(field.type, value) for value in values], field.type)
        got = f"{shorten(misfit)!r}"
    except _NOT_ARROW as error:
        got = shorten(error, 120)
    raise UnsupportedData(problem(f"a result of {field.name!r} does not fit into {field.type}", got, want(field.name)))


def _holds(kind: pa.DataType, value: Any) -> bool:
    """False where Arrow would leave out a part of the value without a word: a dict's keys that a struct lacks."""
    if pa.types.is_struct(kind) and isinstance(value, dict):
        fields = {field.name: field.type for field in kind}
        return value.keys() <= fields.keys() and all(_holds(fields[name], part) for name, part in value.items())
    if pa.types.is_map(kind) and isinstance(value, dict):
        return all(_holds(kind.item_type, part) for part in value.values())
    if pa.types.is_list(kind) and isinstance(value, list | tuple):
        return all(_holds(kind.value_type, part) for part in value)
    return True


def _entries(kind: pa.DataType, value: Any) -> Any:
    """A map as its entries, which is how Arrow takes it; any other value as it is."""
    return list(value.items()) if pa.types.is_map(kind) and isinstance(value, dict) else value


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
            batch = read_records(table, self.source, self.value_columns).replace(form=AS_STORED)
        batch = batch if self.windows.takes_null_values else without_null_values(batch)
        if RECORD not in self.columns:
            return batch
        return batch.replace(values={**batch.values, RECORD: table[RECORD].combine_chunks()})
