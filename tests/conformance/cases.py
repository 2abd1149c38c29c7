"""One case of the oracle's format through sessionkit: plan, run, and the answer in the oracle's format."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

import sessionkit as sk
from sessionkit.contracts import StoredWindow
from sessionkit.decisions import LATE
from sessionkit.errors import InvalidArgument, NotBuilt, SessionkitError
from sessionkit.processing import memory_store
from sessionkit.stores import store_class
from sessionkit.window_trace import WindowTrace
from tests.differential.aggregations import AGGREGATIONS as MORE_AGGREGATIONS

WALL_CLOCK_START_MS = 1_700_000_000_000


def _rocksdb_store(plan: sk.Plan, retention_ms: int, folder: str) -> Any:
    """The store on disk that Kafka's DSL would choose."""
    windows = plan.windows
    on_close = plan.strategy == "on_window_close"
    options: dict[str, Any] = {"directory": folder, "retention": retention_ms, "time_ordered": on_close}
    if not isinstance(windows, sk.SessionWindows):
        options["index"] = on_close and isinstance(windows, sk.SlidingWindows)
        return store_class("rocksdb", "windows")(name="case", **options)
    return store_class("rocksdb", "sessions")(name="case", **options)


STORES: dict[str, Callable[[sk.Plan, int, str], Any]] = {
    "in_memory": lambda plan, retention_ms, folder: memory_store(plan.windows, retention_ms),
    "rocksdb": _rocksdb_store,
}
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
    **MORE_AGGREGATIONS,
}


def COUNT_VALUES() -> Any:
    return _own(lambda: 0, lambda v, a: a + 1, lambda a, b: a + b)


def _own(initializer: Any, add: Any, merge: Any) -> Any:
    return sk.aggregation(
        initializer=initializer,
        aggregator=lambda key, value, aggregate: add(value, aggregate),
        merger=lambda key, older, newer: merge(older, newer),
        value="value",
    )


def unsupported(case: dict[str, Any]) -> str | None:
    """Why the case asks for something that is not built yet; None if it does not."""
    return f"store {case['store']}" if case["store"] not in STORES else None


def windows_of(case: dict[str, Any]) -> Any:
    """The case's windows."""
    window = case["window"]
    grace = window.get("grace_ms", 0)
    if window["kind"] == "session":
        return sk.SessionWindows(inactivity_gap=window["gap_ms"], grace=grace)
    if window["kind"] == "sliding":
        return sk.SlidingWindows(time_difference=window["difference_ms"], grace=grace)
    return sk.TimeWindows(size=window["size_ms"], advance=window.get("advance_ms"), grace=grace)


