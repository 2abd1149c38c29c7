"""A record cache of few entries: what a read uses, what goes, and when a put that the store refuses is counted.

What is expected here is what Kafka Streams 4.4.0 answered; the random comparison asks it about many more.
"""

from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.deployments import A_SESSION, A_WINDOW, run_deployed
from tests.kinds import group_in_ms, table_of


def _run(windows: Any, rows: list[tuple[str, int]], *, emit: str = "on_window_update", **options: Any) -> sk.Run:
    partitions = options.pop("partitions", [0] * len(rows))
    placed = [(*row, partition, offset) for offset, (row, partition) in enumerate(zip(rows, partitions, strict=True))]
    table = table_of(placed, key=None, time=pa.int64(), partition=pa.int64(), offset=pa.int64())
    plan = group_in_ms("key", timestamp="time", partition="partition", offset="offset")
    return run_deployed(plan.windowed_by(windows).emit(emit).aggregate(n=sk.count()), table, **options)


def room(count: int, size: int = A_WINDOW) -> str:
    """A cache with room for so many entries of so many bytes."""
    return f"{count * size}B"


def _sent(run: sk.Run) -> list[tuple[Any, ...]]:
    """(at which record, key, start) of all that was forwarded."""
    rows = run.changelog().to_pylist()
    assert run.deployed is not None
    return [
        (sent.at, row["key"], row["window_start_ms"]) for sent, row in zip(run.deployed.forwarded, rows, strict=True)
    ]


def test_a_range_read_uses_what_it_goes_through() -> None:
    """The read for c goes backward through the cache in memory: b, the older one, was used last, so a goes first."""
    windows = sk.SlidingWindows(time_difference_ms=10, grace_ms=100)
    run = _run(windows, [("b", 20), ("a", 25), ("c", 31)], retention="1000ms", caching=room(2))
    assert _sent(run) == [(2, "a", 15), (2, "b", 10), (2, "c", 21)]


def test_a_read_of_a_key_on_disk_uses_no_other_key(tmp_path: Any) -> None:
    windows = sk.SlidingWindows(time_difference_ms=10, grace_ms=100)
    with sk.open_store("rocksdb", "w", of="windows", directory=tmp_path, retention="1000ms") as store:
        run = _run(windows, [("b", 20), ("a", 25), ("c", 31)], store=store, caching=room(2))
        assert _sent(run) == [(2, "b", 10), (2, "a", 15), (2, "c", 21)]


def test_a_put_that_is_refused_at_an_eviction_counts_at_its_record() -> None:
    windows = sk.SessionWindows(inactivity_gap_ms=1, grace_ms=2)
    run = _run(windows, [("002", 104), ("000", 101), ("002", 105)], caching=room(1, A_SESSION + 2))
    assert run.deployed is not None and run.deployed.refused == (1,)


def test_a_deletion_of_nothing_moves_the_stores_time_on_close() -> None:
    """On close nothing is forwarded by a flush, and Kafka then leaves no put out: the window from 0 expires by it."""

    def null_at_ten(key: str, value: int, aggregate: int) -> int | None:
        return None if value == 10 else aggregate + value

    own = sk.aggregation(initializer=int, aggregator=null_at_ten, merger=lambda key, a, b: a + b, value="v")
    plan = group_in_ms("key", timestamp="time").windowed_by(sk.TimeWindows(size_ms=2, advance_ms=1, grace=0))
    table = pa.table({"key": ["a", "a"], "time": pa.array([0, 2], pa.int64()), "v": pa.array([1, 10], pa.int64())})
    run = run_deployed(plan.emit("on_window_close").aggregate(own=own), table, caching=room(2), commit_every=1)
    assert list(run._store.all()) == []


