"""Suppress behind a compiled run: its buffers over the columns of all that was sent to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, Longs, is_null, texts
from sessionkit.deployed.compiled.sent import SentResults
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.suppressed_results import SuppressedResults
from sessionkit.engine.outcome import Outcome
from sessionkit.suppression.settings import Suppression
from sessionkit.suppression.stage import Suppressor, can_be_null
from sessionkit.trace.sent import FINAL, NO_VALUE, TOMBSTONE, WHATS, Sent, running_of
from sessionkit.windows.contract import WindowKind

_ROW, _AFTER = "row", "after"


def knows_suppression(suppression: Suppression, how: Life) -> bool:
    """Whether the buffers of this life can be played here: they count results, and no restart takes them over."""
    return suppression.most_bytes is None and how.restart is None and not how.buffers


class _RowSuppressor(Suppressor):
    """Tells what goes out by its row, and by the row after which it goes."""

    def _out(self, columns: Mapping[str, Column], row: Longs, after: Longs) -> dict[str, Column]:
        order = np.argsort(after, kind="stable")
        return {_ROW: row[order], _AFTER: after[order]}


class HeldBuffer(NamedTuple):
    """The buffer of one partition at the end of a run."""

    of: HeldResults
    partition: int

    @property
    def most_records(self) -> int:
        """How many results waited at once, at most."""
        return self.of.stage.most_in_each.get(self.partition, 0)

    @property
    def most_size(self) -> int:
        """The most bytes that waited at once: weighed result by result."""
        return self.of.most_sizes[self.partition]


class HeldResults(SentResults):
    """What suppress lets go of the results of a compiled run."""

    def __init__(
        self, settings: Suppression, windows: WindowKind, aggregations: Mapping[str, Aggregation], results: SentResults
    ) -> None:
        super().__init__(results.outcome, self._let_go, flushed=results.flushed)
        self._settings, self._windows, self._aggregations, self._given = settings, windows, aggregations, results
        if settings.can_fail:
            self._played  # noqa: B018  # a full buffer stops the application before it commits

    @property
    def buffers(self) -> Sequence[HeldBuffer]:  # type: ignore[override]
        """One a partition."""
        return [HeldBuffer(self, number) for number in self.outcome.batch.partitions.tolist()]

    @cached_property
    def _played(self) -> tuple[_RowSuppressor, Mapping[str, Any]]:
        stage = _RowSuppressor(self._settings, self._windows, self._aggregations)
        return stage, stage.step(self._columns())

    @property
    def stage(self) -> Suppressor:
        """The buffers as they are at the end."""
        return self._played[0]

    def _columns(self) -> dict[str, Column]:
        sent, outcome = self._given.sent, self.outcome
        windows, batch = outcome.window_columns, outcome.batch
        silent = (sent.what == TOMBSTONE) | (self._has_no_result(outcome, sent) if len(sent.at) else False)
        what = np.where(silent, TOMBSTONE, sent.what).astype(np.int8)
        return {
            "partition": batch.partitions[windows.partition[sent.window]],
            "offset": batch.offset[sent.at],
            "what": pa.DictionaryArray.from_arrays(pa.array(what), texts(WHATS)).cast(pa.string()),
            "key": pa.DictionaryArray.from_arrays(pa.array(windows.key[sent.window]), outcome.keys),
            "window_start_ms": sent.start_ms,
            "window_end_ms": sent.end_ms,
            _ROW: np.arange(len(sent.at)),
            "timestamp_ms": sent.timestamp_ms,
        }

    def _has_no_result(self, outcome: Outcome, sent: Sent) -> Any:
        if not can_be_null(self._aggregations):
            return False
        trace: Any = outcome.kept_trace
        null = np.logical_and.reduce([is_null(running_of(trace, fold)) for fold in outcome.folds.values()])
        return (sent.step < 0) | null[np.maximum(sent.step, 0)]

    def _let_go(self) -> Sent:
        """The results that went out, each by the record that made it go."""
        (_, out), given = self._played, self._given.sent
        found = given.take(out[_ROW])._replace(at=given.at[out[_AFTER]])
        nothing = np.full(len(found.at), NO_VALUE)
        what = np.full(len(found.at), FINAL, np.uint8) if self._settings.is_final else found.what
        return found._replace(what=what, old=lambda: nothing, replaced=None)

    @property
    def waiting(self) -> SentResults:  # type: ignore[override]
        """The results that wait at the end, by partition and in the order in which they would go out."""
        return SentResults(self.outcome, self._waiting, flushed=self.flushed)

    def _waiting(self) -> Sent:
        held = self.stage.waiting
        assert held is not None, "it has played"
        return self._given.sent.take(np.asarray(held.columns[_ROW]))

    @cached_property
    def most_sizes(self) -> dict[int, int]:
        """The most bytes that waited at once in each partition."""
        batch = self.outcome.batch
        weighed = SuppressedResults(self._settings, self._windows, self._aggregations, batch)
        for each in self._given:
            weighed.put(each)
        return {p: buffer.most_size for p, buffer in zip(batch.partitions.tolist(), weighed.buffers, strict=True)}
