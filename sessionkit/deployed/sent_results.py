"""What a compiled run did, as the sequences that `Deployed` has; their rows are made when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

import numpy as np

from sessionkit.deployed.recorder import Forwarded, Result
from sessionkit.engine.outcome import Outcome
from sessionkit.trace.sent import WHATS, Sent
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

    def __init__(self, outcome: Outcome, make: Callable[[], Sent]) -> None:
        self._outcome, self._make_sent = outcome, make

    @cached_property
    def sent(self) -> Sent:
        """The results as columns."""
        return self._make_sent()

    def __len__(self) -> int:
        return len(self.sent.at)

    @cached_property
    def _rows(self) -> Sequence[Forwarded]:
        sent, outcome = self.sent, self._outcome
        codes = outcome.window_columns
        keys, partitions = outcome.keys.to_pylist(), codes.partition[sent.window].tolist()
        columns = (sent.what, sent.start_ms, sent.end_ms, sent.timestamp_ms, sent.at, codes.key[sent.window])
        values = self._aggregates(np.asarray(sent.step)), self._aggregates(np.asarray(sent.old()))
        rows = zip(*(column.tolist() for column in columns), partitions, *values, strict=True)
        return [
            Forwarded(at, partition, keys[key], Result(WHATS[what], start, end, value, time, old, old))
            for what, start, end, time, at, key, partition, value, old in rows
        ]

    def _aggregates(self, steps: np.ndarray[Any, Any]) -> list[Any]:
        """The aggregate of its window after each step, as functions would have made it."""
        outcome, windows = self._outcome, self.sent.window.tolist()
        trace: Any = outcome.kept_trace
        is_windows = isinstance(trace, WindowTrace)
        asked = ("running_touches", trace.touches) if is_windows else ("running", trace.window, trace.merges)
        named = []
        for fold in outcome.folds.values():
            after, loaded = fold.running_aggregates(*asked)  # type: ignore[union-attr]  # they are compiled
            own = zip(steps.tolist(), windows, strict=True)
            named.append([after[s] if s >= 0 else loaded[w] if s == -1 and w < len(loaded) else None for s, w in own])
        if len(named) == 1:
            return named[0]
        together = zip(*named, strict=True)
        return [
            None if all(v is None for v in each) else dict(zip(outcome.folds, each, strict=True)) for each in together
        ]
