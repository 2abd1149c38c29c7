"""A public yardstick: three queries of Nexmark."""

from __future__ import annotations

from functools import partial
from shutil import which

from benchmarks.model import OURS, Case, Side, Topic
from benchmarks.nexmark import bids

PEERS = ("Polars", "DuckDB", "Spark", *["Flink"] * bool(which("mvn")))  # Maven brings Flink
QUERIES = {
    "q11": ("User sessions (q11)", "records"),
    "q5": ("Hot auctions (q5), every 2 s of the last 10 s", "nearly"),
    "q7": ("The highest bid of each 10 s (q7)", "records"),
}


def topic(records: int) -> Topic:
    def case(query: str, group: int) -> Case:
        what, same = QUERIES[query]
        order = "in order" if group == 1 else f"groups of {group:,} events out of order"
        peers = (Side(name, f"nexmark.{name.lower()}_{query}", repeats=0) for name in PEERS)
        return Case(
            f"{what}, {order}",
            partial(bids, records, group),
            records,
            (Side(OURS, f"nexmark.{query}", repeats=0), *peers),
            same,
        )

    words = (
        "Bids made by the rules of Nexmark's generator; the first call of a process, with its start. Of q11 and q7 "
        "sessionkit keeps the decision on each bid. The auctions of q5 with the most bids in a window are found by "
        "Arrow; q7 ends with the price, without the join with the bids that named it. Spark runs batches on two cores; "
        "Flink reads a stream that ends, in two tasks, by a watermark one second behind."
    )
    return Topic("nexmark", "Nexmark", words, tuple(case(query, group) for query in QUERIES for group in (1, 1_000)))
