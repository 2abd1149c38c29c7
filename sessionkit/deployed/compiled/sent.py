"""What a compiled run did, as the sequences that `Deployed` has; their rows are made when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.deployed.recorder import Forwarded, Result
from sessionkit.engine.outcome import Outcome
from sessionkit.trace.sent import BEGINS, NO_VALUE, WHATS, Sent, with_last_touches
from sessionkit.trace.window_trace import WindowTrace

T = TypeVar("T")


class LazyRows(Sequence[T], Generic[T]):
    """So many rows, all made at the first time that one is asked for."""

    def __init__(self, count: Callable[[], int], make: Callable[[], Sequence[T]]) -> None:
        self._count, self._make = count, make

    @cached_property
    def _rows(self) -> Sequence[T]:
        return self._make()

    def __len__(self) -> int:
        return self._count()

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]


class SentResults(LazyRows[Forwarded]):
    """The results of a compiled run: columns, and rows like those that a processor forwards."""

    buffers: Sequence[Any] = ()  # of suppress, one a partition
    buffers_left: Sequence[Any] = ()  # the same as the last commit before a restart has them
    waiting: Sequence[Forwarded] = ()  # what they hold back at the end

    def __init__(
        self,
        outcome: Outcome,
        make: Callable[[], Sent],
        finals: Callable[[], tuple[Codes, Longs]] | None = None,
        *,
        flushed: bool = False,
    ) -> None:
        """`finals` gives (the window, the record) of each, in any order, where no window changes once it was sent."""
        self.outcome, self.flushed, self.make_sent, self.finals = outcome, flushed, make, finals

    @cached_property
    def sent(self) -> Sent:
        """The results as columns."""
        return self.make_sent()

    @property
    def forwarded(self) -> Sequence[Forwarded]:
        """What goes downstream."""
        return self

    def __len__(self) -> int:
        in_order = self.finals is None or "sent" in self.__dict__
        return len(self.sent.at) if in_order else len(self.finals()[0])  # type: ignore[misc]

    @cached_property
    def _rows(self) -> Sequence[Forwarded]:
        return rows_of(self.outcome, self.sent, flushed=self.flushed)


class ResultsOfLives(LazyRows[Forwarded]):
    """Results of several lives of a task, in one order.

    Args:
        lives: what each life forwards, the last one behind the others.
        life: gives that of each result.
        part: (a life, places) → the results of that life at these places.
        sent_at: gives the record of the last life by which each goes out; None: it is told by that of its own.
    """

    def __init__(
        self,
        lives: Sequence[SentResults],
        life: Callable[[], Longs],
        part: Callable[[int, Longs], Sent],
        sent_at: Callable[[], Longs] | None = None,
    ) -> None:
        super().__init__(lambda: len(life()), self._make)
        self._lives, self._life, self._part, self.sent_at = lives, life, part, sent_at

    @property
    def parts(self) -> list[tuple[Longs, SentResults, Sent]]:
        """(places, a life, its results there) of each life that has some; of no results the last one."""
        life, found = self._life(), []
        for number in np.unique(life).tolist() or [len(self._lives) - 1]:
            places = np.flatnonzero(life == number)
            found.append((places, self._lives[number], self._part(number, places)))
        return found

    def _make(self) -> list[Forwarded]:
        rows: list[Any] = [None] * len(self)
        for places, results, sent in self.parts:
            made = rows_of(results.outcome, sent, flushed=results.flushed)
            for place, row in zip(places.tolist(), made, strict=True):
                rows[place] = row
        if self.sent_at is None:
            return rows
        return [row._replace(at=at) for row, at in zip(rows, self.sent_at().tolist(), strict=True)]


def rows_of(outcome: Outcome, sent: Sent, *, flushed: bool) -> list[Forwarded]:
    """Results as rows like those that a processor forwards."""
    sent, codes = with_last_touches(sent, outcome.kept_trace), outcome.window_columns
    keys, partitions = outcome.keys.to_pylist(), codes.partition[sent.window].tolist()
    columns = (sent.what, sent.start_ms, sent.end_ms, sent.timestamp_ms, sent.at, codes.key[sent.window])
    old = (sent.old(), sent.window)
    replaced = old if sent.replaced is None else sent.replaced()
    values = aggregates_at(outcome, (sent.step, sent.window), old, replaced)
    rows = zip(*(column.tolist() for column in columns), partitions, *values, strict=True)
    return [
        Forwarded(at, partition, keys[key], Result(WHATS[what], start, end, value, time, old, before), flushed)
        for what, start, end, time, at, key, partition, value, old, before in rows
    ]


def aggregates_at(outcome: Outcome, *asked: tuple[Longs, Codes]) -> list[list[Any]]:
    """The aggregates of windows after these steps, as functions would have made them: a list for each that is asked."""
    trace: Any = outcome.kept_trace
    is_windows = isinstance(trace, WindowTrace)
    steps_of = ("running_touches", trace.touches) if is_windows else ("running", trace.window, trace.merges)
    lists = [(steps.tolist(), windows.tolist()) for steps, windows in asked]
    found: list[list[list[Any]]] = [[] for _ in lists]
    for fold in outcome.folds.values():
        after, loaded = fold.running_aggregates(*steps_of)  # type: ignore[union-attr]  # they are compiled
        others = {BEGINS: fold.begun, NO_VALUE: None}  # type: ignore[union-attr]
        for named, own in zip(found, lists, strict=True):
            named.append(
                [
                    after[s] if s >= 0 else others[s] if s in others else loaded[w] if w < len(loaded) else None
                    for s, w in zip(*own, strict=True)
                ]
            )
    return [named[0] if len(named) == 1 else _together(outcome, named) for named in found]


def _together(outcome: Outcome, named: list[list[Any]]) -> list[Any]:
    """Several aggregates of each as one, by their names; null where all of them are."""
    rows = zip(*named, strict=True)
    return [None if all(v is None for v in each) else dict(zip(outcome.folds, each, strict=True)) for each in rows]
