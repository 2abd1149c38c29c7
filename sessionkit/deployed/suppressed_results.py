"""Suppress behind the processors: what they forward waits in a buffer for each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionkit.aggregations.contract import Aggregation
from sessionkit.deployed.recorder import Forwarded
from sessionkit.records.batch import RecordBatch
from sessionkit.suppression.buffer import Entry, Full, TimeOrderedBuffer
from sessionkit.suppression.settings import Suppression
from sessionkit.suppression.stage import FIXED_BYTES, buffer_full, windowed_key
from sessionkit.windows.contract import WindowKind


class SuppressedResults:
    """The buffers of suppress behind the processors; `held` are those of the life before, restored."""

    def __init__(
        self,
        settings: Suppression,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        batch: RecordBatch,
        held: Sequence[TimeOrderedBuffer[Forwarded]] = (),
    ) -> None:
        self._settings, self._aggregations, self._batch = settings, aggregations, batch
        self._holds = windows.holds
        waits_ms = settings.waits_ms(windows)
        self.buffers = list(held) or [TimeOrderedBuffer[Forwarded](settings, waits_ms) for _ in batch.partitions]

    def put(self, new: Forwarded) -> list[Forwarded]:
        """Takes a result in; gives those that go out with it, as sent by its record. BufferFull without room."""
        result = new.result
        new = new._replace(offset=int(self._batch.offset[new.at]))
        is_silent = result.what == "tombstone" or self._is_null(result.aggregate)
        raw = windowed_key(new.key, result.window_start_ms, result.window_end_ms, self._holds)
        shown = None if is_silent else self._shown(result.aggregate)
        entry = Entry(new, FIXED_BYTES + len(raw), is_silent, shown, self._shown(result.replaced))
        buffer = self.buffers[new.partition]
        try:
            out = list(buffer.put(raw, entry, end_ms=result.window_end_ms, timestamp_ms=result.timestamp_ms))
        except Full as full:
            number, offset = int(self._batch.partitions[new.partition]), int(self._batch.offset[new.at])
            raise buffer_full(self._settings, number, offset, full.records, full.size) from None
        return [self._sent(each, new) for each in out]

    def committed(self) -> list[TimeOrderedBuffer[Forwarded]]:
        """Notes a commit; the buffers as the next life of the task finds them if it begins here."""
        return [buffer.committed() for buffer in self.buffers]

    def _sent(self, held: Forwarded, by: Forwarded) -> Forwarded:
        what = "final" if self._settings.is_final else held.result.what
        return held._replace(
            at=by.at, flushed=by.flushed, offset=-1, result=held.result._replace(what=what, old=None, replaced=None)
        )

    def _is_null(self, aggregate: Any) -> bool:
        if len(self._aggregations) == 1 or aggregate is None:
            return aggregate is None
        return all(each is None for each in aggregate.values())

    def _shown(self, aggregate: Any) -> Any:
        named = self._aggregations
        if self._is_null(aggregate):
            return None
        if len(named) == 1:
            return next(iter(named.values())).result(aggregate)
        return {name: each.result(aggregate[name]) for name, each in named.items()}
