"""Which retentions lose nothing: as intervals, exact, held against a replay of every single one."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits import retentions
from sessionkit.audits.retentions import Safe
from sessionkit.audits.words import _longer
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.stores import segments
from tests.deployments import audit_deployed
from tests.interpreted import ALL

CLOSE, UPDATE = "on_window_close", "on_window_update"
BY_KEY = sk.group_by_key("key", timestamp="time", unit="ms")


def audit_of(windows: Any, rows: list[tuple[str, int]], emit: str = CLOSE, **options: Any) -> sk.Audit:
    key, time = zip(*rows, strict=True)
    table = pa.table({"key": pa.array(key, pa.string()), "time": pa.array(time, pa.int64())})
    bare = {"store": "memory", "caching": False, "commit_interval": None, "emit_interval": "0s"}
    return audit_deployed(BY_KEY.windowed_by(windows).emit(emit).count(), table, **{**bare, **options})


def test_a_longer_retention_may_lose_what_a_shorter_one_keeps() -> None:
    """RocksDB's segments are half of the retention long, and begin elsewhere with each."""
    windows = sk.SessionWindows(inactivity_gap=0, grace=0)
    audit = audit_of(windows, [("a", 258_000), ("b", 980_000)], store="rocksdb")
    assert audit.smallest_retention_ms == 490_001
    assert audit.safe_retentions_ms == [(490_001, 516_001), (653_334, None)]
    assert audit.recommended_retention_ms == 653_334
    assert audit.unknown_retentions_ms == []
    for retention, is_safe in ((490_000, 0), (490_001, 1), (516_001, 1), (516_002, 0), (653_333, 0), (653_334, 1)):
        assert audit._replay(retention).loses_nothing is bool(is_safe), retention


def test_a_retention_that_cures_it_is_found() -> None:
    """With 5 and 6 the session at 60232 is gone for the flush that takes it back; any from 7 shows it."""
    windows = sk.SessionWindows(inactivity_gap_ms=5, grace=0)
    rows = [("a", 60_232), ("c", 60_238), ("a", 60_234)]
    audit = audit_of(windows, rows, UPDATE, store="rocksdb", caching=True, commit_every=1)
    assert not audit.loses_nothing
    assert "No retention prevents this" not in repr(audit)
    assert audit.safe_retentions_ms == [(7, None)]


def test_what_a_limited_cache_uses_depends_on_segments() -> None:
    """A look for finals uses the entry behind the last one, too, if it is in its segment: another one goes first."""
    windows = sk.TimeWindows(size_ms=1, grace_ms=422_796)
    rows = [("c", 8_958_505), ("b", 9_099_442), ("b", 9_240_379), ("b", 9_804_124)]
    audit = audit_of(windows, rows, store="rocksdb", caching="270B")
    assert audit.recommended_retention_ms is not None
    safe, unknown = audit.safe_retentions_ms, audit.unknown_retentions_ms
    for retention in (422_797, 500_000, 563_744, 563_745, 700_000, 756_114, 756_115, 845_619, 845_620, 1_000_000):
        told = [any(first <= retention <= (last or retention) for first, last in each) for each in (safe, unknown)]
        assert told[1] or told[0] is audit._replay(retention).loses_nothing, retention


# ---- every single retention


def drawn(rng: Random) -> tuple[Any, list[tuple[str, int]], str, dict[str, Any]]:
    """A small deployment, with segments so short that RocksDB drops many of them."""
    grace = rng.choice([0, 0, 1, 3, 8])
    windows = rng.choice(
        [
            sk.SessionWindows(inactivity_gap_ms=rng.choice([0, 1, 3, 8]), grace_ms=grace),
            sk.TimeWindows(size_ms=rng.choice([1, 4, 10]), grace_ms=grace),
            sk.TimeWindows(size_ms=9, advance_ms=rng.choice([2, 4]), grace_ms=grace),
            sk.SlidingWindows(time_difference_ms=rng.choice([1, 3, 8]), grace_ms=grace),
        ]
    )
    late, base, now, rows = rng.choice([0, 0.3, 0.6]), rng.choice([0, 25, 1_000]), 0, []
    is_sparse = rng.random() < 0.3  # far apart, and with few segments in between
    for _ in range(rng.randint(1, 3 if is_sparse else 14)):
        now += rng.randint(0, 70) if is_sparse else rng.choice([0, 1, 1, 2, 5, 20])
        back = rng.randint(0, 12) if rng.random() < late else 0
        rows.append((rng.choice("ab"), base + max(0, now - back)))
    options: dict[str, Any] = {"store": rng.choice(["memory", "rocksdb"])}
    if rng.random() < 0.4:
        options |= {"caching": rng.choice([True, True, "100B", "300B"]), "commit_every": rng.choice([None, None, 1, 3])}
        options["commit_interval"] = rng.choice([None, "0s", "4ms", "20ms"])
    if rng.random() < 0.2:
        options["emit_interval"] = f"{rng.choice([1, 10])}ms"
    if rng.random() < 0.2:
        options["restarts"] = sorted(rng.sample(range(len(rows)), min(len(rows), 2)))
    return windows, rows, rng.choice([CLOSE, UPDATE]), options


