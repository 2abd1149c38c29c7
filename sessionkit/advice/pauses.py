"""The pauses between records of one key: how often each length occurs, and which lengths part keys, not visits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.records.batch import RecordBatch
from sessionkit.records.time_statistics import usual_span

OWN_PACE, FEWEST_OF_A_PACE = 0.9, 20  # of the pauses of a key are longer than a gap, if it is slow; of so many


@dataclass(frozen=True)
class Pauses:
    """How often each length occurs.

    `parts_keys` says of gaps whether most of the pauses that are longer are those of keys which hardly have shorter
    ones.
    """

    lengths: Longs  # in ms, rising, each once
    counts: Longs
    parts_keys: Callable[[list[int]], list[bool]]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def median(self) -> float:
        """The middle one, or the mean of the two in the middle."""
        middle = np.searchsorted(np.cumsum(self.counts), [(self.total - 1) // 2, self.total // 2], "right")
        return float(self.lengths[middle].mean())

    def share(self, mask: Flags) -> float:
        """The share of pauses whose lengths are under the mask."""
        return float(self.counts[mask].sum() / self.total)


def pauses_of(batch: RecordBatch) -> Pauses:
    """The pauses of these records."""
    pauses, of = keyed_pauses(batch, usual_span(batch.timestamp_ms[batch.usable]))
    return Pauses(*np.unique(pauses, return_counts=True), partial(_part_keys, pauses, of))


def keyed_pauses(batch: RecordBatch, span: tuple[int, int]) -> tuple[Longs, Codes]:
    """The times between neighbouring records of one key and partition, in ms, and the code of the key of each.

    None for records of the same time, and none beside one outside the `span`: a clock that is far off makes no pause.
    """
    order = np.lexsort((batch.timestamp_ms, batch.partition, batch.key))
    order = order[(batch.usable & (batch.timestamp_ms >= span[0]) & (batch.timestamp_ms <= span[1]))[order]]
    key, partition, times = batch.key[order], batch.partition[order], batch.timestamp_ms[order]
    same = (key[1:] == key[:-1]) & (partition[1:] == partition[:-1])
    pauses: Longs = np.diff(times)[same]
    return pauses[pauses > 0], key[1:][same][pauses > 0]


def _part_keys(pauses: Longs, of: Codes, gaps_ms: list[int]) -> list[bool]:
    many, found = np.bincount(of), []
    for gap_ms in gaps_ms:
        slow = np.bincount(of, pauses > gap_ms)
        own = (many >= FEWEST_OF_A_PACE) & (slow >= OWN_PACE * many)
        found.append(bool(2 * slow[own].sum() > slow.sum() and not own[many > 0].all()))
    return found
