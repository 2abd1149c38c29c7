"""The bytes that Kafka counts of results that wait in the buffer of suppress, over the columns of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, texts
from sessionkit.engine.outcome import Outcome
from sessionkit.records.keys import key_bytes
from sessionkit.stores.sizes import value_bytes
from sessionkit.suppression.stage import FIXED_BYTES, OLD, OLD_SIZE, SIZE, TIMES, can_be_null
from sessionkit.trace.sent import BEGINS, NO_VALUE, SENT_BY, TOMBSTONE
from sessionkit.views import tables

_PREFIX = "sessionkit old "  # of columns of old values: no user names results so


def weighed_updates(outcome: Outcome, named: Mapping[str, Aggregation], holds: str) -> dict[str, Column]:
    """The updates that a step sends, with the bytes of each and those of the value that it replaces."""
    nullable = can_be_null(named)

    def shown(results: Sequence[Any]) -> Any:
        """What Kafka's serializers get: None, the only result, or a dict of several."""
        if nullable and all(each is None for each in results):
            return None
        return results[0] if len(named) == 1 else dict(zip(named, results, strict=True))

    sent = SENT_BY[type(outcome.kept_trace)](outcome.kept_trace)
    step, window = (sent.old(), sent.window) if sent.replaced is None else sent.replaced()
    replacing = sent._replace(old=lambda: step, window=window)
    columns = tables.sent_table(outcome, replacing, old_values=True, prefix=_PREFIX)
    replaced = _rows([columns.pop(f"{_PREFIX}{name}") for name in named])
    begun = {BEGINS: shown([each.result(each.initializer()) for each in named.values()]), NO_VALUE: None}
    old = [begun[at] if at in begun else shown(row) for at, row in zip(step.tolist(), replaced, strict=True)]
    size = []
    rows = zip(columns["key"].to_pylist(), sent.what.tolist(), _rows([columns[name] for name in named]), strict=True)
    for key, what, row in rows:
        value = None if what == TOMBSTONE else shown(row)
        size.append(FIXED_BYTES + len(key_bytes(key)) + 8 * len(TIMES[holds](0, 0)) + value_bytes(value))
    sizes = {SIZE: np.array(size, np.int64), OLD_SIZE: np.array([*map(value_bytes, old)], np.int64)}
    return {**columns, **sizes, OLD: texts([*map(repr, old)], large=True)}


def _rows(columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """The values of columns, row by row, as Python has them."""
    return list(zip(*(c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns), strict=True))
