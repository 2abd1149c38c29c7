"""One case of the oracle's format through sessionkit: plan, run, and the answer in the oracle's format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

import sessionkit as sk
from sessionkit.errors import InvalidArgument, SessionkitError
from sessionkit.stores.memory import MemorySessionStore
from sessionkit.trace import LATE

STRATEGIES = {"on_update": "on_window_update", "on_close": "on_window_close"}


def open_text(path: str | Path, mode: str = "r") -> TextIO:
    """The file as text, through gzip where its name says so."""
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    return opener(path, mode + "t", encoding="utf-8")


def read_cases(path: str | Path) -> Iterator[dict[str, Any]]:
    """The cases of a file."""
    with open_text(path) as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _least(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else min(a, b)


def _greatest(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else max(a, b)


def _join(a: str, b: str) -> str:
    return f"{a},{b}" if a and b else a or b


# The oracle's own aggregations, which are Java functions; `count` is the built-in on both sides.
AGGREGATIONS: dict[str, Callable[[], sk.aggregations.Aggregation]] = {
    "count": sk.count,
    "sum": lambda: _own(lambda: 0, lambda v, a: a if v is None else a + v, lambda a, b: a + b),
    "min": lambda: _own(lambda: None, lambda v, a: _least(a, v), _least),
    "max": lambda: _own(lambda: None, lambda v, a: _greatest(a, v), _greatest),
    "collect": lambda: _own(str, lambda v, a: _join(a, "null" if v is None else str(v)), _join),
}


def _own(initializer: Any, add: Any, merge: Any) -> Any:
    return sk.aggregation(
        initializer=initializer,
        aggregator=lambda key, value, aggregate: add(value, aggregate),
        merger=lambda key, older, newer: merge(older, newer),
        value="value",
    )


def unsupported(case: dict[str, Any]) -> str | None:
    """Why the case asks for something that is not built yet; None if it does not."""
    if case["window"]["kind"] != "session":
        return f"window kind {case['window']['kind']}"
    if case["store"] != "in_memory":
        return f"store {case['store']}"
    if case["caching"]:
        return "caching"
    return "emit interval" if "emit_interval_ms" in case else None


def plan_of(case: dict[str, Any]) -> sk.Plan:
    """The case as a plan."""
    window = case["window"]
    bad_time = "refuse" if case.get("negative_timestamps") == "fail" else "drop"
    return (
        sk.group_by_key("key", timestamp="timestamp", unit="ms", on_bad_time=bad_time)
        .windowed_by(sk.SessionWindows(inactivity_gap=window["gap_ms"], grace=window.get("grace_ms", 0)))
        .emit(STRATEGIES[case["emit"]])
        .aggregate(value=AGGREGATIONS[case["aggregation"]]())
    )


def frame_of(records: list[dict[str, Any]]) -> pa.Table:
    """The case's records."""
    types = {"key": pa.string(), "value": pa.int64(), "timestamp": pa.int64()}
    return pa.table({name: pa.array([r[name] for r in records], kind) for name, kind in types.items()})


def run_case(
    case: dict[str, Any], implementation: str = "processor", retention_ms: int | None = None
) -> dict[str, Any]:
    """The answer to a case. The kernel runs under rules="sessionkit" with the retention nearest to the case's."""
    records = case["records"]
    try:
        result = _answer(case, records, implementation, retention_ms)
    except SessionkitError as error:
        first = next((i for i, r in enumerate(records) if r["timestamp"] < 0), 0)
        result = _answer(case, records[:first], implementation, retention_ms) if first else {"per_record": []}
        kept = {"per_record": result["per_record"]}
        failure = {"after_record": first, "class": type(error).__name__, "message": str(error)}
        return {"id": case["id"], **kept, "error": failure}
    return {"id": case["id"], **result}


def _answer(
    case: dict[str, Any], records: list[dict[str, Any]], implementation: str, retention_ms: int | None
) -> dict[str, Any]:
    plan, window = plan_of(case), case["window"]
    smallest = window["gap_ms"] + window.get("grace_ms", 0)
    retention_ms = window.get("retention_ms", smallest) if retention_ms is None else retention_ms
    kernel = implementation == "kernel"
    if kernel:
        store = MemorySessionStore()
        run = plan.run(frame_of(records), store=store, retention=max(smallest, retention_ms - 1))
    else:
        store = MemorySessionStore(retention=retention_ms)
        run = plan.run(frame_of(records), rules="kafka", store=store)
    run.trace.check()
    return {
        "per_record": _per_record(run, len(records)),
        "final_store": [_session(s, {"value": s.aggregate}) for s in store.all()],
        **({"query_results": [_query(store, q) for q in case["queries"]]} if "queries" in case else {}),
        "metrics": {
            "stream-processor-node-metrics/window-aggregate-final-emit-total": run.metrics()[
                "window-aggregate-final-emit-total"
            ],
            "stream-task-metrics/dropped-records-total": run.metrics()["dropped-records-total"],
        },
    }


def _per_record(run: sk.Run, count: int) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"outputs": [], "dropped_total": 0} for _ in range(count)]
    for row in run.changelog().to_pylist():
        out = {"key": row["key"], "window_start": row["window_start_ms"], "window_end": row["window_end_ms"]}
        steps[row["offset"]]["outputs"].append({**out, "value": row["value"], "timestamp": row["timestamp_ms"]})
    dropped = 0
    for i, decision in enumerate(run.trace.decision.tolist()):
        dropped += int(decision >= LATE) + run.refused.count(i)
        steps[i]["dropped_total"] = dropped
    return steps


def _session(session: Any, value: dict[str, Any]) -> dict[str, Any]:
    bounds = {"window_start": session.window_start_ms, "window_end": session.window_end_ms}
    return {"key": session.key, **bounds, **value}


def _query(store: MemorySessionStore, query: dict[str, Any]) -> Any:
    key, low, high = (query.get(name) for name in ("key", "key_from", "key_to"))
    times = (query.get("from", 0), query.get("to", 0))
    calls: dict[str, Callable[[], Any]] = {
        "fetch": lambda: store.fetch(key),
        "backward_fetch": lambda: store.backward_fetch(key),
        "fetch_keys": lambda: store.fetch(low, high),
        "backward_fetch_keys": lambda: store.backward_fetch(low, high),
        "find_sessions": lambda: store.find_sessions(key, *times),
        "backward_find_sessions": lambda: store.backward_find_sessions(key, *times),
        "find_sessions_keys": lambda: store.find_sessions_in_keys(low, high, *times),
        "backward_find_sessions_keys": lambda: store.backward_find_sessions_in_keys(low, high, *times),
        "find_sessions_by_end": lambda: store.find_sessions_by_end(*times),
    }
    try:
        if query["op"] == "fetch_session":
            return {"value": store.fetch_session(key, *times)}
        return [_session(s, {"value": s.aggregate}) for s in calls[query["op"]]()]
    except InvalidArgument:
        return {"error": "IllegalArgumentException"}