def test_partitions_share_the_entries_and_the_one_that_is_written_to_gives_its_own() -> None:
    windows = sk.TimeWindows(size_ms=10, grace_ms=100)
    rows = [("a", 0), ("b", 0), ("c", 10), ("d", 20)]
    run = _run(windows, rows, retention="1000ms", caching=room(2), partitions=[0, 1, 0, 1])
    # c makes a go, of its own partition, and d makes b go, though c was used before it
    assert _sent(run) == [(2, "a", 0), (2, "c", 10), (3, "b", 0), (3, "d", 20)]


def test_a_window_that_is_evicted_while_it_is_looked_for_is_looked_for_in_the_store() -> None:
    """With one entry each update of a record evicts what the same record still has to update."""
    windows = sk.SlidingWindows(time_difference_ms=10, grace_ms=100)
    rows = [("a", time) for time in (20, 22, 24, 26, 25, 23, 30)]
    limited = _run(windows, rows, retention="1000ms", caching=room(1), commit_every=1)
    unlimited = _run(windows, rows, retention="1000ms", caching=True, commit_every=1)
    assert [tuple(each) for each in limited._store.all()] == [tuple(each) for each in unlimited._store.all()]


def test_a_final_result_goes_out_twice_where_kafka_sends_it_twice() -> None:
    """Kafka's cache over a store in memory has keys and times in one row of bytes: merged with the store's order, the
    key that begins with the other and goes on with NUL bytes comes before it, and again behind it."""
    windows = sk.TimeWindows(size_ms=1, grace=0)
    rows = [("a", 5), ("a\x00", 5), ("a", 7)]
    options = {"retention": "1s", "caching": True, "commit_every": 1}
    run = _run(windows, rows, emit="on_window_close", **options)
    assert _sent(run) == [(2, "a\x00", 5), (2, "a", 5), (2, "a\x00", 5)]


@pytest.mark.parametrize("caching", [-1, 2.5, "10"])
def test_a_cache_has_a_number_of_entries(caching: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"caching (must be|is no)|a cache needs a unit"):
        _run(sk.TimeWindows(size_ms=1, grace=0), [("a", 0)], caching=caching)


def test_a_key_that_goes_on_with_a_low_byte_is_read_once() -> None:
    """Sessions of two keys that end together are merged as Kafka compares them, by key, end and start in one row.

    With the starts turned round, as the store in memory has them, the second came before the first, and again behind.
    """
    windows = sk.SessionWindows(inactivity_gap=0, grace_ms=2)
    run = _run(windows, [(b"\xff", 0), (b"\xff\x00", 0), (b"a", 0), (b"a", 1)], caching=room(3, A_SESSION + 1))
    assert [each.key for each in run._store.all()] == [b"a", b"\xff", b"\xff\x00", b"a"]


# ---- limited in bytes


@pytest.mark.parametrize("room", [1, 2])
@pytest.mark.parametrize(
    ("windows", "size"),
    [
        (sk.TimeWindows(size_ms=10, grace_ms=1_000), A_WINDOW),
        (sk.SessionWindows(inactivity_gap_ms=3, grace_ms=1_000), A_SESSION),
    ],
)
def test_entries_fit_to_the_byte(windows: Any, size: int, room: int) -> None:
    """So many entries are there; one byte less, and the next put makes one go, which flushes all."""

    def sent(caching: str) -> list[tuple[Any, ...]]:
        return _sent(_run(windows, [("a", 5), ("a", 15), ("a", 25)], retention="1h", caching=caching))

    assert sent(f"{room * size}B") == sent(f"{(room + 1) * size - 1}B")
    assert [at for at, *_ in sent(f"{room * size}B")] == {1: [1, 1, 2], 2: [2, 2, 2]}[room]
    assert [at for at, *_ in sent(f"{room * size - 1}B")] == {1: [0, 1, 2], 2: [1, 1, 2]}[room]


def test_no_bytes_at_all_are_a_cache_that_keeps_nothing() -> None:
    windows = sk.TimeWindows(size_ms=10, grace_ms=1_000)
    assert _sent(_run(windows, [("a", 5), ("a", 6)], retention="1h", caching="0B")) == [(0, "a", 0), (1, "a", 0)]
