"""Where two answers to one case differ first."""

from collections import Counter
from typing import Any, NamedTuple

from sessionkit.records.keys import key_bytes
from tests.conformance.cases import key_of
from tests.differential.draw_queries import in_bounds


class Difference(NamedTuple):
    """The first field that differs, in the order in which things happen."""

    where: str
    ours: Any
    kafka: Any
    record: int | None = None


def fault_of(case: dict[str, Any], kafka: dict[str, Any]) -> str | None:
    """The fault of its own by which Kafka 4.3.1 or 3.9.2 failed; None if it did not, or rightly.

    sessionkit may fail at the same record or go on.
    """
    error = kafka.get("error", {"class": "", "message": ""})
    failed = (error["class"], error["message"])
    window, is_cached = case["window"], bool(case["caching"])
    # a cached RocksDB store looks into a segment before time 0, as sessions do where time - gap <= -60000
    looks_before_0 = is_cached and case["store"] == "rocksdb" and window.get("gap_ms", 0) >= 60_000
    # a cached store under sliding windows meets a window that an aggregator's null has deleted since the last commit
    meets_null = is_cached and window["kind"] == "sliding" and case["aggregation"] in MAY_BE_NULL
    if looks_before_0 and failed[0] == "IllegalStateException" and "segment interval has changed" in failed[1]:
        return "cached RocksDB looks before time 0"
    is_null = any(f'"{variable}.value" is null' in failed[1] for variable in HOLD_A_WINDOW)
    if meets_null and failed[0] == "NullPointerException" and is_null:
        return "cached sliding windows meet a deleted one"
    if window.get("gap_ms") == 0 and failed == ("IllegalArgumentException", "Gap time cannot be zero or negative."):
        return "3.9 refuses a gap of 0"
    return None


# the window that is looked at: in 4.3 the iterator of a store fails at it, in 3.9 the processor that it was given to
HOLD_A_WINDOW = ("next", "windowBeingProcessed")
MAY_BE_NULL = ("min", "max", "reduce", "fading")


def excuse_of(case: dict[str, Any], kafka: dict[str, Any], place: int, mine: Any) -> str | None:
    """Why Kafka answered query `place` otherwise than `mine`, if that is a fault of its own; it is proved each time.

    What Kafka itself gives of its whole store, or of the same range with bounds in which its arithmetic holds, has to
    come to what sessionkit said.
    """
    query, theirs = case["queries"][place], kafka["query_results"][place]
    kind = _kind_of_fault(case, query, theirs)
    return kind if kind is not None and is_proved(case, kafka, query, mine) else None


def _kind_of_fault(case: dict[str, Any], query: dict[str, Any], theirs: Any) -> str | None:
    is_cached, on_disk = case["caching"], case["store"] == "rocksdb"
    failed = isinstance(theirs, dict) and theirs.get("error")
    if failed and failed not in ("IllegalStateException", "IllegalArgumentException"):
        return None
    if query != in_bounds(query):
        return "bounds below 0 or near 2^63"
    if is_cached and on_disk:
        return "the cache over RocksDB takes wrong segments"
    if query["op"].endswith("keys") and (on_disk or is_cached) and _has_low_bytes(case, query):
        return "ranges of keys with NUL bytes, or empty ones"
    return None


def _has_low_bytes(case: dict[str, Any], query: dict[str, Any]) -> bool:
    """True if some key is empty or has a byte that a time could begin with: times lie between keys in Kafka's bytes."""
    named = [query.get(name) for name in ("key_from", "key_to")] + [r["key"] for r in case["records"]]
    keys = {key_bytes(key_of(case, key)) for key in named if key is not None}
    largest = max((record["timestamp"] for record in case["records"]), default=0)
    return any(not key or min(key) <= (max(largest, 0) >> 56) for key in keys)


def is_proved(case: dict[str, Any], kafka: dict[str, Any], query: dict[str, Any], mine: Any) -> bool:
    """True if Kafka's own full scan says what sessionkit says."""
    if query["op"] == "find_sessions_by_end":  # sees what the scan does not: sessions that have expired
        twin = in_bounds(query)
        if query["from"] > query["to"] or query["to"] < 0:
            return mine in ([], {"error": "IllegalArgumentException"})
        return twin in case["queries"] and kafka["query_results"][case["queries"].index(twin)] == mine
    found = scanned(case, kafka["final_store"], query)
    if isinstance(found, dict) or not isinstance(mine, list):
        return bool(found == mine)
    return sorted(map(str, found)) == sorted(map(str, mine))


