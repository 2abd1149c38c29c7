"""Draws random cases of the oracle's format: the same seed and index give the same case."""

import itertools
from random import Random
from typing import Any, NamedTuple

from tests.differential.draw_keys import draw_keys
from tests.differential.draw_queries import Case, draw_queries
from tests.differential.draw_times import Times, draw_window, overlap_of

KINDS = ("session", "sliding", "tumbling", "hopping")
PLAIN_AGGREGATIONS = ("count", "sum", "min", "max", "collect")
NEW_AGGREGATIONS = ("reduce", "seeded", "fading")
GROWING_AGGREGATIONS = ("collect", "all_built_ins")
MANY = 200  # records: from here on a case is a large one
LARGEST = 20_000
CACHES = {"plain": (False,), "cached": (True,), "limited": (1, 1, 2, 2, 3, 4, 5, 6, 8, 20, 100)}
AN_ENTRY = 90  # bytes, of short keys


class Cell(NamedTuple):
    """What is drawn evenly, all else at random."""

    kind: str
    emit: str
    store: str
    caching: str

    def __str__(self) -> str:
        return f"{self.kind:8} {self.emit:9} {self.store:9} {self.caching}"


CELLS = tuple(
    Cell(*chosen) for chosen in itertools.product(KINDS, ("on_update", "on_close"), ("in_memory", "rocksdb"), CACHES)
)


def cell_of(case: Case) -> Cell:
    caching = {True: "cached", False: "plain"}[case["caching"]] if isinstance(case["caching"], bool) else "limited"
    return Cell(case["window"]["kind"], case["emit"], case["store"], caching)


def drawn_cell(index: int) -> Cell:
    """The cells take turns."""
    return CELLS[index % len(CELLS)]


def draw(seed: int, index: int) -> Case:
    cell, rng = drawn_cell(index), Random(f"{seed}/{index}")
    window = draw_window(rng, cell.kind)
    times = Times(rng, window, walks_segments=cell.store == "rocksdb" and cell.caching != "plain")
    count = _size(rng, times)
    case: Case = {
        "id": f"{seed}/{index}", "window": window, "aggregation": _aggregation(rng, count), "emit": cell.emit,
        "store": cell.store, "caching": rng.choice(CACHES[cell.caching]), "records": _records(rng, times, count),
    }  # fmt: skip
    if case["aggregation"] in ("sum", "min", "max"):
        case["built_in"] = rng.random() < 0.5
    case |= draw_keys(rng, case["records"])
    _draw_deployment(rng, case)
    if rng.random() < 0.7:
        case["queries"] = draw_queries(rng, times, case)
    if cell.caching == "limited":
        _draw_bytes(Random(f"{seed}/{index}/bytes"), case)
    _draw_restarts(Random(f"{seed}/{index}/restarts"), case)
    if cell.emit == "on_update":
        _draw_suppress(Random(f"{seed}/{index}/suppress"), case)  # of its own: the rest stays what it was
    return with_last_commit(case)


def _draw_bytes(rng: Random, case: Case) -> None:
    """As many bytes as that number of entries has, or nearly; what the oracle joins as text has no size of ours."""
    count = min(case["caching"], rng.choice((1, 2, 3, 5, 10, 50)))
    case["caching"] = {"bytes": max(0, count * AN_ENTRY + rng.randint(-AN_ENTRY, AN_ENTRY))}
    if case["aggregation"] == "all_built_ins":
        case["aggregation"] = "collect"


def _draw_suppress(rng: Random, case: Case) -> None:
    """A buffer behind every third case, and more than fits into every third of them."""
    if rng.random() > 0.33:
        return
    is_killed = any(each[1] == "killed" for each in case.get("restarts", ()) if not isinstance(each, int))
    told: dict[str, Any] = {}
    if rng.random() < 0.4:
        told["wait_ms"] = rng.choice((0, 0, 1, 3, 10, 100, 60_000, case["window"].get("grace_ms", 0)))
        told |= rng.choice(({}, {"when_full": "emit_early"}, {"when_full": "shut_down"}))
    stops = "wait_ms" not in told or told.get("when_full") == "shut_down"
    # what a commit sent before it met a full buffer is not told, so then each record has a commit of its own
    if rng.random() < 0.4 and not (stops and (is_killed or (case["caching"] and case.get("partitions", 1) > 1))):
        told |= {"max_records": rng.choice((0, 1, 2, 3, 5, 8, 20))} if rng.random() < 0.7 else {}
        is_one = case["aggregation"] != "all_built_ins"
        told |= {"max_bytes": rng.choice((0, 40, 60, 100, 150, 300, 700))} if is_one and rng.random() < 0.5 else {}
        if stops and case["caching"]:
            case.pop("commit_after", None)
    case["suppress"] = told


