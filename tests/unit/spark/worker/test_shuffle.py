"""Records in no order through a shuffle of Arrow slices: all come out, by partition and rising offset."""

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.errors import InvalidData
from sessionkit.spark import BATCH_SETTINGS
from sessionkit.spark.worker import shuffle as pieces
from sessionkit.spark.worker.shuffle import ORDER, SLICES, by_block, in_order, pieces_in, slices_of


def shuffled(count: int) -> pa.Table:
    rng = np.random.default_rng(5)
    columns = {
        "offset": np.arange(count) * 3,
        "partition": (np.arange(count) % 3 + 4).astype(np.int32),
        "word": [None if i % 7 == 0 else f"w{i}" for i in range(count)],
    }
    return pa.table(columns).take(pa.array(rng.permutation(count)))


def through_a_shuffle(table: pa.Table, tasks: int, batch: int) -> dict[int, pa.Table]:
    """What comes out for each place."""
    dealt = []
    for task, rows in enumerate(np.array_split(np.arange(len(table)), tasks)):
        part = table.take(pa.array(rows)).to_batches(max_chunksize=100)
        dealt += list(by_block(part, (1, 0), ("partition", "offset"), 4, 2, task))
    rows = pa.Table.from_batches(dealt, SLICES)
    found = {}
    for place in np.unique(rows["place"].to_numpy()):
        mine = rows.filter(pa.compute.equal(rows["place"], int(place))).sort_by([(name, "ascending") for name in ORDER])
        found[int(place)] = pa.Table.from_batches(in_order(mine.combine_chunks().to_batches(batch), 0))
    return found


@pytest.mark.parametrize("batch", [1, 5, 10_000])
def test_records_come_out_in_order(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(pieces, "SLICE_BYTES", 200)
    monkeypatch.setattr(pieces, "BLOCK", 500)
    monkeypatch.setattr(pieces, "MOST_RECORDS", 300)
    table = shuffled(1_000)
    found = through_a_shuffle(table, 3, batch)
    expected = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert found[0].equals(expected.filter(pa.compute.less(expected["partition"], 6)))
    assert found[1].equals(expected.filter(pa.compute.equal(expected["partition"], 6)))


def test_what_java_holds_at_once_fits_into_a_small_heap() -> None:
    """Slices of 16 KiB ended a batch of 200 million records on a heap of 2 GiB (OutOfMemoryException)."""
    rows = int(BATCH_SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
    assert rows * pieces.SLICE_BYTES < 2**27


def test_slices_are_small_and_whole() -> None:
    table = shuffled(20_000)
    rows = slices_of(3, 7, 2, 9, table)
    sizes = [len(data) for data in rows["data"].to_pylist()]
    assert len(sizes) > 10
    assert max(sizes) == pieces.SLICE_BYTES
    (piece,) = pieces_in([rows.slice(0, 4), rows.slice(4, 0), rows.slice(4)])
    assert (piece.partition, piece.turn) == (7, 2)
    assert piece.table().equals(table)


def test_a_record_without_an_offset_is_refused() -> None:
    batch = pa.record_batch({"offset": pa.array([1, None]), "partition": pa.array([0, 0])})
    with pytest.raises(InvalidData, match="column 'off' has missing values; got 1"):
        list(by_block([batch], (1, 0), ("part", "off"), 0, 1, 0))
