"""Bids as the public generator of Nexmark makes them: one generator, 10,000 events a second, 46 bids of 50 events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import FOLDER, START_MS

EVENTS, PEOPLE, AUCTIONS = 50, 1, 3  # of so many events; all others are bids
EVENTS_A_MS = 10
FIRST_ID, LEAD = 1_000, 10
HOT = 100  # one of so many people and auctions is hot
HOT_BIDDERS, HOT_AUCTIONS = 4, 2  # all but one of so many bids are for, or by, a hot one
ACTIVE_PEOPLE, OPEN_AUCTIONS = 1_000, 100
PART = 4_600_000  # bids that are made at a time


def bids(count: int, group: int) -> Path:
    """So many bids, groups of so many events out of order. Columns: auction, bidder, price, time (milliseconds)."""
    path = FOLDER / f"nexmark-{count}-{group}.parquet"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    part, writer = path.with_suffix(".part"), None
    for begin in range(0, count, PART):
        table = _bids(begin, min(PART, count - begin), group)
        writer = writer or pq.ParquetWriter(part, table.schema)
        writer.write_table(table, row_group_size=2**20)
    assert writer is not None
    writer.close()
    part.rename(path)
    return path


def _bids(begin: int, count: int, group: int) -> pa.Table:
    rng = np.random.default_rng([2008, begin, group])
    number = np.arange(begin, begin + count)  # of bids, in order of arrival; then that of the event
    a_round = EVENTS - PEOPLE - AUCTIONS
    arrived = number // a_round * EVENTS + PEOPLE + AUCTIONS + number % a_round
    event = arrived // group * group + arrived * 953 % group
    event = np.where(event % EVENTS < PEOPLE + AUCTIONS, event + PEOPLE + AUCTIONS, event)  # it stays a bid
    rounds = event // EVENTS
    person, auction = rounds * PEOPLE + PEOPLE - 1, rounds * AUCTIONS + AUCTIONS - 1  # the last of each
    oldest = np.maximum(person + 1 - ACTIVE_PEOPLE, 0)
    any_bidder = oldest + _below(rng, person + 1 - oldest + LEAD)
    first = np.maximum(auction - OPEN_AUCTIONS, 0)
    any_auction = first + _below(rng, auction - first + 1 + LEAD)
    is_hot_bidder, is_hot_auction = rng.integers(0, HOT_BIDDERS, count) > 0, rng.integers(0, HOT_AUCTIONS, count) > 0
    columns: dict[str, Any] = {
        "auction": np.where(is_hot_auction, auction // HOT * HOT, any_auction) + FIRST_ID,
        "bidder": np.where(is_hot_bidder, person // HOT * HOT + 1, any_bidder) + FIRST_ID,
        "price": np.round(10 ** (6 * rng.random(count)) * 100).astype(np.int64),
        "time": pa.array(START_MS + event // EVENTS_A_MS, pa.timestamp("ms", tz="UTC")),
    }
    return pa.table(columns)


def _below(rng: np.random.Generator, most: np.ndarray) -> np.ndarray:
    return (rng.random(len(most)) * most).astype(np.int64)
