"""What a page holds of a run for its script: records, lengths, names, and the clock."""

from __future__ import annotations

from typing import Any

from sessionkit.trace.trace import Trace
from sessionkit.views.page.columns import packed, record_columns, result_columns
from sessionkit.views.page.sample import Sample
from sessionkit.windows.contract import WindowKind


def lengths_of(windows: WindowKind, retention_ms: int) -> dict[str, Any]:
    """The lengths of the windows as the page's engine takes them.

    Args:
        retention_ms: how long a session can be found; it counts where it is longer than the least, gap + grace.
    """
    parameters = windows.arguments()[1]
    if "inactivity_gap_ms" in parameters:
        gap, grace = parameters["inactivity_gap_ms"], parameters["grace_ms"]
        kept = retention_ms if retention_ms > gap + grace else 0
        return {"kind": "session", "gap": gap, "grace": grace, "retention": kept}
    size = parameters["size_ms"]
    return {
        "kind": "time",
        "size": size,
        "advance": parameters.get("advance_ms", size),
        "grace": parameters["grace_ms"],
    }


def engine_data(run: Any, trace: Trace, windows: WindowKind, chosen: Sample) -> dict[str, Any]:
    """The records, the lengths, and what is computed of them."""
    columns, told = record_columns(trace, chosen)
    results = result_columns(run.plan.aggregations, run.outcome.batch.values, chosen)
    layout, data = packed({**columns, **results.columns})
    return {
        "layout": layout,
        "data": data,
        "told": told,
        "lengths": lengths_of(windows, getattr(trace, "retention_ms", 0)),
        "results": results.named,
        "leftOut": results.left_out,
    }
