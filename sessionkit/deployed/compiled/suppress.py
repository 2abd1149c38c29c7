"""Suppress behind a compiled run: its buffers over the columns of all that was sent to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, Longs, is_null, joined, taken, texts
from sessionkit.deployed.compiled.sent import LazyRows, ResultsOfLives, SentResults
from sessionkit.deployed.deployment import Life, commit_rows
from sessionkit.deployed.recorder import Forwarded
from sessionkit.deployed.suppressed_results import SuppressedResults
from sessionkit.engine.outcome import Outcome
from sessionkit.engine.sent_values import weights_of
from sessionkit.suppression.settings import Suppression
from sessionkit.suppression.stage import Suppressor, Waiting, can_be_null
from sessionkit.trace.sent import FINAL, NO_VALUE, TOMBSTONE, WHATS, Sent, running_of
from sessionkit.windows.contract import WindowKind

_LIFE, _ROW, _AFTER = "life", "row", "after"


class _RowSuppressor(Suppressor):
    """Tells what goes out by its life and its row there, and by the row of this life after which it goes."""

    def _out(self, columns: Mapping[str, Column], row: Longs, after: Longs) -> dict[str, Column]:
        order = np.argsort(after, kind="stable")
        return taken({_LIFE: columns[_LIFE], _ROW: columns[_ROW]}, row[order]) | {_AFTER: columns[_ROW][after[order]]}


class _Played(NamedTuple):
    """The buffers at the end, what went out of them, and what waits where a restart goes on."""

    stage: _RowSuppressor
    out: Mapping[str, Any]
    left: Waiting | None


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
    """What suppress lets go of the results of a compiled run; after a restart also of those of the lives before."""

    def __init__(
        self,
        settings: Suppression,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        results: SentResults,
        how: Life,
    ) -> None:
        super().__init__(results.outcome, results.make_sent, flushed=results.flushed)
        self._settings, self._windows, self._aggregations, self._given = settings, windows, aggregations, results
        self._how, self.before = how, how.buffers if isinstance(how.buffers, LeftBuffers) else None
        self.lives: tuple[SentResults, ...] = (*(() if self.before is None else self.before.held.lives), results)
        if settings.can_fail:
            self._played  # noqa: B018  # a full buffer stops the application before it commits

    @property
    def buffers(self) -> Sequence[HeldBuffer]:  # type: ignore[override]
        """One a partition."""
        return [HeldBuffer(self, number) for number in self.outcome.batch.partitions.tolist()]

    @property
    def buffers_left(self) -> LeftBuffers | tuple[()]:  # type: ignore[override]
        return () if self._how.restart is None else LeftBuffers(self)

    @cached_property
    def _played(self) -> _Played:
        return self._play(weighed=self._settings.counts_bytes)

    @cached_property
    def _weighed(self) -> _Played:
        return self._played if self._settings.counts_bytes else self._play(weighed=True)

    def _play(self, *, weighed: bool) -> _Played:
        stage, columns = _RowSuppressor(self._settings, self._windows, self._aggregations), self._columns()
        if weighed:
            columns |= weights_of(self.outcome, self._given.sent, self._aggregations)
        if self.before is not None:
            name = "_weighed" if weighed else "_played"
            _from_the_first(self, lambda held: None if held.before is None else held.before.held, name)
            stage.waiting = getattr(self.before.held, name).left
        if self._how.restart != "killed":
            out = stage.step(columns)
            return _Played(stage, out, stage.waiting)
        committed = commit_rows(self._how, len(self.outcome.batch)).max(initial=-1)
        count = int(np.searchsorted(np.maximum.accumulate(self._given.sent.at), committed, "right"))
        rows = np.arange(len(columns[_ROW]))
        out = stage.step(taken(columns, rows[:count]))
        left = stage.waiting
        return _Played(stage, joined(out, stage.step(taken(columns, rows[count:]))), left)

    @property
    def replayed(self) -> ReplayedResults:
        """The same result by result."""
        return ReplayedResults(self._settings, self._windows, self._aggregations, self._given, self._how)

    @property
    def stage(self) -> Suppressor:
        """The buffers as they are at the end."""
        return self._played.stage

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
            _LIFE: np.full(len(sent.at), len(self.lives) - 1, np.int32),
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
        return self._part(0, np.arange(len(self._sent_at)))._replace(at=self._sent_at)

    def _part(self, life: int, rows: Longs) -> Sent:
        """These of the results that went out, all of one life."""
        found = self.lives[life].sent.take(self._played.out[_ROW][rows])
        nothing = np.full(len(found.at), NO_VALUE)
        what = np.full(len(found.at), FINAL, np.uint8) if self._settings.is_final else found.what
        return found._replace(what=what, old=lambda: nothing, replaced=None)

    @property
    def _sent_at(self) -> Longs:
        at: Longs = self._given.sent.at[self._played.out[_AFTER]]
        return at

    @property
    def forwarded(self) -> SentResults | ResultsOfLives:
        """What went out, of all lives."""
        if self.before is None:
            return self
        return ResultsOfLives(self.lives, lambda: self._played.out[_LIFE], self._part, lambda: self._sent_at)

    @property
    def waiting(self) -> SentResults | ResultsOfLives:  # type: ignore[override]
        """The results that wait at the end, by partition and in the order in which they would go out."""
        if self.before is None:
            return SentResults(self.outcome, lambda: self._waiting(0, slice(None)), flushed=self.flushed)
        return ResultsOfLives(self.lives, lambda: self._held[_LIFE], self._waiting)

    def _waiting(self, life: int, rows: Any) -> Sent:
        return self.lives[life].sent.take(self._held[_ROW][rows])

    @property
    def _held(self) -> Mapping[str, Any]:
        waiting = self.stage.waiting
        assert waiting is not None, "it has played"
        return waiting.columns

    @cached_property
    def most_sizes(self) -> dict[int, int]:
        """The most bytes that waited at once in each partition."""
        return self._weighed.stage.most_bytes_in_each


class LeftBuffers(LazyRows[Any]):
    """The buffers that a restart takes over, as columns; a processor gets them with all that was put into them."""

    def __init__(self, held: HeldResults) -> None:
        super().__init__(lambda: len(held.outcome.batch.partitions), self._make)
        self.held = held

    def _make(self) -> Sequence[Any]:
        _from_the_first(self, lambda left: left.held.before, "_rows")
        return self.held.replayed.buffers_left


def _from_the_first(last: Any, before: Callable[[Any], Any], name: str) -> None:
    """Works out for each life before what it goes on with: one after the other, as too many would nest too deeply."""
    lives = []
    while (last := before(last)) is not None and name not in vars(last):
        lives.append(last)
    for each in reversed(lives):
        getattr(each, name)


class ReplayedResults(LazyRows[Forwarded]):
    """What buffers let go that a restart takes over, result by result: Kafka moves some places as it commits."""

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

    @property
    def forwarded(self) -> Sequence[Forwarded]:
        """What went out, of all lives."""
        return self


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
    is_told = settings.is_final and (not how.buffers or isinstance(how.buffers, LeftBuffers))
    if is_told or not (how.restart or how.buffers):
        return HeldResults(settings, windows, aggregations, results, how)
    return ReplayedResults(settings, windows, aggregations, results, how)