def plan_of(case: dict[str, Any]) -> sk.Plan:
    """The case as a plan."""
    name, kind = case["aggregation"], case["window"]["kind"]
    # sliding windows drop null values, so there the plan has to say where the values are
    aggregation = COUNT_VALUES() if name == "count" and kind == "sliding" else AGGREGATIONS[name]()
    bad_time = "refuse" if case.get("negative_timestamps") == "fail" else "drop"
    return (
        sk.group_by_key("key", timestamp="timestamp", unit="ms", on_bad_time=bad_time)
        .windowed_by(windows_of(case))
        .emit(STRATEGIES[case["emit"]])
        .aggregate(value=aggregation)
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
        first = _first_bad(case)
        result = _answer(case, records[:first], implementation, retention_ms) if first else {"per_record": []}
        kept = {"per_record": result["per_record"]}
        failure = {"after_record": first, "class": type(error).__name__, "message": str(error)}
        return {"id": case["id"], **kept, "error": failure}
    return {"id": case["id"], **result}


def _first_bad(case: dict[str, Any]) -> int:
    """The record at which Kafka fails: one before 1970, or one whose window would end beyond 64 bits."""
    reach = case["window"].get("size_ms", 0)
    bad = (i for i, r in enumerate(case["records"]) if r["timestamp"] < 0 or r["timestamp"] + reach >= 2**63)
    return next(bad, 0)


def _answer(
    case: dict[str, Any], records: list[dict[str, Any]], implementation: str, retention_ms: int | None
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sessionkit-case-") as folder:
        return _answer_with(case, records, implementation, retention_ms, folder)


def _answer_with(
    case: dict[str, Any], records: list[dict[str, Any]], implementation: str, retention_ms: int | None, folder: str
) -> dict[str, Any]:
    plan = plan_of(case)
    if implementation == "kernel":
        store = memory_store(plan.windows, None)
        smallest = plan.windows.retention_ms(None)
        wanted = case["window"].get("retention_ms", smallest) if retention_ms is None else retention_ms
        run = plan.run(frame_of(records), store=store, retention=max(smallest, wanted - 1))
    else:
        run, store = _run_as_kafka(plan, case, records, retention_ms, folder)
    run.trace.check()
    length = getattr(plan.windows, "length_ms", None)
    total = "window-aggregate-final-emit-total"
    answer = {
        "per_record": _per_record(run, len(records)),
        "final_store": [_stored(each, length) for each in store.all()],
        **({"query_results": [_query(store, q, length) for q in case["queries"]]} if "queries" in case else {}),
        "metrics": {
            f"stream-processor-node-metrics/{total}": run.metrics()[total],
            "stream-task-metrics/dropped-records-total": run.metrics()["dropped-records-total"],
        },
    }
    getattr(store, "store", store).close()
    return answer


def _run_as_kafka(
    plan: sk.Plan, case: dict[str, Any], records: list[dict[str, Any]], retention_ms: int | None, folder: str
) -> tuple[sk.Run, Any]:
    """(the run, its store as Kafka's queries see it)."""
    retention_ms = case["window"].get("retention_ms") if retention_ms is None else retention_ms
    retention_ms = plan.windows.retention_ms(retention_ms)
    store = STORES[case["store"]](plan, retention_ms, folder)
    commits = case.get("commit_after", range(len(records)))
    clock = list(accumulate(record.get("wall_advance_ms", 0) for record in records))
    run = plan.run(
        frame_of(records),
        rules="kafka",
        store=store,
        caching=case["caching"],
        commit_every=[i for i in commits if i < len(records)],
        emit_interval=case.get("emit_interval_ms", 0),
        wall_clock=[WALL_CLOCK_START_MS + ms for ms in clock],
    )
    return run, run.store


def _per_record(run: sk.Run, count: int) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"outputs": [], "dropped_total": 0} for _ in range(count)]
    flushed = [row.flushed for row in run.forwarded] if run.forwarded is not None else []
    for place, row in enumerate(run.changelog().to_pylist()):
        out = {"key": row["key"], "window_start": row["window_start_ms"], "window_end": row["window_end_ms"]}
        where = "flushed" if flushed and flushed[place] else "outputs"
        answer = {**out, "value": row["value"], "timestamp": row["timestamp_ms"]}
        steps[row["offset"]].setdefault(where, []).append(answer)
    trace, drops = run.trace, np.zeros(count, np.int64)
    if isinstance(trace, WindowTrace):
        np.add.at(drops, trace.missed.record, 1)
        drops += trace.decision > LATE
    else:
        drops += trace.decision >= LATE
    np.add.at(drops, list(run.refused), 1)
    for step, dropped in zip(steps, np.cumsum(drops).tolist(), strict=True):
        step["dropped_total"] = dropped
    return steps


def _stored(each: Any, length_ms: int | None) -> dict[str, Any]:
    if isinstance(each, StoredWindow):
        start = each.window_start_ms
        bounds = {"window_start": start, "window_end": start + int(length_ms or 0)}
        return {"key": each.key, **bounds, "value": each.aggregate, "timestamp": each.timestamp_ms}
    bounds = {"window_start": each.window_start_ms, "window_end": each.window_end_ms}
    return {"key": each.key, **bounds, "value": each.aggregate}


def _query(store: Any, query: dict[str, Any], length_ms: int | None) -> Any:
    key, low, high = (query.get(name) for name in ("key", "key_from", "key_to"))
    times = (query.get("from", 0), query.get("to", 0))
    op = query["op"]
    try:
        if op == "fetch_session":
            return {"value": store.fetch_session(key, *times)}
        if length_ms is None:
            return [_stored(s, None) for s in _session_calls(store, key, low, high, times)[op]()]
        if op == "fetch_one":
            found = store.fetch_window(key, times[0])
            return {"value": None} if found is None else {"value": found.aggregate, "timestamp": found.timestamp_ms}
        answers = _window_calls(store, key, low, high, times)[op]()
        if op in ("fetch", "backward_fetch"):
            return [{"window_start": w[0], "value": w.aggregate, "timestamp": w.timestamp_ms} for w in answers]
        return [_stored(w, length_ms) for w in answers]
    except InvalidArgument:
        return {"error": "IllegalArgumentException"}
    except NotBuilt:
        return {"error": "UnsupportedOperationException"}


def _session_calls(store: Any, key: Any, low: Any, high: Any, times: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    return {
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


def _window_calls(store: Any, key: Any, low: Any, high: Any, times: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    return {
        "fetch": lambda: store.fetch(key, *times),
        "backward_fetch": lambda: store.backward_fetch(key, *times),
        "fetch_keys": lambda: store.fetch_in_keys(low, high, *times),
        "backward_fetch_keys": lambda: store.backward_fetch_in_keys(low, high, *times),
        "fetch_all": lambda: store.fetch_all(*times),
        "backward_fetch_all": lambda: store.backward_fetch_all(*times),
        "all": store.all,
        "backward_all": store.backward_all,
    }
