"""Tumbling, hopping and sliding windows."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.data import steady
from benchmarks.model import OURS, Case, Side, Topic, of
from benchmarks.shapes import SHAPES
from benchmarks.topics.sessions import WORDS


def time_topic(records: int) -> Topic:
    tumbling = (
        Side(OURS, "windows.time", {"size": "10m"}),
        Side("Polars", "peers.polars_panes", {"size": "10m"}),
        Side("DuckDB", "peers.duckdb_panes", {"minutes": 10}),
    )
    hopping = (
        Side(OURS, "windows.time", {"size": "1h", "advance": "5m"}),
        Side("Polars", "peers.polars_panes", {"size": "5m", "windows": 12, "advance_minutes": 5}),
        Side("DuckDB", "peers.duckdb_panes", {"minutes": 5, "windows": 12, "advance_minutes": 5}),
    )
    cases = [
        Case(f"Tumbling, 10 min. {WORDS[name]}", **of(name, records), sides=tumbling, same="nearly") for name in SHAPES
    ]
    cases += [
        Case(f"Hopping, 1 h every 5 min. {WORDS[name]}", **of(name, records), sides=hopping, same="nearly")
        for name in ("zipf-text", "uniform-integers")
    ]
    words = (
        "From a Parquet file to the table, with count and sum. The peers group by key and truncated time, and for "
        "hopping windows add up the 12 panes of each window; they drop nothing, where sessionkit drops records that "
        "come after the grace of five minutes."
    )
    return Topic("windows", "Tumbling and hopping windows", words, tuple(cases))


def deployed_topic(records: int) -> Topic:
    def case(words: str, job: str, **options: Any) -> Case:
        return Case(words, **of("zipf-text", records), sides=(Side(OURS, job, options, repeats=1),))

    tumbling, sessions, sliding = "windows.deployed", "windows.deployed_sessions", "windows.deployed_sliding"
    cases = [
        case("A run", tumbling, is_audit=False),
        case("An audit, with the retentions that are safe", tumbling, is_audit=True),
    ]
    for emit, words in (("on_window_close", "emitted on close"), ("on_window_update", "on update behind a cache")):
        audited = f"An audit of sessions, {words}, with the retentions that are safe"
        cases.append(case(f"A run of sessions, {words}", sessions, is_audit=False, emit=emit))
        cases.append(case(audited, sessions, is_audit=True, emit=emit))
    for store, kind in (("rocksdb", "disk"), ("memory", "changelog")):
        words = f"A run of sessions, emitted on close, started again nine times from its {kind}"
        again = {"every": records // 10, "store": store, "kind": kind}
        cases.append(case(words, "windows.restarted_sessions", **again))
    cases.append(case("A run of sliding windows", sliding, seconds=10, is_audit=False))
    audited = "An audit of sliding windows, with the retentions that are safe"
    cases.append(case(audited, sliding, seconds=10, is_audit=True))
    words = (
        "Tumbling windows of 10 minutes, counted, with the final results of suppress, sessions with a gap of 30 s, and "
        "final results of sliding windows of 10 s, in a deployment with Kafka's defaults: from a Parquet file to the "
        "changelog, or to the words of an audit."
    )
    return Topic("deployed", "Deployments of Kafka Streams", words, tuple(cases))


def sliding_topic(records: int) -> Topic:
    def case(seconds: int) -> Case:
        sides = (
            Side(OURS, "windows.sliding", {"seconds": seconds}),
            Side("Polars, rolling", "peers.polars_rolling", {"seconds": seconds}),
        )
        return Case(f"Over {seconds:,} records", partial(steady, records), records, sides, a_row=True)

    words = (
        "Final results, with count and sum. Kafka's sliding windows are more than one a record: each comes out once, "
        "when it closes. Polars gives the window that ends at each record. Times are compared a row of the result."
    )
    return Topic("sliding", "Sliding windows", words, tuple(case(seconds) for seconds in (4, 100, 1_800)))
