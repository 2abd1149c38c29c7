"""The buffer of suppress, a result at a time, as Kafka has it: the compiled form is held against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from sortedcontainers import SortedDict

from sessionkit.stores.sizes import value_bytes
from sessionkit.suppression.settings import Suppression

Item = TypeVar("Item")


class Entry(NamedTuple, Generic[Item]):
    """A result that waits: what goes downstream, what it weighs without its values, and these.

    `old` is the value that it replaces, `prior` the one that the first result of its window replaced that waited.
    """

    item: Item
    bare_size: int
    is_silent: bool
    new: Any
    old: Any
    prior: Any = None

    @property
    def size(self) -> int:
        """How many bytes Kafka counts: an old value that is the prior one is kept once.

        Source:
            BufferValue.residentMemorySizeEstimate, ProcessorRecordContext.
        """
        old_size = 0 if repr(self.old) == repr(self.prior) else value_bytes(self.old)
        return self.bare_size + value_bytes(self.prior) + old_size + value_bytes(self.new)


class Full(Exception):
    """Raised where the buffer holds more records or bytes than it may, which stops the application."""

    def __init__(self, records: int, size: int) -> None:
        super().__init__(records, size)
        self.records, self.size = records, size


class TimeOrderedBuffer(Generic[Item]):
    """Results that wait in one partition, by their place in time and then by the bytes of their windowed key.

    Args:
        waits_ms: how far the largest timestamp of the results that came has to be past a place.
    Source:
        InMemoryTimeOrderedKeyValueChangeBuffer, KTableSuppressProcessorSupplier.
    """

    def __init__(self, settings: Suppression, waits_ms: int) -> None:
        self._settings, self._waits_ms = settings, waits_ms
        self._entries: SortedDict = SortedDict()  # (place, windowed key) → Entry
        self._place: dict[bytes, int] = {}
        self._logged: dict[bytes, int] = {}  # the places that the changelog has
        self._clock_ms = -1
        self.size = self.most_size = self.most_records = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, raw: bytes, entry: Entry[Item], *, end_ms: int, timestamp_ms: int) -> Iterator[Item]:
        """Takes a result in; gives those that go out after it.

        Args:
            raw: its windowed key. A window that waits already keeps its place.
            end_ms: of its window.
        Raises:
            Full: the buffer is, and that shuts the application down.
        """
        self._clock_ms = max(self._clock_ms, timestamp_ms)
        place = self._place.setdefault(raw, end_ms if self._settings.is_final else timestamp_ms)
        before: Entry[Item] | None = self._entries.get((place, raw))
        entry = entry._replace(prior=entry.old if before is None else before.prior)
        self._entries[place, raw] = entry
        self.size += entry.size - (0 if before is None else before.size)
        self.most_records, self.most_size = max(self.most_records, len(self)), max(self.most_size, self.size)
        while self._entries and self._entries.peekitem(0)[0][0] <= self._clock_ms - self._waits_ms:
            yield from self._first_out()
        while self._entries and self._settings.is_over(len(self), self.size):
            if self._settings.shuts_down:
                raise Full(len(self), self.size)
            yield from self._first_out()

    def committed(self) -> TimeOrderedBuffer[Item]:
        """Notes a commit; gives the buffer of a task that is started again after it, with a clock that starts anew.

        A commit writes to the changelog what has changed since the last one. A window that went out and came again
        meanwhile is written once, and its restored entry lies where the one before lay.

        Source:
            InMemoryTimeOrderedKeyValueChangeBuffer.commit, restoreBatch.
        """
        self._logged = {raw: self._logged.get(raw, place) for raw, place in self._place.items()}
        twin = TimeOrderedBuffer[Item](self._settings, self._waits_ms)
        for (_, raw), entry in self._entries.items():
            twin._entries[self._logged[raw], raw] = entry
        twin._place, twin._logged = dict(self._logged), dict(self._logged)
        twin.size = twin.most_size = self.size
        twin.most_records = len(self)
        return twin

    def held(self) -> list[Item]:
        """The results that wait, in the order in which they would go out."""
        return [entry.item for entry in self._entries.values()]

    def _first_out(self) -> Iterator[Item]:
        (_, raw), entry = self._entries.popitem(0)
        del self._place[raw]
        self.size -= entry.size
        if not (entry.is_silent and self._settings.is_final):
            yield entry.item
