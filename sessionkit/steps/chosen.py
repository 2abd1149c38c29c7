"""`plan.run(data, keys=[…])` of many records: those of some keys and their ticks, picked a step at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.progress import progress
from sessionkit.engine.chosen_keys import PartitionsSoFar, picked_records
from sessionkit.errors import UnknownRecord, problem
from sessionkit.records.batch import RecordBatch, batch_of
from sessionkit.records.files.found import find
from sessionkit.records.frames import FrameKind
from sessionkit.records.inputs.opened import is_arrow, is_files
from sessionkit.records.keys import codes_among
from sessionkit.records.source import Source
from sessionkit.steps.reading import STEP_RECORDS, Reading, add_remarks, check_rising, needs_all, read_ahead


def may_be_picked(source: Source, data: Any) -> bool:
    """Whether no step needs all of the data, which says its types and how many rows it has, and is not in memory."""
    if needs_all(source):
        return False
    if is_files(data):
        found = find(data).contents
        return bool(found) and found[0].kind == "Parquet"
    return is_arrow(data, "pyarrow.dataset", "Dataset") or is_arrow(data, "pyarrow.parquet", "ParquetFile")


def is_long(reading: Reading) -> bool:
    """Whether there are more records than one step has."""
    return (reading.pieces.rows or 0) > STEP_RECORDS


def key_at(reading: Reading, offset: int, partition: int | None) -> Any:
    """The key of the record that stands there, looked for a step at a time; `UnknownRecord` if there is none."""
    is_told, before = partition is not None or reading.source.partition is None, 0
    for _, batch in read_ahead(reading.batches(0, STEP_RECORDS)) if is_told else ():
        own = np.flatnonzero(batch.partitions[batch.partition] == (partition or 0))
        found = batch.key[own[batch.offset[own] + before == offset]]
        if len(found) and found[0] >= 0:
            return batch.keys[int(found[0])].as_py()
        before += len(own) if batch.given_offset is None else 0
    got, want = f"offset {offset}, partition {partition}", "another offset, and its partition where there are several"
    raise UnknownRecord(problem("there is no record with a key at this place", got, want))


def picked(reading: Reading, keys: list[Any], frame: FrameKind | None, most: int = STEP_RECORDS) -> RecordBatch:
    """The records of these keys and the ticks that they need, as `chosen_records` gives them.

    Raises:
        UnknownRecord: there is no record of such a key.
    """
    head, so_far, read = reading.pieces.head, PartitionsSoFar(reading.windows), dict[int, int]()
    tables, places, remarks = [head.table], [np.empty(0, np.int64)], [*head.remarks]
    lacking, count = np.zeros(256, np.int64), 0  # by what was wrong with them; of all records
    with progress("picking records", reading.pieces.rows) as reached:
        for table, batch in read_ahead(reading.batches(0, most)):
            check_rising(batch, read)
            rows = so_far.needed_rows(batch, np.isin(batch.key, codes_among(batch.keys, keys)))
            tables.append(table.take(pa.array(rows.at)).cast(head.table.schema))
            places.append(rows.place)
            count += len(batch)
            if batch.rejected is not None:
                lacking += np.bincount(batch.rejected, minlength=len(lacking))
            add_remarks(remarks, batch)
            reached(count)
    opened = dataclasses.replace(head, table=pa.concat_tables(tables))
    few, place = batch_of(opened, reading.source, reading.value_columns, frame), np.concatenate(places)
    few = few if few.given_offset is not None else few.replace(given_offset=place)
    chosen = picked_records(few, place, keys, reading.windows, "there is no record of this key")
    return chosen.replace(remarks=(*remarks, *reading.lacking(dict(enumerate(lacking.tolist())), count)))
