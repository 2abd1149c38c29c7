"""What a run sent downstream, window by window, and how one run's results compare with another's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Longs
from sessionkit.run import Run
from sessionkit.views.comparison.comparison import are_equal

VERDICTS = ("as it should be", "lost", "sent twice", "other value", "only in Kafka", "late")
AS_IT_SHOULD, LOST, SENT_TWICE, OTHER_VALUE, ONLY_IN_KAFKA, COMES_LATE = VERDICTS
CAME = (AS_IT_SHOULD, SENT_TWICE, COMES_LATE)  # with the right value


class WindowId(NamedTuple):
    """The identity of a result: its partition, its key and its bounds."""

    partition: int
    key: Any
    start_ms: int
    end_ms: int


class Sent(NamedTuple):
    """The results sent for a window: how often, the last value, and by which record."""

    times: int
    value: tuple[Any, ...]
    offset: int


def ids_of(run: Run, row: Codes, start_ms: Longs, end_ms: Longs) -> set[WindowId]:
    """Windows of a run, by their rows and the bounds that they had at some time."""
    trace, columns = run.trace, run.trace.window_columns
    partition, key = trace.batch.partitions[columns.partition[row]], trace.keys.take(pa.array(columns.key[row]))
    places = zip(partition.tolist(), key.to_pylist(), start_ms.tolist(), end_ms.tolist(), strict=True)
    return {WindowId(*place) for place in places}


def in_order(ids: Iterable[WindowId]) -> list[WindowId]:
    """The windows by partition, end, start and key."""
    return sorted(ids, key=lambda id: (id.partition, id.end_ms, id.start_ms, str(id.key)))


def places_in(columns: Mapping[str, Any]) -> list[WindowId]:
    """The window of each row of a changelog, or of a table."""
    lists = [python_list(columns[name]) for name in ("partition", "key", "window_start_ms", "window_end_ms")]
    return [WindowId(*place) for place in zip(*lists, strict=True)]


def results_of(*runs: Run) -> dict[WindowId, Sent]:
    """What runs sent one after the other, by window: the final results, or what the updates and tombstones come to."""
    results: dict[WindowId, Sent] = {}
    for run in runs:
        columns = run._changelog
        whats, offsets = python_list(columns["what"]), python_list(columns["offset"])
        values = zip(*(python_list(columns[name]) for name in run._outcome.folds), strict=True)
        for id, what, offset, value in zip(places_in(columns), whats, offsets, values, strict=True):
            if what == "tombstone":
                results.pop(id, None)
            else:
                before = results.get(id)
                count = before.times + 1 if before is not None and what == "final" else 1
                results[id] = Sent(count, tuple(value), offset)
    return results


def result_columns(
    ids: list[WindowId],
    names: Sequence[str],
    word: tuple[str, Mapping[WindowId, str]],
    expected: Mapping[WindowId, Sent],
    sent: Mapping[WindowId, Sent],
    prefix: str,
) -> dict[str, Any]:
    """A row a window: its bounds, a word on it, how often it was sent, and each result as expected and as sent.

    `word` is the name of its column and the word on each window; `prefix` stands before the names of results sent.
    """
    nothing = (None,) * len(names)
    wanted, came = ([each.get(id) for id in ids] for each in (expected, sent))
    columns: dict[str, Any] = {
        "key": [id.key for id in ids],
        "window_start_ms": np.array([id.start_ms for id in ids], np.int64),
        "window_end_ms": np.array([id.end_ms for id in ids], np.int64),
        word[0]: [word[1][id] for id in ids],
        "sent_count": np.array([0 if each is None else each.times for each in came], np.int64),
        "partition": np.array([id.partition for id in ids], np.int64),
    }
    for place, name in enumerate(names):
        columns[name] = [(nothing if each is None else each.value)[place] for each in wanted]
        columns[f"{prefix}_{name}"] = [(nothing if each is None else each.value)[place] for each in came]
    return columns


def python_list(column: Any) -> list[Any]:
    """The values of a column of the changelog, or of a table, as Python's own."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())


def verdict_on(expected: Sent | None, kafka: Sent | None, *, is_sent_again: bool) -> str:
    """How what was sent for a window compares with what should have been."""
    if expected is None:
        return ONLY_IN_KAFKA
    if kafka is None:
        return LOST
    if kafka.times > 1 or is_sent_again:
        return SENT_TWICE
    if not are_equal(kafka.value, expected.value):
        return OTHER_VALUE
    return COMES_LATE if kafka.offset > expected.offset else AS_IT_SHOULD
