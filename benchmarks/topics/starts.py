"""What the first call of a process costs."""

from __future__ import annotations

from benchmarks.data import visits
from benchmarks.model import OURS, Case, Side, Topic, of

SMALL = 10_000


def topic(records: int) -> Topic:
    def once(name: str, job: str) -> Side:
        return Side(name, job, repeats=0)

    def alone(words: str, job: str, size: int) -> Case:
        return Case(words, lambda: visits(SMALL), size, (once(OURS, job),), first=True)

    sides = (once(OURS, "sessions.finals"), once("Polars", "peers.polars_sessions"))
    sizes = [
        Case(f"Sessions of {size:,} records", **of("zipf-text", size), sides=sides, same="records", first=True)
        for size in (records // 10, records)
    ]
    cases = (
        alone("import sessionkit", "starts.imported", 0),
        alone("To the first table of the flights", "starts.flights", 28_491),
        *sizes,
    )
    words = (
        "The first call of a fresh Python process, with all that it imports. The loops were compiled before, as they "
        "are from the second process of a machine on."
    )
    return Topic("first", "The first call", words, cases)
