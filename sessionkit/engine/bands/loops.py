"""Compiled loops that cut the records of a run into bands of keys."""

from __future__ import annotations

from sessionkit.base.compiled import compiled_loop


@compiled_loop
def count_records(slot, place, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how many of the records each slot has, by the slots' places."""
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            counts[place[slot[i]]] += 1


@compiled_loop
def deal_records(lo, slot, place, band, following, rows, places):  # type: ignore[no-untyped-def]
    """Appends each record from `lo` on to its band: its row, and the place of its slot; `band` is that of each place.

    `following` has where the next record of each band goes.
    """
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            p = place[slot[i]]
            to = following[band[p]]
            rows[to], places[to] = lo + i, p
            following[band[p]] = to + 1


@compiled_loop
def take_times(rows, timestamp_ms, stream_time_ms, times, stair):  # type: ignore[no-untyped-def]
    """Fills `times` and `stair` with the time and the stream time of the records at `rows`."""
    for i in range(rows.shape[0]):
        row = rows[i]
        times[i] = timestamp_ms[row]
        stair[i] = stream_time_ms[row]


@compiled_loop
def sample_records(slot, every, rows):  # type: ignore[no-untyped-def]
    """Fills `rows` with the first records of each so-manieth slot (a power of two); returns how many there are."""
    count, mask = 0, every - 1
    for i in range(slot.shape[0]):
        if slot[i] >= 0 and slot[i] & mask == 0:
            rows[count] = i
            count += 1
            if count == rows.shape[0]:
                break
    return count
