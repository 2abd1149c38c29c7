"""Suppress behind a compiled run: its buffers over the columns of all that was sent to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, Longs, is_null, texts
from sessionkit.deployed.compiled.sent import LazyRows, SentResults
from sessionkit.deployed.deployment import Life, commit_rows
from sessionkit.deployed.recorder import Forwarded
from sessionkit.deployed.suppressed_results import SuppressedResults
from sessionkit.engine.outcome import Outcome
from sessionkit.engine.sent_values import weights_of
from sessionkit.suppression.settings import Suppression
from sessionkit.suppression.stage import Suppressor, can_be_null
from sessionkit.trace.sent import FINAL, NO_VALUE, TOMBSTONE, WHATS, Sent, running_of
from sessionkit.windows.contract import WindowKind

_ROW, _AFTER = "row", "after"


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
        """The most bytes that waited at once."""
        return self.of.most_sizes.get(self.partition, 0)


class HeldResults(SentResults):
    """What suppress lets go of the results of a compiled run."""

    def __init__(
        self, settings: Suppression, windows: WindowKind, aggregations: Mapping[str, Aggregation], results: SentResults
    ) -> None:
        super().__init__(results.outcome, results.make_sent, flushed=results.flushed)
        self._settings, self._windows, self._aggregations, self._given = settings, windows, aggregations, results
        if settings.can_fail:
            self._played  # noqa: B018  # a full buffer stops the application before it commits

    @property
    def buffers(self) -> Sequence[HeldBuffer]:  # type: ignore[override]
        """One a partition."""
        return [HeldBuffer(self, number) for number in self.outcome.batch.partitions.tolist()]

    @cached_property
    def _played(self) -> tuple[_RowSuppressor, Mapping[str, Any]]:
        return self._play(weighed=self._settings.counts_bytes)

    def _play(self, *, weighed: bool) -> tuple[_RowSuppressor, Mapping[str, Any]]:
        stage, columns = _RowSuppressor(self._settings, self._windows, self._aggregations), self._columns()
        if weighed:
            columns |= weights_of(self.outcome, self._given.sent, self._aggregations)
        return stage, stage.step(columns)

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

    @cached_property
    def sent(self) -> Sent:
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
        stage = self.stage if self._settings.counts_bytes else self._play(weighed=True)[0]
        return stage.most_bytes_in_each


class ReplayedResults(LazyRows[Forwarded]):
    """What buffers let go that a restart takes over: result by result, as values may be of a life before."""

    def __init__(
        self,
        settings: Suppression,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        results: SentResults,
        how: Life,
    ) -> None:
        out: list[Forwarded] = []
        super().__init__(lambda: len(out), lambda: out)
        batch = results.outcome.batch
        held = SuppressedResults(settings, windows, aggregations, batch, how.buffers)
        commits = commit_rows(how, len(batch)).tolist()
        self.buffers_left = held.committed()
        for each in results:
            while commits and commits[0] < each.at:
                commits.pop(0)
                self.buffers_left = held.committed()
            out += held.put(each)
        if commits or how.restart != "killed":
            self.buffers_left = held.committed()
        self.buffers = held.buffers
        self.waiting = [each for buffer in held.buffers for each in buffer.held()]


def held_back(
    settings: Suppression | None,
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    results: SentResults,
    how: Life,
) -> SentResults | ReplayedResults:
    """The results as suppress lets them go; all of them where there is none."""
    if settings is None:
        return results
    if how.restart is not None or how.buffers:
        return ReplayedResults(settings, windows, aggregations, results, how)
    return HeldResults(settings, windows, aggregations, results)
