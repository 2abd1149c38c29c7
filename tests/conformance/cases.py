"""One case of the oracle's format through sessionkit: plan, run, and the answer in the oracle's format."""

import base64
import dataclasses
import gzip
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.deployed.lives import memory_store
from sessionkit.errors import BufferFull, InvalidArgument, NotBuilt, SessionkitError
from sessionkit.records.batch import read_records
from sessionkit.stores import store_class
from sessionkit.stores.contract import StoredWindow
from sessionkit.trace.window_trace import WindowTrace
from tests.deployments import processor_only
from tests.differential.aggregations import AGGREGATIONS as MORE_AGGREGATIONS
from tests.kinds import group_in_ms, in_ms

WALL_CLOCK_START_MS = 1_700_000_000_000


def _rocksdb_store(plan: sk.Plan, retention_ms: int, folder: str) -> Any:
    """The store on disk that Kafka's DSL would choose."""
    windows = plan.windows
    on_close = plan._strategy == "on_window_close"
    options: dict[str, Any] = {"directory": folder, "retention": in_ms(retention_ms), "time_ordered": on_close}
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
BUILT_INS: dict[str, Callable[[], sk.aggregations.Aggregation]] = {
    "sum": lambda: sk.sum("value"),
    "min": lambda: sk.min("value"),
    "max": lambda: sk.max("value"),
}
ALL_BUILT_INS = {
    "count": sk.count(),
    **{name: getattr(sk, name)("value") for name in ("sum", "min", "max", "first", "last", "collect")},
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
    window = case["window"]
    grace = window.get("grace_ms", 0)
    if window["kind"] == "session":
        return sk.SessionWindows(inactivity_gap_ms=window["gap_ms"], grace_ms=grace)
    if window["kind"] == "sliding":
        return sk.SlidingWindows(time_difference_ms=window["difference_ms"], grace_ms=grace)
    return sk.TimeWindows(size_ms=window["size_ms"], advance_ms=window.get("advance_ms"), grace_ms=grace)


def plan_of(case: dict[str, Any]) -> sk.Plan:
    bad_time = "refuse" if case.get("negative_timestamps") == "fail" else "drop"
    plan = (
        group_in_ms("key", timestamp="timestamp", partition="partition", offset="offset", on_bad_time=bad_time)
        .windowed_by(windows_of(case))
        .emit(STRATEGIES[case["emit"]])
        .aggregate(**_aggregations_of(case))
    )
    if "suppress" not in case:
        return plan
    told = dict(case["suppress"])
    if "wait_ms" not in told:
        return plan.suppress("until_window_closes", **told)
    return plan.suppress("until_time_limit", in_ms(told.pop("wait_ms")), **told)


def _aggregations_of(case: dict[str, Any]) -> dict[str, Any]:
    name, kind = case["aggregation"], case["window"]["kind"]
    if name == "all_built_ins":
        return ALL_BUILT_INS
    if case.get("built_in"):
        return {"value": BUILT_INS[name]()}
    # sliding windows drop null values, so there the plan has to say where the values are
    return {"value": COUNT_VALUES() if name == "count" and kind == "sliding" else AGGREGATIONS[name]()}


KEY_TYPES = {"text": pa.string(), "int": pa.int64(), "bytes": pa.binary()}


def key_of(case: dict[str, Any], text: str | None) -> Any:
    """A key of the case, which JSON has as text, as what it is."""
    kind = case.get("keys", "text")
    if text is None or kind == "text":
        return text
    return int(text) if kind == "int" else base64.b64decode(text)


def key_text(key: Any) -> str | None:
    """A key as JSON has it."""
    return base64.b64encode(key).decode() if isinstance(key, bytes) else key if key is None else str(key)


def frame_of(case: dict[str, Any], start: int = 0, stop: int | None = None) -> pa.Table:
    """The case's records from `start` up to `stop`."""
    types = {"value": pa.int64(), "timestamp": pa.int64()}
    records = case["records"][start:stop]
    columns = {name: pa.array([r[name] for r in records], kind) for name, kind in types.items()}
    keys = pa.array([key_of(case, r["key"]) for r in records], KEY_TYPES[case.get("keys", "text")])
    partitions = pa.array([r.get("partition", 0) for r in records], pa.int64())
    offsets = pa.array(range(start, start + len(records)), pa.int64())  # rising in each partition, with gaps
    return pa.table({"key": keys, **columns, "partition": partitions, "offset": offsets})


def run_case(
    case: dict[str, Any], implementation: str = "processor", retention_ms: int | None = None
) -> dict[str, Any]:
    """The answer to a case, by the processor; "deployed": by kernels where these can play it.

    "kernel" is a run without a deployment, with the retention nearest to the case's.
    """
    try:
        result = _answer(case, implementation, retention_ms)
    except SessionkitError as error:
        first = _failed_at(case, error)
        before = run_case({**case, "records": case["records"][:first]}, implementation, retention_ms) if first else {}
        failure = {"after_record": first, "class": type(error).__name__, "message": str(error)}
        return {"id": case["id"], "per_record": before.get("per_record", []), "error": before.get("error", failure)}
    return {"id": case["id"], **result}


def _failed_at(case: dict[str, Any], error: SessionkitError) -> int:
    """The record at which Kafka fails: a full buffer, one before 1970, or one whose window would end beyond 64 bits."""
    if isinstance(error, BufferFull):
        found = re.search(r"offset (\d+)", str(error))
        assert found is not None
        return int(found[1])
    reach = case["window"].get("size_ms", 0)
    bad = (i for i, r in enumerate(case["records"]) if r["timestamp"] < 0 or r["timestamp"] + reach >= 2**63)
    return next(bad, 0)


def _answer(case: dict[str, Any], implementation: str, retention_ms: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sessionkit-case-") as folder:
        return _answer_with(case, implementation, retention_ms, folder)


def _answer_with(case: dict[str, Any], implementation: str, retention_ms: int | None, folder: str) -> dict[str, Any]:
    built_in = implementation == "deployed" and case["aggregation"] in BUILT_INS
    plan = plan_of({**case, "built_in": True} if built_in else case)
    if implementation == "kernel":
        store = memory_store(plan.windows, None)
        smallest = plan.windows.retention_ms(None)
        wanted = case["window"].get("retention_ms", smallest) if retention_ms is None else retention_ms
        runs = [plan.run(frame_of(case), store=store, retention=in_ms(max(smallest, wanted - 1)))]
        asked = store
    else:
        with nullcontext() if implementation == "deployed" else processor_only():
            runs, store = _runs_as_kafka(plan, case, retention_ms, folder)
        asked = runs[-1]._store
    for run in runs:
        run.trace.check()
    length = plan.windows.ends_ms(0) if plan.windows.holds == "windows" else None
    partitions = range(case.get("partitions", 1))
    answer = {
        "per_record": per_record(runs),
        "final_store": [
            _stored(each, length) | ({"partition": p} if len(partitions) > 1 else {})
            for p in partitions
            for each in asked.all(partition=p)
        ],
        **({"query_results": [_query(case, asked, q, length) for q in case["queries"]]} if "queries" in case else {}),
        "metrics": {
            f"{group}/{name}": sum(run.metrics()[name] for run in runs)
            for group, name in (
                ("stream-processor-node-metrics", "window-aggregate-final-emit-total"),
                ("stream-task-metrics", "dropped-records-total"),
            )
        },
    }  # fmt: skip
    if "restarts" in case:  # Kafka counts anew with each start
        answer["metrics"] = {}
    store.close()
    return answer


def restarts_of(case: dict[str, Any]) -> list[tuple[int, str]]:
    """(record, kind) of each restart: the last record before it, and how the store is found after it."""
    told = ((each, "disk") if isinstance(each, int) else (each[0], each[1]) for each in case.get("restarts", ()))
    return [(record, kind) for record, kind in told if record < len(case["records"])]


def _runs_as_kafka(
    plan: sk.Plan, case: dict[str, Any], retention_ms: int | None, folder: str
) -> tuple[list[sk.Run], Any]:
    """(a run for each life of the task, the store)."""
    retention_ms = retention_of(case, plan) if retention_ms is None else plan.windows.retention_ms(in_ms(retention_ms))
    store = STORES[case["store"]](plan, retention_ms, folder)
    return list(lives_of(case, plan, store)), store


def lives_of(case: dict[str, Any], plan: sk.Plan, store: Any = None) -> Sequence[sk.Run]:
    """A run for each life of the task; without a store its rules are played in memory, by kernels if they can."""
    kept = None if store is not None else in_ms(retention_of(case, plan))
    how = dataclasses.replace(deployment_of(case), retention=kept)
    advances = accumulate(record.get("wall_advance_ms", 0) for record in case["records"])
    batch = read_records(frame_of(case), plan.source, plan._value_columns())
    run = plan._run_deployed(batch, how, store, clock=[WALL_CLOCK_START_MS + ms for ms in advances])
    assert run.deployed is not None
    return run.deployed.lives


def retention_of(case: dict[str, Any], plan: sk.Plan) -> int:
    """How long the case's store keeps a window."""
    return plan._complete_windows.retention_ms(in_ms(case["window"].get("retention_ms")))


def deployment_of(case: dict[str, Any]) -> sk.Deployment:
    """The case's deployment, but for the retention, which its store has."""
    caching = case.get("caching", False)
    return sk.Deployment.plain(
        store={"in_memory": "memory"}.get(case["store"], case["store"]),
        caching=f"{caching['bytes']}B" if isinstance(caching, dict) else caching,
        commit_every=list(case.get("commit_after", range(len(case["records"])))),
        emit_interval=in_ms(case.get("emit_interval_ms", 0)),
        restarts=restarts_of(case),
    )


def per_record(runs: Sequence[sk.Run]) -> list[dict[str, Any]]:
    """What each record came to, as often as it was read."""
    steps: list[dict[str, Any]] = []
    dropped = 0
    for run in runs:
        offsets = [] if run._outcome.batch.given_offset is None else run._outcome.batch.given_offset.tolist()
        mine: dict[int, dict[str, Any]] = {offset: {"outputs": [], "dropped_total": 0} for offset in offsets}
        rows = run.changelog()
        value = _shown if "value" in rows.column_names else _shown_together
        flushed = [row.flushed for row in run.deployed.forwarded] if run.deployed is not None else []
        for place, row in enumerate(rows.to_pylist()):
            out = {"key": key_text(row["key"]), "window_start": row["window_start_ms"]}
            answer = {**out, "window_end": row["window_end_ms"], "value": value(row), "timestamp": row["timestamp_ms"]}
            where = "flushed" if flushed and flushed[place] else "outputs"
            mine[row["offset"]].setdefault(where, []).append(answer)
        drops = np.zeros(len(mine), np.int64)
        _count_drops(run, drops)
        for step, total in zip(mine.values(), np.cumsum(drops).tolist(), strict=True):
            step["dropped_total"] = dropped + total
        dropped += int(drops.sum())
        steps += mine.values()
    return steps


def _count_drops(run: sk.Run, drops: Any) -> None:
    trace = run.trace
    if isinstance(trace, WindowTrace):
        np.add.at(drops, trace.missed.record, 1)
        drops += trace.decision > LATE
    else:
        drops += trace.decision >= LATE
    np.add.at(drops, [] if run.deployed is None else list(run.deployed.refused), 1)


def _shown(row: dict[str, Any]) -> Any:
    return row["value"]


def _shown_together(row: dict[str, Any]) -> Any:
    """All built-ins as the oracle writes them; a tombstone has none."""
    return None if row["count"] is None else json.dumps([row[name] for name in ALL_BUILT_INS], separators=(",", ":"))


def _aggregate(aggregate: Any) -> Any:
    return _shown_together(aggregate) if isinstance(aggregate, dict) else aggregate


def _stored(each: Any, length_ms: int | None) -> dict[str, Any]:
    key, value = key_text(each.key), _aggregate(each.aggregate)
    if isinstance(each, StoredWindow):
        start = each.window_start_ms
        bounds = {"window_start": start, "window_end": start + int(length_ms or 0)}
        return {"key": key, **bounds, "value": value, "timestamp": each.timestamp_ms}
    bounds = {"window_start": each.window_start_ms, "window_end": each.window_end_ms}
    return {"key": key, **bounds, "value": value}


def _query(case: dict[str, Any], store: Any, query: dict[str, Any], length_ms: int | None) -> Any:
    key, low, high = (key_of(case, query.get(name)) for name in ("key", "key_from", "key_to"))
    times = (query.get("from", 0), query.get("to", 0))
    op, place = query["op"], {"partition": query.get("partition", 0)}
    try:
        if op == "fetch_session":
            return {"value": _aggregate(store.fetch_session(key, *times, **place))}
        if length_ms is None:
            return [_stored(s, None) for s in _session_calls(store, key, low, high, times, place)[op]()]
        if op == "fetch_one":
            found = store.fetch_window(key, times[0], **place)
            if found is None:
                return {"value": None}
            return {"value": _aggregate(found.aggregate), "timestamp": found.timestamp_ms}
        answers = _window_calls(store, key, low, high, times, place)[op]()
        if op in ("fetch", "backward_fetch"):
            return [
                {"window_start": w[0], "value": _aggregate(w.aggregate), "timestamp": w.timestamp_ms} for w in answers
            ]
        return [_stored(w, length_ms) for w in answers]
    except InvalidArgument:
        return {"error": "IllegalArgumentException"}
    except NotBuilt:
        return {"error": "UnsupportedOperationException"}


def _session_calls(
    store: Any, key: Any, low: Any, high: Any, times: tuple[int, int], place: dict[str, int]
) -> dict[str, Callable[[], Any]]:
    return {
        "fetch": lambda: store.fetch(key, **place),
        "backward_fetch": lambda: store.backward_fetch(key, **place),
        "fetch_keys": lambda: store.fetch(low, high, **place),
        "backward_fetch_keys": lambda: store.backward_fetch(low, high, **place),
        "find_sessions": lambda: store.find_sessions(key, *times, **place),
        "backward_find_sessions": lambda: store.backward_find_sessions(key, *times, **place),
        "find_sessions_keys": lambda: store.find_sessions_in_keys(low, high, *times, **place),
        "backward_find_sessions_keys": lambda: store.backward_find_sessions_in_keys(low, high, *times, **place),
        "find_sessions_by_end": lambda: store.find_sessions_by_end(*times, **place),
    }


def _window_calls(
    store: Any, key: Any, low: Any, high: Any, times: tuple[int, int], place: dict[str, int]
) -> dict[str, Callable[[], Any]]:
    return {
        "fetch": lambda: store.fetch(key, *times, **place),
        "backward_fetch": lambda: store.backward_fetch(key, *times, **place),
        "fetch_keys": lambda: store.fetch_in_keys(low, high, *times, **place),
        "backward_fetch_keys": lambda: store.backward_fetch_in_keys(low, high, *times, **place),
        "fetch_all": lambda: store.fetch_all(*times, **place),
        "backward_fetch_all": lambda: store.backward_fetch_all(*times, **place),
        "all": lambda: store.all(**place),
        "backward_all": lambda: store.backward_all(**place),
    }