def scanned(case: dict[str, Any], rows: list[dict[str, Any]], query: dict[str, Any]) -> Any:
    """The answer to a query, from all that the store holds."""
    op = query["op"].removeprefix("backward_")
    low, high = query.get("key_from"), query.get("key_to")
    if not op.endswith("keys"):
        low = high = query.get("key")
    first, last = (None if key is None else key_bytes(key_of(case, key)) for key in (low, high))
    rows = [
        {name: part for name, part in row.items() if name != "partition"}
        for row in rows
        if row.get("partition", 0) == query.get("partition", 0)
        and (first is None or key_bytes(key_of(case, row["key"])) >= first)
        and (last is None or key_bytes(key_of(case, row["key"])) <= last)
    ]
    if case["window"]["kind"] != "session":
        return _of_windows(op, rows, query)
    if op == "fetch_session":
        found = (r["value"] for r in rows if (r["window_start"], r["window_end"]) == (query["from"], query["to"]))
        return {"value": next(found, None)}
    is_range = op.startswith("find_sessions")
    return [r for r in rows if not is_range or (r["window_end"] >= query["from"] and r["window_start"] <= query["to"])]


def _of_windows(op: str, rows: list[dict[str, Any]], query: dict[str, Any]) -> Any:
    if op == "fetch_one":
        found = [row for row in rows if row["window_start"] == query["from"]]
        return {name: found[0][name] for name in ("value", "timestamp")} if found else {"value": None}
    if op != "all":
        rows = [row for row in rows if query["from"] <= row["window_start"] <= query["to"]]
    return [{n: row[n] for n in ("window_start", "value", "timestamp")} for row in rows] if op == "fetch" else rows


def excuses(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> Counter[str]:
    """How many reads differ, but only by Kafka's faults."""
    answers = zip(ours.get("query_results", []), kafka.get("query_results", []), strict=False)
    differing = ((i, mine) for i, (mine, theirs) in enumerate(answers) if mine != theirs)
    return Counter(name for i, mine in differing if (name := excuse_of(case, kafka, i, mine)) is not None)


def first_difference(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> Difference | None:
    """The first difference; None if there is none.

    Errors are equal when both fail at the same record: class and words are each one's own. What comes after a fault of
    Kafka's own is not compared.
    """
    if "crash" in ours:
        return Difference("sessionkit raised", ours["crash"], kafka.get("error", "an answer"))
    ours, kafka = ({**answer, "per_record": _steps(case, answer["per_record"])} for answer in (ours, kafka))
    if fault_of(case, kafka):
        ours = {**ours, "per_record": _up_to_the_fault(case, ours["per_record"], kafka)}
    for i, (mine, theirs) in enumerate(zip(ours["per_record"], kafka["per_record"], strict=False)):
        for field, absent in (("outputs", []), ("flushed", []), ("dropped_total", 0)):
            if mine.get(field, absent) != theirs.get(field, absent):
                where = f"per_record[{i}].{field}"
                return Difference(where, mine.get(field, absent), theirs.get(field, absent), i)
    counts = [len(answer["per_record"]) for answer in (ours, kafka)]
    if fault_of(case, kafka) and counts[0] >= counts[1]:
        return None
    failed = [answer["error"]["after_record"] if "error" in answer else None for answer in (ours, kafka)]
    if failed[0] != failed[1]:
        return Difference("error", ours.get("error"), kafka.get("error"))
    if counts[0] != counts[1]:
        return Difference("number of records answered", *counts)
    return None if "error" in kafka else _at_the_end(case, ours, kafka)


def _steps(case: dict[str, Any], steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kafka's oracle cannot tell apart what an eviction and what a commit sent: both come out together."""
    if case["caching"] is True or not case["caching"]:
        return steps
    return [{**step, "outputs": [*step["outputs"], *step.get("flushed", [])], "flushed": []} for step in steps]


def _up_to_the_fault(case: dict[str, Any], steps: list[dict[str, Any]], kafka: dict[str, Any]) -> list[dict[str, Any]]:
    """Without what was flushed after Kafka's fault: a commit sends it as of the last record of its partition."""
    after, commits = kafka["error"]["after_record"], case.get("commit_after")
    kept = list(steps)
    for i, theirs in enumerate(kafka["per_record"]):
        if commits is not None and i < len(kept) and not any(i <= commit < after for commit in commits):
            counts = {name: len(theirs.get(name, [])) for name in ("outputs", "flushed")}
            kept[i] = {**kept[i], **{name: kept[i].get(name, [])[:count] for name, count in counts.items()}}
    return kept


def _at_the_end(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> Difference | None:
    if ours["final_store"] != kafka["final_store"]:
        return Difference("final_store", ours["final_store"], kafka["final_store"])
    answers = [answer.get("query_results", []) for answer in (ours, kafka)]
    if len(answers[0]) != len(answers[1]):
        return Difference("number of query_results", len(answers[0]), len(answers[1]))
    for i, (mine, theirs) in enumerate(zip(*answers, strict=True)):
        if mine != theirs and excuse_of(case, kafka, i, mine) is None:
            return Difference(f"query_results[{i}]", mine, theirs)
    for name, total in ours["metrics"].items():
        if total != kafka["metrics"].get(name):
            return Difference(f"metrics {name}", total, kafka["metrics"].get(name))
    return None
