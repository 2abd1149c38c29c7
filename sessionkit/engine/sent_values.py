"""The values of results that were sent, and the bytes that Kafka counts of them while they wait for suppress."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Codes, Column, Flags, Longs, arrow_array, is_null, joined, numpy_array, texts
from sessionkit.engine.outcome import Outcome
from sessionkit.records.keys import key_lengths
from sessionkit.stores.sizes import value_bytes
from sessionkit.suppression.stage import FIXED_BYTES, OLD, OLD_SIZE, SIZE, TIMES, can_be_null
from sessionkit.trace.sent import BEGINS, LOADED, NO_VALUE, TOMBSTONE, Sent, running_of
from sessionkit.trace.session_trace import SessionTrace


def results_at_steps(outcome: Outcome) -> dict[str, Column]:
    """The result of its window after each record, or after each touch of it."""
    return {name: running_of(outcome.kept_trace, fold) for name, fold in outcome.folds.items()}


def results_after(outcome: Outcome, running: Mapping[str, Column], step: Longs, window: Codes) -> dict[str, Column]:
    """The value of each of these windows after a step, or (LOADED) that with which it came from a store.

    Null where there is none: the window is new, or the step is NO_VALUE.
    """
    count, loaded = len(next(iter(running.values()), ())), outcome.window_columns.loaded_count
    if not loaded or not (step == LOADED).any():
        return with_nulls(running, step, step < 0)
    place = np.where(step >= 0, step, np.where((step == NO_VALUE) | (window >= loaded), NO_VALUE, count + window))
    first = {name: fold.loaded_results() for name, fold in outcome.folds.items()}
    return with_nulls(joined(running, first), place, place == NO_VALUE)


def results_sent(outcome: Outcome, sent: Sent) -> dict[str, Column]:
    """The value of each result."""
    if sent.stays:
        return {name: fold.results(sent.window) for name, fold in outcome.folds.items()}
    return results_after(outcome, results_at_steps(outcome), sent.step, sent.window)


def with_nulls(columns: Mapping[str, Column], rows: Longs, missing: Flags) -> dict[str, Column]:
    """The columns with these rows, and null where a row is missing."""
    return {name: _picked(column, rows, missing) for name, column in columns.items()}


def _picked(column: Column, rows: Longs, missing: Flags) -> Column:
    if not isinstance(column, np.ndarray):
        return column.take(arrow_array(rows, missing))
    picked = np.full(len(rows), None, object)
    picked[~missing] = column[rows[~missing]]
    return picked


def weights_of(outcome: Outcome, sent: Sent, named: Mapping[str, Aggregation]) -> dict[str, Column]:
    """The bytes of each result on update, those of the value that it replaces, and that value as text."""
    running, weigh = results_at_steps(outcome), _Weights(named)
    step, window = (sent.old(), sent.window) if sent.replaced is None else sent.replaced()
    key_size = key_lengths(outcome.keys)[outcome.window_columns.key[sent.window]]
    taken_back = np.where(sent.what == TOMBSTONE, NO_VALUE, sent.step)
    size, _ = weigh.sizes(results_after(outcome, running, taken_back, sent.window), taken_back)
    old_size, old = weigh.sizes(results_after(outcome, running, step, window), step)
    times = TIMES["sessions" if isinstance(outcome.kept_trace, SessionTrace) else "windows"](0, 0)
    return {SIZE: FIXED_BYTES + key_size + 8 * len(times) + size, OLD_SIZE: old_size, OLD: old}


class _Weights:
    """What Kafka's serializers write of results: a number in eight bytes, text, or several of them as JSON."""

    def __init__(self, named: Mapping[str, Aggregation]) -> None:
        self._named, self._is_nullable = named, can_be_null(named)
        self._begun = self._shown([each.result(each.initializer()) for each in named.values()])

    def _shown(self, results: Sequence[Any]) -> Any:
        """What the serializers get: None, the only result, or a dict of several."""
        if self._is_nullable and all(each is None for each in results):
            return None
        return results[0] if len(self._named) == 1 else dict(zip(self._named, results, strict=True))

    def sizes(self, results: Mapping[str, Column], step: Longs) -> tuple[Longs, pa.LargeStringArray]:
        """(the bytes of each value, its text); at BEGINS it is the one with which a window begins."""
        if all(isinstance(column, pa.Array) and pa.types.is_integer(column.type) for column in results.values()):
            return self._of_numbers(results, step)
        columns = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in results.values()]
        others, rows = {BEGINS: self._begun, NO_VALUE: None}, zip(step.tolist(), *columns, strict=True)
        shown = [others[at] if at in others else self._shown(row) for at, *row in rows]
        return np.array([*map(value_bytes, shown)], np.int64), texts([*map(repr, shown)], large=True)

    def _of_numbers(self, results: Mapping[str, pa.Array], step: Longs) -> tuple[Longs, pa.LargeStringArray]:
        """The same of whole numbers, which need no look at each row."""
        begun = self._begun if isinstance(self._begun, dict) else dict.fromkeys(results, self._begun)
        begins, is_none = arrow_array(step == BEGINS), step == NO_VALUE
        columns = [pc.if_else(begins, pa.scalar(begun[name], c.type), c) for name, c in results.items()]
        written = [pc.fill_null(column.cast(pa.large_string()), "None") for column in columns]
        if len(columns) == 1:
            return np.where(is_null(columns[0]), 0, 8), written[0]
        if self._is_nullable:
            is_none |= np.logical_and.reduce([is_null(column) for column in columns])
        size = np.full(len(step), 1 + sum(len(json.dumps(name, ensure_ascii=False).encode()) + 2 for name in results))
        text: list[Any] = []  # as Python has a dict
        for name, column in zip(results, written, strict=True):
            size += numpy_array(pc.binary_length(column))  # null is as long as None
            text += [pa.scalar(f"{', ' if text else '{'}{name!r}: ", pa.large_string()), column]
        whole = pc.binary_join_element_wise(*text, *(pa.scalar(end, pa.large_string()) for end in ("}", "")))
        return np.where(is_none, 0, size), pc.if_else(arrow_array(is_none), pa.scalar("None", whole.type), whole)
