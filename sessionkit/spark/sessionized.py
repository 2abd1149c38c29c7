"""The sessions of the rows of a DataFrame: `sk.sessionize` on Spark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sessionkit.base.moments import known_zone
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import batch_of
from sessionkit.records.inputs.opened import open_table
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.records.row_names import rows_by_place
from sessionkit.records.source import Source
from sessionkit.records.time_text import is_text_type
from sessionkit.session_rules.rules import SessionRules, columns_of_gaps
from sessionkit.spark.environment.worker_python import settle_worker_python
from sessionkit.spark.input import check_options
from sessionkit.spark.types import arrow_schema, column, readable_errors, shown_timestamp, spark_schema
from sessionkit.spark.worker.sessions_of_rows import sessions_of_rows
from sessionkit.spark.worker.task_wrapper import worker_task
from sessionkit.views.assignment import assigned_names, taken
from sessionkit.views.stable_ids import Ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sessionized(
    plan: Plan,
    df: DataFrame,
    offset: str | None,
    rules: SessionRules,
    *,
    in_order: bool,
    prefix: str = "",
    ids: Ids = "number",
) -> DataFrame:
    """The rows of `df` with the session of each beside them, in no order; at most a look at one row runs yet.

    The rows of a key go to one task, which holds them; where they arrive `in_order`, those of a source partition.
    """
    source = plan.source
    if df.isStreaming:
        want = "plan.stream(df): a session of a stream is only known in the end"
        raise NotBuilt(problem("sessionize takes rows that are all there", "a streaming DataFrame", want))
    if in_order and (source.partition is None or offset is None):
        want = 'partition="partition", offset="offset", or leave out grace='
        got = f"partition={source.partition!r}, offset={offset!r}"
        what = "with a grace, the order of arrival counts, and rows on Spark have none"
        raise InvalidArgument(problem(what, got, want))
    if rules.goes_by_order and offset is None:
        want = 'offset="a column that tells the order of rows of equal time"; any that differs, if none is equal'
        what = "max_rows, new_when, starts_when and ends_when go by the order of rows, and rows on Spark have none"
        raise InvalidArgument(problem(what, "no offset=", want))
    settle_worker_python(df.sparkSession)
    wanted = [*source.columns(), *([offset] if offset else []), *rules.columns()]
    check_options(source, dict(df.dtypes), wanted, takes_format=True)
    with columns_of_gaps(rules):
        check_columns(df.columns, list(dict.fromkeys([*wanted, *df.columns])))
    _check_first_row(df, source)
    windows = plan._complete_windows
    inners = [
        *(name.replace("_ms", "_us") for name in assigned_names(windows)),
        *(["session_ended_by"] if rules.cuts else []),
    ]
    names = {inner: prefix + inner.removesuffix("_us") for inner in inners}
    if clash := [name for name in names.values() if name in df.columns]:
        raise taken(clash[0], "prefix=")
    zone = known_zone(source.timezone or str(df.sparkSession.conf.get("spark.sql.session.timeZone")))
    called = {name: f"c{place}" for place, name in enumerate(df.columns)}  # mapInArrow trips over a dot in a name
    rows = df.toDF(*called.values())
    together = [source.partition] if in_order else source.keys
    owners = [column(called[name]) for name in together if name]
    # without a number of tasks, of which Spark makes no more than the rows need: each costs a start in Python
    rows = rows.repartition(*owners) if owners else rows.repartition(1)
    order = tuple(name for name in (source.partition, offset) if name)
    task = partial(sessions_of_rows, plan, list(called), order, rules, zone, ids, in_order)
    kinds = {"late": pa.bool_(), "session_ended_by": pa.string()}
    kinds |= {inners[0]: pa.string()} if ids == "key" else {}
    added = spark_schema(pa.schema([(inner, kinds.get(inner, pa.int64())) for inner in names]))
    found = rows.mapInArrow(worker_task(task), type(added)([*rows.schema.fields, *added.fields]))
    shown = [column(inner).alias(name) for name, inner in called.items()]
    for inner, name in names.items():
        is_time = inner.endswith("_us")
        shown.append(shown_timestamp(inner, name, zone, per_ms=1_000) if is_time else column(inner).alias(name))
    return found.select(*shown)


def _check_first_row(df: DataFrame, source: Source) -> None:
    """Refuses types that cannot be times and keys; where a type does not tell, by a look at one row, in a job."""
    names = list(dict.fromkeys(source.columns()))
    rows = df.select(*map(column, names))
    schema = arrow_schema(rows, names)
    is_told = not is_text_type(schema.field(source.timestamp).type) and not any(map(pa.types.is_floating, schema.types))
    with readable_errors():
        first = schema.empty_table() if is_told else rows.limit(1).toArrow()
    with rows_by_place(first, source, source.offset):
        batch_of(open_table(first, source.columns(), source), source)