def _draw_deployment(rng: Random, case: Case) -> None:
    count, cell = len(case["records"]), cell_of(case)
    if rng.random() < (0.1 if cell.caching == "plain" else 0.75):
        share = rng.choice((0, 0.05, 0.2, 0.5))
        case["commit_after"] = [i for i in range(count) if rng.random() < share]
    if rng.random() < (0.25 if cell.emit == "on_close" else 0.03):
        _throttle(rng, case)
    if rng.random() < 0.03:
        _make_negative(rng, case)
    if rng.random() < 0.08:
        case["partitions"] = rng.choice((2, 2, 3))
        for record in case["records"]:
            record["partition"] = rng.randrange(case["partitions"])
    if case["store"] == "rocksdb" and count > 1 and rng.random() < 0.08:
        case["restarts"] = sorted(rng.sample(range(count - 1), min(count - 1, rng.choice((1, 1, 2, 4)))))


def _draw_restarts(rng: Random, case: Case) -> None:
    """Restarts of a store in memory, too, and of all kinds: their own draws, so that the rest stays what it was."""
    count = len(case["records"])
    if case["store"] == "in_memory" and count > 1 and rng.random() < 0.08:
        case["restarts"] = sorted(rng.sample(range(count - 1), min(count - 1, rng.choice((1, 1, 2, 4)))))
    if "restarts" not in case or rng.random() < 0.25:
        return
    # a long life would write some of its segments to the disk, and a kill then find a part of it there
    is_killed = count <= MANY and case.get("negative_timestamps") != "fail"
    kinds = ("disk", "changelog", "killed", "killed") if is_killed else ("disk", "changelog")
    case["restarts"] = [[record, rng.choice(kinds)] for record in case["restarts"]]
    if any(kind == "killed" for _, kind in case["restarts"]) and rng.random() < 0.9:
        case["commit_after"] = [i for i in range(count) if rng.random() < rng.choice((0.05, 0.2, 0.5))]


def with_last_commit(case: Case) -> Case:
    """The case with a commit where its run ends, as a run of sessionkit always does; a closed task of Kafka's, too."""
    if "commit_after" not in case or not case["records"]:
        return case
    is_fatal = case.get("negative_timestamps") == "fail"
    fatal = [i for i, record in enumerate(case["records"]) if record["timestamp"] < 0 and is_fatal]
    ends = {len(case["records"]) - 1, *(i - 1 for i in fatal[:1] if i)}
    return {**case, "commit_after": sorted({*case["commit_after"], *ends})}


def _size(rng: Random, times: Times) -> int:
    """Nine of ten have 40 records or fewer."""
    lot = rng.random()
    if lot < 0.9:
        return rng.randint(1, rng.choice((8, 8, 40, 40, 40)))
    is_large = lot >= 0.985
    count = round(MANY * (LARGEST / MANY) ** (rng.random() ** 2)) if is_large else rng.randint(41, MANY)
    # neighbours all meet one another in a sliding window, and every jump costs RocksDB a segment
    return min(count, 60 if times.is_dense else LARGEST // overlap_of(times.window))


def _aggregation(rng: Random, count: int) -> str:
    if count > MANY:
        return rng.choice((*PLAIN_AGGREGATIONS[:-1], *NEW_AGGREGATIONS))
    return rng.choice((*PLAIN_AGGREGATIONS, *GROWING_AGGREGATIONS, *NEW_AGGREGATIONS))


def _records(rng: Random, times: Times, count: int) -> list[dict[str, Any]]:
    """The records, whose keys are numbers as yet."""
    most_keys = rng.choice((6, 6, 6, 6, 100, count, 10_000)) if count > 40 else 6
    keys = rng.randint(1, max(1, min(most_keys, 10_000)))
    null_key, null_value = rng.choice((0, 0, 0, 0.03, 0.15, 0.9)), rng.choice((0, 0, 0, 0.1, 0.3, 0.9))
    twice = rng.choice((0, 0, 0, 0, 0.3))
    low, high = rng.choice(((1, 9), (0, 30), (-20, 20)))
    records: list[dict[str, Any]] = []
    for _ in range(count):
        if records and rng.random() < twice:
            records.append(dict(records[-1] if rng.random() < 0.5 else rng.choice(records[-10:])))
            continue
        records.append(
            {
                "key": None if rng.random() < null_key else rng.randrange(keys),
                "value": None if rng.random() < null_value else rng.randint(low, high),
                "timestamp": times.next(),
            }
        )
    return records


def _throttle(rng: Random, case: Case) -> None:
    interval = case["emit_interval_ms"] = rng.choice((0, 1, 10, 1000))
    share, goes_back = rng.choice((0.1, 0.5, 1)), rng.random() < 0.3
    for record in case["records"]:
        if rng.random() < share:
            record["wall_advance_ms"] = rng.choice((0, 1, interval // 2, interval, interval + 1, 3 * interval))
            if goes_back and rng.random() < 0.3:
                record["wall_advance_ms"] *= -1


def _make_negative(rng: Random, case: Case) -> None:
    case["negative_timestamps"] = rng.choice(("skip", "skip", "fail"))
    for record in rng.sample(case["records"], rng.randint(1, min(3, len(case["records"])))):
        record["timestamp"] = -rng.choice((1, 2, 1000))
