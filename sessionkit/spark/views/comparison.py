"""Two runs on Spark over the same records beside each other, key by key."""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sessionkit.base.calls import answers_calls
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.spark import functions as F
from sessionkit.spark.reading.tasks import mapped
from sessionkit.spark.types import column, readable_errors
from sessionkit.spark.worker import by_key
from sessionkit.spark.worker.compared import Sides, compare
from sessionkit.spark.worker.shuffle import ORDER, SLICES
from sessionkit.views.comparison.comparison import changed_words
from sessionkit.views.html import Pictured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sessionkit.spark.batch_run import SparkRun
    from sessionkit.views.drawing.palettes import Figure, Theme

RECORDS_OF_A_TASK = 2_000_000  # which it holds, with what two runs decide of them
_TIMES = {"start_ms": "start", "end_ms": "end"}
_BOUNDS = {"before_bounds_ms": "before_bounds", "after_bounds_ms": "after_bounds"}


@answers_calls("comparison")
class SparkComparison(Pictured):
    """`Comparison` of two runs on Spark: tasks compare the keys that they share out, each over whole partitions.

    Example:
        >>> found = run.compare(plan.with_windows(grace="1h").run(df))  # doctest: +SKIP
        >>> found.words(), found.counts(), found.table().show(), found.records().show()  # doctest: +SKIP
        >>> found.figure()  # doctest: +SKIP
    """

    def __init__(self, before: SparkRun, after: SparkRun) -> None:
        _check(before, after)
        self._before, self._after = before, after

    @cached_property
    def _counts(self) -> dict[str, int]:
        schema = pa.schema({"name": pa.string(), "count": pa.int64()})
        with readable_errors():
            rows = self._rows("counts", schema).groupBy("name").agg(F.sum("count")).collect()
        found = {name: int(count) for name, count in rows}
        return {name: found.get(name, 0) for name in self._empty.counts()}

    def counts(self) -> dict[str, int]:
        """Records and windows by what happened to them, as `Comparison.counts` has them. Starts a job."""
        return dict(self._counts)

    def table(self) -> DataFrame:
        """One row for each group of windows that have records in common: what happened to it, and where it is."""
        rows = self._rows("table", self._empty.table().schema)
        rows = self._before._by_partition(rows, column("key").cast("string"), "start_ms", shuffle=True)
        rows = self._before._form.shown(rows, _TIMES)
        return rows.select(*(_shown_bounds(name) if name in _BOUNDS else column(name) for name in rows.columns))

    def records(self) -> DataFrame:
        """One row for each record that one run keeps and the other drops: what happened to it, and the reason."""
        rows = self._rows("records", self._empty.records().schema)
        return self._before._form.shown(self._before._by_partition(rows, "offset", shuffle=True))

    def words(self) -> list[str]:
        """The change as sentences."""
        return changed_words(self.counts(), *(run.plan._complete_windows for run in (self._before, self._after)))

    def figure(self, *, theme: Theme | None = None, most: int = 8) -> Figure:
        """The windows of the keys that change most, with those before above those after."""
        rows = self._rows("table", self._empty.table().schema).where(column("what") != "same")
        counted = rows.groupBy("key").agg(F.count(F.lit(1)).alias("count"))
        with readable_errors():
            found = counted.orderBy(F.desc("count"), "key").limit(most).collect()
        keys = [row["key"] for row in found] or [self._before.most_eventful_key()]
        before, after = (run.of(*keys) for run in (self._before, self._after))
        return before.compare(after).figure(theme=theme, most=most)

    @property
    def _empty(self) -> Any:
        return self._before._empty.compare(self._after._empty)

    def _rows(self, what: str, schema: pa.Schema) -> DataFrame:
        before, after = self._before, self._after
        sides = (("before ", before), ("after ", after))
        named = [(f"{side}{name}", each) for side, run in sides for name, each in run.plan._aggregations]
        plan = dataclasses.replace(before.plan, _aggregations=tuple(named), _suppression=None)
        both = type(before)._over(plan, before._given, None)
        job = dataclasses.replace(both._job("records", pa.schema([])), schema=schema)
        shares = max(both._shares, 1 + both._extent.records // both._task_count // RECORDS_OF_A_TASK)
        place: dict[str, Any] = {"shares": shares, "first": both._extent.first, "width": both._width}
        others = (after.plan._complete_windows,)
        dealt = both._over_partitions(partial(by_key.deal, job, **place, others=others), SLICES)
        dealt = dealt.repartitionById(both._task_count * shares, F.col("place")).sortWithinPartitions(*ORDER)
        plans = [dataclasses.replace(run.plan, _suppression=None) for run in (before, after)]
        both_plans = Sides(plans[0], plans[1], (before._retention_ms, after._retention_ms))
        return mapped(dealt, partial(compare, job, both_plans, what), schema)

    def __repr__(self) -> str:
        return " ".join(self.words())


def _shown_bounds(name: str) -> Any:
    """Lists of bounds as lists of timestamps."""
    return F.transform(column(name), lambda pair: F.transform(pair, F.timestamp_millis)).alias(_BOUNDS[name])


def _check(before: SparkRun, after: object) -> None:
    """Refuses what is no run of the same records on Spark, or of windows of another kind."""
    if not isinstance(after, type(before)):
        want = "another run on Spark over the same DataFrame, or run.local().compare(…)"
        raise InvalidArgument(problem("a run on Spark is compared with its like", type(after).__name__, want))
    same = after._given is before._given or after._given.sameSemantics(before._given)
    one, other = (
        (run.plan.source.keys, run.plan.source.timestamp, run.plan.source.partition, run.plan.source.offset)
        for run in (before, after)
    )
    if not same or one != other:
        got = "two DataFrames" if not same else f"{one} and {other}"
        want = "run both plans on one DataFrame, with the same key, times and partitions"
        raise InvalidArgument(problem("only runs of the same records can be compared", got, want))
    if how := before._deployment or after._deployment:
        want = "run.local(partition).compare(…), a partition at a time"
        raise NotBuilt(problem("deployments on Spark are not compared", repr(how), want))
    before._empty.compare(after._empty)  # which refuses windows of another kind
    columns = [sorted(run.plan._value_columns()) for run in (before, after)]
    if not before.plan._complete_windows.takes_null_values and columns[0] != columns[1]:
        what = "sliding windows drop records without a value, and these plans read other values"
        want = "aggregations of the same columns, or run.local().compare(…)"
        raise NotBuilt(problem(what, f"columns {columns[0]} and {columns[1]}", want))
