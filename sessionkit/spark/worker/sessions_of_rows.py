"""The work of `sessionize` in a task: all rows of its keys, or of its source partitions, with the session of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.durations import INT64_MAX
from sessionkit.base.result_columns import ResultForm
from sessionkit.plan import Plan
from sessionkit.records.batch import batch_of
from sessionkit.records.inputs.opened import open_table
from sessionkit.records.row_names import rows_by_place
from sessionkit.session_rules.cut import cut_by_rules
from sessionkit.session_rules.rules import SessionRules
from sessionkit.steps.partition_run import BATCH_RECORDS
from sessionkit.views.assignment import assigned
from sessionkit.views.stable_ids import Ids, with_ids, with_ids_of_merges

IDS_OF_A_TASK = 2**40


def sessions_of_rows(
    plan: Plan,
    names: list[str],
    order: tuple[str, ...],
    rules: SessionRules,
    zone: str,
    ids: Ids,
    in_order: bool,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Rows, called `names` in the plan and in errors, with the columns of `sessionize` behind their own.

    `order` are the columns by which rows are put in order first; `zone` is that in which days begin.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    pieces = list(batches)
    if not pieces:
        return
    rows = pa.Table.from_batches(pieces).rename_columns(names)
    if order:
        rows = rows.sort_by([(name, "ascending") for name in order])
    source, windows = plan.source, plan._complete_windows
    with rows_by_place(rows, source, order[-1] if order else None):
        opened = open_table(rows, list(dict.fromkeys([*source.columns(), *rules.columns()])), source)
        batch = batch_of(opened, source)
        if in_order:
            added = assigned(plan._run_batch(batch).trace, windows)
        else:
            added = cut_by_rules(opened, batch, rules, source, zone=zone)
    if rules.cuts:
        added = added.set_column(
            len(added.column_names) - 1, "session_ended_by", added["session_ended_by"].cast(pa.string())
        )
    if ids == "number":
        added = added.set_column(0, added.field(0), pc.add(added[0], context.partitionId() * IDS_OF_A_TASK))
    else:
        added = with_ids(added, opened.table, source.own_columns(), ids)
    for place, name in ((1, "session_start"), (2, "session_end")):
        added = added.set_column(place, f"{name}_us", _microseconds(added[place]))
    for name in added.column_names:
        rows = rows.append_column(name, added[name])
    rows = rows.rename_columns([*pieces[0].schema.names, *added.column_names])
    yield from rows.to_batches(max_chunksize=BATCH_RECORDS)


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as Spark has them."""
    if pa.types.is_int64(column.type):  # those after the year 9999 stay there
        return pc.multiply(pc.min_element_wise(column, INT64_MAX // 1_000, skip_nulls=False), 1_000)
    return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())


def ids_of_merges(form: ResultForm, ids: Ids, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merges with the ids of their sessions, made of the key as `form` shows it, the partition and the start."""
    for batch in batches:
        merges = pa.Table.from_batches([batch])
        yield from with_ids_of_merges(merges, ["key", "partition"], form, ids).to_batches()
