"""Draws random cases of the oracle's format: the same seed and index give the same case."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any, NamedTuple

Case = dict[str, Any]

KINDS = ("session", "sliding", "tumbling", "hopping")
PLAIN_AGGREGATIONS = ("count", "sum", "min", "max", "collect")
NEW_AGGREGATIONS = ("reduce", "seeded", "fading")
PROFILES = ("in_order", "slight", "heavy", "bursts", "jumps", "anywhere")
KEYS = (
    ("a", "b", "c", "d", "e", "f"),
    ("a", "aa", "aaa", "ab", "b", "ba"),
    ("é", "ß", "日本", "\uffee", "😀", "z"),
    ("", "a", "user-1", "user-10", "user-2", "x" * 40),
)
HUGE_RETENTION = 86_400_000
SMALLEST_SEGMENT = 60_000

SESSION_OPS = (
    "fetch",
    "backward_fetch",
    "fetch_keys",
    "backward_fetch_keys",
    "find_sessions",
    "backward_find_sessions",
    "find_sessions_keys",
    "backward_find_sessions_keys",
    "find_sessions_by_end",
    "fetch_session",
)
WINDOW_OPS = (
    "fetch",
    "backward_fetch",
    "fetch_keys",
    "backward_fetch_keys",
    "fetch_all",
    "backward_fetch_all",
    "all",
    "backward_all",
    "fetch_one",
)


class Cell(NamedTuple):
    """What is drawn evenly, all else at random."""

    kind: str
    emit: str
    store: str
    caching: bool

    def __str__(self) -> str:
        return f"{self.kind:8} {self.emit:9} {self.store:9} {'cached' if self.caching else 'plain'}"


CELLS = tuple(
    Cell(*chosen)
    for chosen in itertools.product(KINDS, ("on_update", "on_close"), ("in_memory", "rocksdb"), (False, True))
)


def cell_of(case: Case) -> Cell:
    """The cell that the case lies in."""
    return Cell(case["window"]["kind"], case["emit"], case["store"], case["caching"])


def span_of(window: dict[str, Any]) -> int:
    """The gap, the difference or the size."""
    return int(next(window[name] for name in ("gap_ms", "difference_ms", "size_ms") if name in window))


def smallest_retention(window: dict[str, Any]) -> int:
    """The least that Kafka accepts, which is also its default."""
    return span_of(window) * (2 if window["kind"] == "sliding" else 1) + int(window["grace_ms"])


def drawn_cell(index: int) -> Cell:
    """The cells take turns."""
    return CELLS[index % len(CELLS)]


def draw(seed: int, index: int) -> Case:
    """Case `index` of a seed."""
    cell, rng = drawn_cell(index), Random(f"{seed}/{index}")
    window = _window(rng, cell)
    times = _Times(rng, cell, window)
    case: Case = {
        "id": f"{seed}/{index}",
        "window": window,
        "aggregation": rng.choice((*PLAIN_AGGREGATIONS, "collect", *NEW_AGGREGATIONS)),
        "emit": cell.emit,
        "store": cell.store,
        "caching": cell.caching,
        "records": _records(rng, times, _size(rng, times)),
    }
    count = len(case["records"])
    if rng.random() < (0.75 if cell.caching else 0.1):
        share = rng.choice((0, 0.05, 0.2, 0.5))
        case["commit_after"] = [i for i in range(count) if rng.random() < share]
    if rng.random() < (0.25 if cell.emit == "on_close" else 0.03):
        _throttle(rng, case)
    if rng.random() < 0.03:
        _make_negative(rng, case)
    if rng.random() < 0.7:
        case["queries"] = _queries(rng, times, case)
    return with_last_commit(case)


def with_last_commit(case: Case) -> Case:
    """The case with a commit where its run ends, as a run of sessionkit always does; a closed task of Kafka's, too."""
    if "commit_after" not in case or not case["records"]:
        return case
    is_fatal = case.get("negative_timestamps") == "fail"
    fatal = [i for i, record in enumerate(case["records"]) if record["timestamp"] < 0 and is_fatal]
    ends = {len(case["records"]) - 1, *(i - 1 for i in fatal[:1] if i)}
    return {**case, "commit_after": sorted({*case["commit_after"], *ends})}


