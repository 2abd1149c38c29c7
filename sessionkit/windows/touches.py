"""What every processor is handed, the aggregation's functions, and what one of windows of fixed length tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Aggregates(NamedTuple):
    """The three functions over all named aggregations at once; an aggregate is a value, or a dict by name."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any]
    is_null: Callable[[Any], bool]


class WindowTouch(NamedTuple):
    """One window that a record met: what became of it (`Effect` of the trace), its bounds and its new contents."""

    effect: int
    start_ms: int
    end_ms: int
    aggregate: Any = None
    timestamp_ms: int = -1  # the largest record timestamp in the window
    source_start_ms: int = -1  # start of the window that it is a copy of
    old: Any = None  # what it held before
    stored: bool = True  # False: the store refused it as expired