def lossless(audit: sk.Audit, last_ms: int) -> list[tuple[int, int | None]]:
    """By a replay of each retention up to `last_ms`, from which on nothing changes."""
    lowest = audit.expected.plan.windows.retention_ms(None)
    found: list[tuple[int, int | None]] = []
    for retention in range(lowest, last_ms + 1):
        if not audit._replay(retention).loses_nothing:
            continue
        before = found.pop() if found and found[-1][1] == retention - 1 else (retention, None)
        found.append((before[0], retention if retention < last_ms else None))
    return found


def check_every_retention(seed: int) -> tuple[int, bool]:
    """(how many intervals it found, whether a longer one lost) of a deployment of this seed."""
    windows, rows, emit, options = drawn(Random(seed))
    audit = audit_of(windows, rows, emit, **options)
    newest = max(time for _, time in rows)
    last = max(newest - min(time for _, time in rows) + 30, windows.retention_ms(None)) + 1
    by_replays = lossless(audit, last)
    assert audit.unknown_retentions_ms == [], seed
    assert audit.safe_retentions_ms == by_replays, (seed, windows, rows, emit, options)
    return len(by_replays), bool(by_replays) and len(by_replays) > 1


@pytest.mark.slow
def test_intervals_are_what_every_single_retention_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MIN_INTERVAL_MS", 4)
    found = [check_every_retention(seed)[0] for seed in (range(60) if ALL else range(36, 60))]
    assert max(found) > 1, "no case in which a longer retention loses"
    assert min(found) == 0, "no case that no retention cures"


def test_words_say_which_retentions_are_safe() -> None:
    windows = sk.SessionWindows(inactivity_gap=0, grace=0)
    rows = [("a", 258_000), ("b", 980_000)]
    audit = audit_of(windows, rows, store="rocksdb")
    assert audit.words()[-1] == (
        "With a retention of 10 min 53 s 334 ms or more nothing is lost on these records: "
        "Materialized.withRetention(Duration.ofMinutes(10).plusSeconds(53).plusMillis(334)). "
        "Of the shorter ones, only these lose nothing: "
        "8 min 10 s 1 ms to 8 min 36 s 1 ms; between them segments expire too early. Found by replaying them."
    )
    lucky = audit_of(windows, rows, store="rocksdb", retention="500000ms")
    assert lucky.is_clean
    assert any(
        said.startswith("A somewhat longer retention can lose results here, where segments expire ")
        for said in lucky.words()
    )
    assert "A somewhat longer" not in repr(audit_of(windows, rows, store="rocksdb", retention="653334ms"))


def test_a_longer_retention_that_was_not_tried_is_not_said_to_lose() -> None:
    said = _longer(Safe(((1_000, 1_000), (9_000, None)), ((1_001, 8_999),)))
    assert said == "Whether a somewhat longer retention loses results here was not found out; from 9 s on none does."


def test_what_a_bounded_search_cannot_tell_is_said() -> None:
    """Times of today have millions of segment boundaries before them: each retention puts them elsewhere."""
    day, now = 86_400_000, 1_767_225_600_000
    windows = sk.SessionWindows(inactivity_gap="1h", grace=0)
    audit = audit_of(windows, [("a", now), ("b", now + 3 * day + 17)], store="rocksdb")
    (first, last) = audit.unknown_retentions_ms[0]
    assert last is not None
    assert 2 * day < first < last < (audit.recommended_retention_ms or 0) <= 3 * day + 17
    assert "is not known: RocksDB's segments can be placed in too many ways" in repr(audit)
    assert "No retention prevents this" not in repr(audit)
    for start, stop in audit.safe_retentions_ms[:3]:
        assert audit._replay(start).loses_nothing and not audit._replay(start - 1).loses_nothing
        assert audit._replay(stop or start).loses_nothing


def test_of_many_records_a_search_replays_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a limited cache each replay takes all records, and many thresholds leave the retentions undecided."""
    assert [retentions.most_replays(count) for count in (0, 500_000, 1_000_000, 10_000_000)] == [48, 48, 24, 6]
    monkeypatch.setattr(retentions, "REPLAYED_RECORDS", 0)
    asked: list[int] = []

    def replay(retention_ms: int) -> retentions.Replayed:
        asked.append(retention_ms)
        noticed = Noticed()  # each replay decides about one retention, but for the first
        noticed.more_than_ms, noticed.at_most_ms = min(retention_ms, 5_000) - 1, max(retention_ms, 5_000)
        if retention_ms < 5_000:
            noticed.at_most_ms = retention_ms
            return retentions.Replayed({"all": noticed}, (("all", noticed),))
        noticed.at_most_ms = FOREVER_MS
        return retentions.Replayed({"all": noticed}, ())

    found = retentions.safe_retentions(1_000, replay, retentions.most_replays(10))
    assert len(asked) == retentions.FEWEST_REPLAYS
    assert found.recommended_ms == 5_000
    assert found.unknown == ((1_004, 4_999),)
