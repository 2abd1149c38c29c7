"""Draws random deployments, as cases of the oracle's format: the same seed and index give the same one.

Three fields are not the oracle's: `commit_every` and `commit_interval_ms`, and `clock`, "stream" where the wall clock
goes with stream time.
"""

import itertools
from random import Random
from typing import Any

from tests.differential.draw_times import SMALLEST_SEGMENT, smallest_retention, span_of

Case = dict[str, Any]

KINDS = ("session", "sliding", "tumbling", "hopping")
CACHES = ((False,), (True,), tuple({"bytes": count * 90} for count in (1, 2, 3, 5)))
CELLS = tuple(itertools.product(KINDS, ("on_update", "on_close"), ("in_memory", "rocksdb"), CACHES))
STRIDE = 17  # few cases, too, meet all that there is
AGGREGATIONS = ("count", "count", "sum", "collect")
TODAY = 1_767_225_600_000


def draw(seed: int, index: int) -> Case:
    rng = Random(f"audits/{seed}/{index}")
    kind, emit, store, caches = CELLS[index * STRIDE % len(CELLS)]
    window = _window(rng, kind)
    case: Case = {
        "id": f"{seed}/{index}", "window": window, "aggregation": rng.choice(AGGREGATIONS), "emit": emit,
        "store": store, "caching": rng.choice(caches), "commit_every": rng.choice((None, None, 1, 1, 2, 3, 7)),
    }  # fmt: skip
    walks_segments = store == "rocksdb" and case["caching"] is not False  # in Kafka, all of them from 0 on
    case["records"] = drawn_records(rng, window, walks_segments=walks_segments)
    if emit == "on_close" and rng.random() < 0.35:
        _throttle(rng, case)
    if case["commit_every"] is None and rng.random() < 0.7:
        case["commit_interval_ms"] = rng.choice((0, 1, 10, 1_000, 30_000, window["grace_ms"]))
    count = len(case["records"])
    if rng.random() < 0.08:
        case["partitions"] = 2
        for record in case["records"]:
            record["partition"] = rng.randrange(2)
    if store == "rocksdb" and count > 1 and rng.random() < 0.2:
        case["restarts"] = sorted(rng.sample(range(count - 1), min(count - 1, rng.choice((1, 1, 2)))))
    return case


def _window(rng: Random, kind: str) -> dict[str, Any]:
    span = rng.randint(*rng.choice(((1, 12), (1, 12), (100, 1_000), (20_000, 200_000), (20_000, 200_000))))
    window: dict[str, Any] = {"kind": kind}
    if kind == "session":
        span = 0 if rng.random() < 0.1 else span
        window["gap_ms"] = span
    elif kind == "sliding":
        window["difference_ms"] = span
    else:
        window["size_ms"] = span
    if kind == "hopping":
        window["advance_ms"] = rng.randint(-(-span // 8), span)
    window["grace_ms"] = rng.choice((0, 0, 0, 1, span // 2, span, 3 * span))
    if rng.random() < 0.7:
        more = rng.choice((0, 1, 2, span // 3, span, 5 * span, 2 * SMALLEST_SEGMENT, rng.randint(0, 500_000)))
        window["retention_ms"] = smallest_retention(window) + more
    return window


def drawn_records(rng: Random, window: dict[str, Any], *, walks_segments: bool) -> list[dict[str, Any]]:
    unit, grace, smallest = max(1, span_of(window)), window["grace_ms"], smallest_retention(window)
    retention = window.get("retention_ms", smallest)
    segment = max(retention // 2, SMALLEST_SEGMENT)
    steps = (0, 1, unit // 3, unit, unit + 1, 2 * unit, unit + grace + 1, smallest, retention, retention + 1)
    near_segment = rng.randint(1, 4) * segment - rng.randint(0, 3 * unit)
    now = rng.choice((0, 0, rng.randint(0, 5 * segment), max(0, near_segment), max(0, near_segment)))
    if rng.random() < 0.06 and not walks_segments:
        now = rng.choice((1_000_000_000, TODAY)) + rng.randint(0, 3 * segment)
    chosen = rng.sample(steps, 4)
    count = rng.randint(5, 40) if rng.random() < 0.85 else rng.randint(1, 4)
    jumps, late, wide = rng.choice((0, 0.1, 0.3)), rng.choice((0, 0.2, 0.5)), rng.choice((unit, grace + unit, 4 * unit))
    null_key, null_value = rng.choice((0, 0, 0.1)), rng.choice((0, 0, 0.2))
    records = []
    for _ in range(count):
        if rng.random() < jumps:
            now += rng.randint(1, 8) * rng.choice((unit, SMALLEST_SEGMENT // 2, segment)) + rng.randint(-1, 1)
        else:
            now += rng.choice(chosen)
        back = rng.randint(0, wide) if rng.random() < late else 0
        records.append(
            {
                "key": None if rng.random() < null_key else rng.choice("abc"),
                "value": None if rng.random() < null_value else rng.randint(0, 9),
                "timestamp": max(0, now - back),
            }
        )
    return records


def _throttle(rng: Random, case: Case) -> None:
    interval = case["emit_interval_ms"] = rng.choice((1, 10, 1_000))
    if rng.random() < 0.4:
        case["clock"] = "stream"
        return
    for record in case["records"]:
        if rng.random() < 0.6:
            record["wall_advance_ms"] = rng.choice((0, 1, interval // 2, interval, interval + 1, 3 * interval))