def _size(rng: Random, times: _Times) -> int:
    most = rng.choice((8, 8, 8, 60, 60, 60, 60, 60, 200, 200))
    # neighbours all meet one another in a sliding window, and every jump costs RocksDB a segment
    return rng.randint(1, min(most, 60) if times.is_dense else most)


def _window(rng: Random, cell: Cell) -> dict[str, Any]:
    low, high = rng.choice(((1, 1), (2, 12), (2, 12), (2, 12), (10, 100), (100, 1000), (20_000, 130_000)))
    span = rng.randint(low, high)
    window: dict[str, Any] = {"kind": cell.kind}
    if cell.kind == "session":
        span = 0 if rng.random() < 0.07 else span
        window["gap_ms"] = span
    elif cell.kind == "sliding":
        window["difference_ms"] = span
    else:
        window["size_ms"] = span
        if cell.kind == "hopping":
            window["advance_ms"] = rng.randint(-(-span // 8), span)
    window["grace_ms"] = rng.choice((0, 0, 0, 1, span // 2, span, span + 1, 3 * span, 10 * span))
    smallest = smallest_retention(window)
    extra = rng.choice((0, 1, 2, span // 3, span, 2 * span + 1, 5 * span, 40 * span, HUGE_RETENTION))
    if rng.random() < 0.6:
        window["retention_ms"] = smallest + extra
    return window


class _Times:
    """Event times of one case, and the distances at which something changes in it."""

    def __init__(self, rng: Random, cell: Cell, window: dict[str, Any]) -> None:
        self.rng, self.window = rng, window
        self.span, grace = span_of(window), int(window["grace_ms"])
        retention = window.get("retention_ms", smallest_retention(window))
        segment = max(retention // 2, SMALLEST_SEGMENT)
        self.advance = int(window.get("advance_ms", self.span)) if "size_ms" in window else 0
        sums = (self.span, grace, self.span + grace, 2 * self.span, 2 * self.span + grace, retention)
        self.edges = sorted({d for total in (0, *sums) for d in (total - 1, total, total + 1)})
        self.profile = rng.choice(PROFILES)
        unit = max(1, self.span)
        self.step = max(1, rng.choice((unit // 8, unit // 3, unit // 3, unit, 2 * unit)))
        self.is_dense = cell.kind == "sliding" and self.step * 2 < unit
        self.edge_share = rng.choice((0, 0.1, 0.1, 0.4))
        # a cached RocksDB store visits every segment from time 0 on, at 1.7e12 that takes Kafka half a minute
        far = () if cell.store == "rocksdb" and cell.caching else (1_700_000_000_000,)
        near_segment = rng.randint(1, 3) * segment - rng.randint(0, 3 * unit)
        self.base = max(0, rng.choice((0, 0, 0, rng.randint(0, 3 * unit), near_segment, 1_000_000_000, *far)))
        self.clock = self.base
        self.seen: list[int] = []

    def next(self) -> int:
        """The next record's time."""
        time = self._by_edge() if self.seen and self.rng.random() < self.edge_share else self._by_profile()
        self.seen.append(max(0, time))
        self.clock = max(self.clock, time)
        return self.seen[-1]

    def _by_edge(self) -> int:
        rng = self.rng
        if self.advance and rng.random() < 0.3:
            return (self.clock // self.advance + rng.randint(-2, 1)) * self.advance + rng.randint(-1, 1)
        origin = rng.choice((self.clock, self.seen[-1], rng.choice(self.seen)))
        return origin + rng.choice((-1, -1, 1)) * rng.choice(self.edges)

    def _by_profile(self) -> int:
        rng, step, wide = self.rng, self.step, max(2, 4 * self.span)
        if self.profile == "anywhere":
            return self.base + rng.randint(0, 10 * wide)
        if self.profile == "bursts" and rng.random() < 0.8:
            return self.clock + rng.choice((0, 0, 1))
        if self.profile == "jumps" and rng.random() < 0.07:
            return self.clock + rng.randint(1, 20) * rng.choice((wide, wide, SMALLEST_SEGMENT // 2))
        late = {"slight": (0.2, step), "heavy": (0.5, wide), "jumps": (0.2, wide)}.get(self.profile, (0, 0))
        time = self.clock + rng.randint(0, 2 * step) * (5 if self.profile == "bursts" else 1)
        return time - rng.randint(0, late[1] + time - self.clock) if rng.random() < late[0] else time

    def asked(self) -> int:
        """A time for a query."""
        rng = self.rng
        if rng.random() < 0.15:
            return rng.choice((0, self.clock + 10 * self.span, 10**15))
        return max(0, rng.choice(self.seen) + rng.choice((-1, 1)) * rng.choice((0, 0, *self.edges)))


def _records(rng: Random, times: _Times, count: int) -> list[dict[str, Any]]:
    keys = rng.sample(rng.choice(KEYS), rng.randint(1, 6))
    null_key, null_value = rng.choice((0, 0, 0.03, 0.15)), rng.choice((0, 0, 0.1, 0.3))
    low, high = rng.choice(((1, 9), (0, 30), (-20, 20)))
    return [
        {
            "key": None if rng.random() < null_key else rng.choice(keys),
            "value": None if rng.random() < null_value else rng.randint(low, high),
            "timestamp": times.next(),
        }
        for _ in range(count)
    ]


def _throttle(rng: Random, case: Case) -> None:
    interval = case["emit_interval_ms"] = rng.choice((0, 1, 10, 1000))
    share = rng.choice((0.1, 0.5, 1))
    for record in case["records"]:
        if rng.random() < share:
            record["wall_advance_ms"] = rng.choice((0, 1, interval // 2, interval, interval + 1, 3 * interval))


def _make_negative(rng: Random, case: Case) -> None:
    case["negative_timestamps"] = rng.choice(("skip", "skip", "fail"))
    for record in rng.sample(case["records"], rng.randint(1, min(3, len(case["records"])))):
        record["timestamp"] = -rng.choice((1, 2, 1000))


def _queries(rng: Random, times: _Times, case: Case) -> list[dict[str, Any]]:
    is_session = case["window"]["kind"] == "session"
    keys = sorted({r["key"] for r in case["records"] if r["key"] is not None}) or ["a"]
    # a fault of Kafka's: its cache over RocksDB gives a window once per segment where a range of keys is open
    open_end = () if case["caching"] and case["store"] == "rocksdb" and not is_session else (None,)
    queries = []
    for op in SESSION_OPS if is_session else WINDOW_OPS:
        query: dict[str, Any] = {"op": op}
        if op.endswith("keys"):
            low, high = sorted((rng.choice(keys), rng.choice(keys)))
            low, high = (high, low) if rng.random() < 0.1 else (low, high)
            query |= {"key_from": rng.choice((*open_end, low, low)), "key_to": rng.choice((*open_end, high, high))}
        elif not op.endswith(("all", "by_end")):
            query["key"] = "absent" if rng.random() < 0.05 else rng.choice(keys)
        if op == "fetch_session":
            start = rng.choice(times.seen)
            query |= {"from": start, "to": rng.choice((start, rng.choice(times.seen)))}
        elif op == "fetch_one":
            query["from"] = _some_start(rng, times)
        elif op not in ("all", "backward_all") and not (is_session and "find" not in op):
            low, high = sorted((times.asked(), times.asked()))
            low, high = (high, low) if rng.random() < 0.05 else (low, high)
            query |= {"from": low, "to": high}
        queries.append(query)
    return queries


def _some_start(rng: Random, times: _Times) -> int:
    time = rng.choice(times.seen)
    if times.advance:
        return time // times.advance * times.advance
    return max(0, rng.choice((time - times.span, time + 1)))
