"""Data that nobody chose: twenty shapes, drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.drawn import SHAPES, drawn, file_of
from benchmarks.model import OURS, Case, Side, Topic

KINDS: Mapping[str, tuple[str, tuple[Side, ...]]] = {
    "Sessions": ("records", (Side(OURS, "sessions.finals"), Side("Polars", "peers.polars_sessions"))),
    "Tumbling, 10 min": (
        "nearly",
        (Side(OURS, "windows.time", {"size": "10m"}), Side("Polars", "peers.polars_panes", {"size": "10m"})),
    ),
    "Hopping, 1 h every 5 min": (
        "nearly",
        (
            Side(OURS, "windows.time", {"size": "1h", "advance": "5m"}),
            Side("Polars", "peers.polars_panes", {"size": "5m", "windows": 12, "advance_minutes": 5}),
        ),
    ),
    "Each row of a Polars frame with its session": (
        "",
        (Side(OURS, "sessions.sessionized"), Side("Polars", "peers.polars_rows")),
    ),
}


def topic(records: int) -> Topic:
    cases = [
        Case(
            title=f"{kind}. {drawn(number, records).words}",
            data=partial(file_of, number, records),
            records=records,
            sides=sides,
            same=same,
            kind=kind,
        )
        for kind, (same, sides) in KINDS.items()
        for number in range(SHAPES)
    ]
    words = (
        "Each shape is drawn from its number: keys from one to one a record, as text of 4 to 40 bytes or integers from "
        "dense to wide; weights from all alike to Zipf 1.3; visits of 1 to 200 records, 0 to 20 % late; 1 to 4 columns "
        "of values; row groups of 10,000 to 10 million rows; 1 to 256 partitions."
    )
    return Topic("drawn", "Shapes that nobody chose", words, tuple(cases))
