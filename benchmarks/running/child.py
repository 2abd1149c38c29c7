"""What the process of a job does. Nothing but the standard library and psutil is loaded before its first call."""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

from benchmarks.running.memory import peak_mib, processor_seconds


def run(asked: dict[str, Any]) -> dict[str, float]:
    """Calls the job once and then as often as it is asked; gives the fields of `Measured`."""
    module, name = asked["job"].split(".")
    call = getattr(importlib.import_module(f"benchmarks.jobs.{module}"), name)(asked["path"], **asked["options"])
    calls, result = [], None
    for _ in range(asked["repeats"] + 1):
        result = None  # the pages of one result are free before the next is made
        cpu_before, begun = processor_seconds(), time.perf_counter()
        result = call()
        calls.append((time.perf_counter() - begun, processor_seconds() - cpu_before))
    warm, cpu = min(calls[1:] or calls)
    rows, records, total = _summary(result)
    found = {"first": calls[0][0], "warm": warm, "cores": cpu / warm, "peak_mib": peak_mib()}
    return {**found, "rows": rows, "records": records, "total": total}


def _summary(result: Any) -> tuple[int, int, float]:
    """(rows, records in them, their sum) of a table of any of the libraries, or of the first or the first two alone."""
    if isinstance(result, int):
        return result, -1, 0.0
    if isinstance(result, tuple):
        return (*result, 0.0)
    columns = getattr(result, "column_names", getattr(result, "columns", ()))
    if "count" not in columns:
        return len(result), -1, 0.0
    total = _sum(result["total"]) if "total" in columns and _is_summed(result["total"]) else 0
    return len(result), int(_sum(result["count"])), float(total)


def _is_summed(column: Any) -> bool:
    return "list" not in str(getattr(column, "type", getattr(column, "dtype", ""))).lower()


def _sum(column: Any) -> Any:
    if hasattr(column, "sum"):
        return column.sum()
    import pyarrow.compute as pc

    return pc.sum(column).as_py()


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
