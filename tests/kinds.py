"""A plain example of each kind of window, and a plan over it, for tests that need no lengths of their own."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

import sessionkit as sk
from sessionkit.base.result_columns import AS_STORED, ResultForm
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.source import Source


def each_kind(unit_ms: int = 1) -> dict[str, Any]:
    """One of each kind, in a unit of so many milliseconds."""
    grace = 5 * unit_ms
    return {
        "session": sk.SessionWindows(inactivity_gap_ms=5 * unit_ms, grace_ms=2 * grace),
        "tumbling": sk.TimeWindows(size_ms=10 * unit_ms, grace_ms=grace),
        "hopping": sk.TimeWindows(size_ms=10 * unit_ms, advance_ms=3 * unit_ms, grace_ms=grace),
        "sliding": sk.SlidingWindows(time_difference_ms=10 * unit_ms, grace_ms=grace),
    }


EACH_KIND = each_kind()


class _InMs(Source):
    """A source whose results are as they are inside, also where no timestamp shows them: near the end of 64 bits."""

    def result_form(self, types: Any, timezone: str) -> ResultForm:
        return AS_STORED


def shown_in_ms(plan: sk.Plan) -> sk.Plan:
    """The plan, but views have the joined key in `key`, and times as integers in columns that end in `_ms`."""
    return dataclasses.replace(plan, source=_InMs(**vars(plan.source)))


def group_in_ms(*keys: str, timestamp: str = "at", unit: Any = "ms", **source: Any) -> sk.Plan:
    """`sk.group_by_key`, shown in milliseconds."""
    return shown_in_ms(sk.group_by_key(*keys, timestamp=timestamp, unit=unit, **source))


def in_ms(length: int | None) -> str | None:
    """A length as a text; None stays None."""
    return None if length is None else f"{length}ms"


def plan_of(
    windows: Any,
    strategy: str = "on_window_update",
    named: dict[str, Any] | None = None,
    *,
    key: str = "key",
    timestamp: str = "at",
    **source: Any,
) -> sk.Plan:
    """The aggregations that are named, or else a count, over these windows; `source` is of `group_by_key`."""
    grouped = group_in_ms(key, timestamp=timestamp, **source)
    return grouped.windowed_by(windows).emit(strategy).aggregate(**(named or {"count": sk.count()}))


def table_of(rows: Sequence[tuple[Any, ...]], **types: pa.DataType | None) -> pa.Table:
    """These rows as a table, of a column for each type; None is the type that the values have."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return pa.table(dict(zip(types, map(pa.array, columns, types.values()), strict=True)))


def batch_of(*rows: tuple[str | None, int, int], first_offset: int = 0) -> RecordBatch:
    """Records by (key, time, partition), as the engine takes them."""
    types = {"key": object, "at": "int64", "partition": "int64"}
    frame = pd.DataFrame(rows, columns=list(types)).astype(types)
    frame["offset"] = range(first_offset, first_offset + len(rows))
    source = Source(keys=("key",), timestamp="at", unit="ms", partition="partition", offset="offset")
    return read_records(frame, source, ())


def every(word: str = "word", *, real_sum: str = "float sum", last: str = "last") -> dict[str, Any]:
    """Every aggregation of sessionkit, over columns whole, real, flag and one of text; two results have these names."""
    of_numbers = {"n": sk.count(), "sum": sk.sum("whole"), real_sum: sk.sum("real"), "ayes": sk.sum("flag")}
    extremes = {"low": sk.min("real"), "high": sk.max("whole")}
    means = {"mean": sk.mean("whole"), "mean flag": sk.mean("flag")}
    return {**of_numbers, **extremes, **means, "first": sk.first(word), last: sk.last("flag"), "all": sk.collect(word)}


def load_loops(kind: str) -> None:
    """The compiled loops of the plans that most tests run, for a kind of window; on a new machine it compiles them."""
    named = {"count": sk.count(), "total": sk.sum("n"), "least": sk.min("n"), "most": sk.max("n"), "mean": sk.mean("x")}
    table = pa.table({"key": ["a", "b", "a"], "at": [0, 5, 100], "n": [1, 2, 3], "x": [0.5, 1.5, 2.5]})
    for strategy in ("on_window_update", "on_window_close"):
        run = plan_of(EACH_KIND[kind], strategy, named).run(table)
        run.table(), run.changelog(), run.dropped()


def flights_by_route(group: Callable[..., sk.Plan] = sk.group_by_key) -> sk.Plan:
    """The start of a plan over the sample of flights: airline at airport, in order of departure."""
    places = {"partition": "partition", "offset": "offset"}
    return group("carrier", "origin", sep="@", timestamp="scheduled", unit=None, timezone="UTC", **places)
