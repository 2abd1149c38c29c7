"""The sessions, or other windows, of a run that stand out, and by what."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.text import plural
from sessionkit.errors import shorten
from sessionkit.report.sessions import Sessions

FIRST_ONES = ("", "second ", "third ")  # of each kind
MOST_RESULTS = 4  # that sessions are ranked by
LOOKED_AT = 1_000  # of the largest, for some that do not overlap


def standing_out(sessions: Sessions) -> dict[int, list[str]]:
    """The places of the sessions, each with its reasons: the longest, the one with most records, and so on.

    Where many share the largest value one of them stands for all. Of windows that overlap, one stands for the others.
    """
    found: dict[int, list[str]] = {}
    for word, values in _kinds(sessions):
        order = np.argsort(-values, kind="stable")[:LOOKED_AT]
        others = int(np.count_nonzero(values == values[order[0]])) - 1
        shared = f" (as {plural(others, 'other')})" if others else ""
        chosen: list[int] = []
        for place in order.tolist() if not others else order[:1].tolist():
            ranks = FIRST_ONES[len(chosen) : len(sessions) // len(FIRST_ONES) or 1]
            if ranks and all(_are_apart(sessions, place, other) for other in chosen):
                chosen.append(place)
                found.setdefault(place, []).append(f"{ranks[0]}{word}{shared}")
    return found or {0: ["the only one" if len(sessions) == 1 else "as all others"]}


def _kinds(sessions: Sessions) -> Iterator[tuple[str, Longs | Floats]]:
    """By what sessions can stand out, in a word, with the value of each; not by what is the same for all."""
    kinds: list[tuple[str, Longs | Floats]] = [("longest", sessions.length_ms)] if sessions.have_lengths else []
    kinds += [("most records", sessions.records), ("most merges", sessions.merged)]
    for name, column in [*sessions.results.items()][:MOST_RESULTS]:
        kind = getattr(column, "type", pa.null())  # Python objects have none
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
            kinds.append((f"largest {shorten(name)}", np.where(np.isfinite(values), values, -np.inf)))
    return ((word, values) for word, values in kinds if values.min() < values.max())


def _are_apart(sessions: Sessions, place: int, other: int) -> bool:
    """Whether two of them have different keys, or do not overlap."""
    first, last = max(sessions.start_ms[[place, other]]), min(sessions.end_ms[[place, other]])
    return bool(first >= last or sessions.key[place] != sessions.key[other])
