"""Files larger than memory."""

from __future__ import annotations

from functools import partial

from benchmarks.data import DAY_RECORDS, days
from benchmarks.model import OURS, Case, Side, Topic

DAYS = (1, 10, 100)


def topic() -> Topic:
    """Its sizes do not depend on how many records other topics have."""
    words = (
        "`plan.write` of visits of 100,000 keys to a folder of final sessions, in a fresh process, imports included: "
        "time and memory as the files become longer."
    )
    cases = (
        Case(
            f"{number * DAY_RECORDS:,} records",
            partial(days, number),
            number * DAY_RECORDS,
            (Side(OURS, "sessions.written", {"count": number}, repeats=0),),
        )
        for number in DAYS
    )
    return Topic("length", "Files larger than memory", words, tuple(cases))
