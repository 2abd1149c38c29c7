"""How the cost of a record grows when the data, or the windows, become less kind."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.data import one_busy_key
from benchmarks.model import OURS, Case, Side, Topic, of

FOREVER = "36500d"


def topic(records: int) -> Topic:
    def case(words: str, shape: str = "zipf-text", windows: dict[str, str] | None = None, **data: Any) -> Case:
        side = Side(OURS, "sessions.from_frame", {"frame": "pyarrow", **(windows or {})})
        return Case(words, **of(shape, records, **data), sides=(side,))

    busy = Side(OURS, "sessions.from_frame", {"frame": "pyarrow", "gap": "30s", "grace": FOREVER})
    cases = (
        case("The base"),
        case("No record is late", late=0.0),
        case("Half of the records are late", late=0.5),
        case("All records are late by chance", late=1.0),
        case("One key", keys=1),
        case("1,000 keys", keys=1_000),
        case("100,000 keys, all alike", "uniform-text"),
        case("A million keys, all alike", "uniform-text", keys=1_000_000),
        case("As many keys as records, a session a record", "sparse-integers", keys=records),
        case("A gap of 1 ms", windows={"gap": "1ms"}),
        case("A gap of a day", windows={"gap": "1d"}),
        case("No grace", windows={"grace": "0ms"}),
        case("A grace of a day", windows={"grace": "1d"}),
        case("A grace without an end", windows={"grace": FOREVER}),
        Case("One key, all sessions open, in no order", partial(one_busy_key, records), records, (busy,)),
        case("1 partition", partitions=1),
        case("1,000 partitions", partitions=1_000),
        case("20,000 partitions", partitions=20_000),
        case("A tenth of keys and values missing", nulls=0.1),
    )
    words = (
        "From a pyarrow table in memory to the table of final sessions. Each row differs from the base in one thing."
    )
    return Topic("growth", "When it gets worse", words, cases, growth=True)
