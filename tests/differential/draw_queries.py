"""What a random case asks of its store at the end."""

from random import Random
from typing import Any

from tests.differential.draw_times import Times

Case = dict[str, Any]
LATEST_ASKED = 2**62 + 2**46  # behind all that is drawn
SESSION_OPS = (
    "fetch", "backward_fetch", "fetch_keys", "backward_fetch_keys", "find_sessions", "backward_find_sessions",
    "find_sessions_keys", "backward_find_sessions_keys", "find_sessions_by_end", "fetch_session",
)  # fmt: skip
WINDOW_OPS = (
    "fetch", "backward_fetch", "fetch_keys", "backward_fetch_keys", "fetch_all", "backward_fetch_all", "all",
    "backward_all", "fetch_one",
)  # fmt: skip


def draw_queries(rng: Random, times: Times, case: Case) -> list[dict[str, Any]]:
    is_session = case["window"]["kind"] == "session"
    absent = {"text": "absent", "int": "77", "bytes": "YWJzZW50"}[case.get("keys", "text")]
    keys = sorted({r["key"] for r in case["records"] if r["key"] is not None}) or [absent]
    # a fault of Kafka's: its cache over RocksDB gives a window once per segment where a range of keys is open
    open_end = () if case["caching"] and case["store"] == "rocksdb" and not is_session else (None,)
    queries: list[dict[str, Any]] = []
    for op in SESSION_OPS if is_session else WINDOW_OPS:
        query: dict[str, Any] = {"op": op}
        if op.endswith("keys"):
            low, high = sorted((rng.choice(keys), rng.choice(keys)))
            low, high = (high, low) if rng.random() < 0.1 else (low, high)
            query |= {"key_from": rng.choice((*open_end, low, low)), "key_to": rng.choice((*open_end, high, high))}
        elif not op.endswith(("all", "by_end")):
            query["key"] = absent if rng.random() < 0.05 else rng.choice(keys)
        if op == "fetch_session":
            start = rng.choice(times.seen)
            query |= {"from": start, "to": rng.choice((start, rng.choice(times.seen)))}
        elif op == "fetch_one":
            query["from"] = _some_start(rng, times)
        elif op not in ("all", "backward_all") and not (is_session and "find" not in op):
            low, high = sorted((times.asked(), times.asked()))
            low, high = (high, low) if rng.random() < 0.05 else (low, high)
            query |= {"from": low, "to": high}
        if case.get("partitions", 1) > 1:
            query["partition"] = rng.randrange(case["partitions"])
        queries.append(query)
    return queries + [in_bounds(query) for query in queries if query != in_bounds(query)]


def in_bounds(query: dict[str, Any]) -> dict[str, Any]:
    """The question with bounds below 0 and far beyond 2^62 brought in, where Kafka's arithmetic holds."""
    if "to" not in query or query["op"] == "fetch_session":
        return query
    return query | {name: min(max(query[name], 0), LATEST_ASKED) for name in ("from", "to")}


def _some_start(rng: Random, times: Times) -> int:
    time = rng.choice(times.seen)
    if times.advance:
        return time // times.advance * times.advance
    return max(0, rng.choice((time - times.span, time + 1)))
