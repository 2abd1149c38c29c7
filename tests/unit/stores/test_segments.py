"""KIP-94's segments: which one a time belongs to, which have expired, which reads look at."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.errors import InvalidArgument
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.segments import Segments


def test_kip_94_first_table() -> None:
    """With an interval of 1000, sessions that end at 0, 500, 1000 and 2000 lie in the segments 0, 0, 1 and 2."""
    segments = Segments.of(segment_interval="1000ms")
    assert [segments.id_of(end) for end in (0, 500, 1000, 2000)] == [0, 0, 1, 2]
    assert [segments.span_ms(id) for id in (0, 1)] == [(0, 999), (1000, 1999)]


def test_kip_94_second_table(tmp_path: Path) -> None:
    """Of (0,99), (101,200), (201,300) and (301,400), 150 and 300 find those that start at 101 and 201."""
    with RocksDBSessionStore(name="kip", directory=tmp_path, segment_interval="1000ms") as store:
        for start, end in ((0, 99), (101, 200), (201, 300), (301, 400)):
            store.put("key", start, end, start)
        assert [s.window_start_ms for s in store.find_sessions("key", 150, 300)] == [101, 201]
        assert [s.window_start_ms for s in store.backward_find_sessions("key", 150, 300)] == [201, 101]


@pytest.mark.parametrize(
    ("retention", "interval", "length"),
    [
        (None, None, 60_000), (0, None, 60_000), ("120001ms", None, 60_000), ("120002ms", None, 60_001),
        ("1h", None, 1_800_000), ("1h", "1ms", 1), (None, "5s", 5000),
    ],
)  # fmt: skip
def test_length_is_half_the_retention_and_a_minute_at_least(retention: object, interval: object, length: int) -> None:
    assert Segments.of(retention, interval).interval_ms == length  # type: ignore[arg-type]


def test_a_length_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="segment_interval must be 1 ms or more; got 0 ms"):
        Segments.of("1h", 0)
    with pytest.raises(InvalidArgument, match="retention must be 0 ms or more; got -1; "):
        Segments.of(-1)


@pytest.mark.parametrize(
    ("observed", "oldest"), [(-1, -3), (0, -3), (2000, -1), (2001, 0), (3999, 0), (4000, 1), (4999, 1), (60_000, 57)]
)
def test_a_segment_expires_as_a_whole(observed: int, oldest: int) -> None:
    assert Segments.of("3s", "1s").oldest_live(observed) == oldest


@given(st.integers(-(2**62), 2**63 - 1), st.integers(1, 2**40))
def test_division_is_that_of_java(time_ms: int, interval: int) -> None:
    segment = Segments(None, interval).id_of(time_ms)
    assert abs(segment) == abs(time_ms) // interval and (segment == 0 or (segment > 0) == (time_ms > 0))


def test_without_retention_nothing_expires() -> None:
    segments = Segments.of()
    assert segments.oldest_live(2**63 - 1) == 0
    assert segments.first_visible_ms(2**63 - 1) == 0


def test_what_reads_see() -> None:
    segments = Segments.of("10ms")
    assert segments.first_visible_ms(100) == 91
    assert segments.first_visible_ms(100, at_boundary=True) == 90
    assert segments.first_visible_ms(-1) == 0
