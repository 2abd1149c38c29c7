"""A plain example of each kind of window, and a plan over it, for tests that need no lengths of their own."""

from __future__ import annotations

from typing import Any

import sessionkit as sk


def each_kind(unit_ms: int = 1) -> dict[str, Any]:
    """One of each kind, in a unit of so many milliseconds."""
    grace = 5 * unit_ms
    return {
        "session": sk.SessionWindows(inactivity_gap=5 * unit_ms, grace=2 * grace),
        "tumbling": sk.TimeWindows(size=10 * unit_ms, grace=grace),
        "hopping": sk.TimeWindows(size=10 * unit_ms, advance=3 * unit_ms, grace=grace),
        "sliding": sk.SlidingWindows(time_difference=10 * unit_ms, grace=grace),
    }


EACH_KIND = each_kind()


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
    grouped = sk.group_by_key(key, timestamp=timestamp, **{"unit": "ms"} | source, times="ms")
    return grouped.windowed_by(windows).emit(strategy).aggregate(**(named or {"count": sk.count()}))
