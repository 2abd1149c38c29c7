"""KIP-94's first form of session windows: no grace, and segments decide what can be found."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.deployments import run_deployed
from tests.headings import heading
from tests.interpreted import fewer
from tests.kinds import group_in_ms

MINUTE = 60_000


class FirstForm:
    """Kafka Streams 0.10.2 to 2.0, as its source reads: three segments, no late check, the put follows the update.

    KStreamSessionWindowAggregate, RocksDBSegmentedBytesStore and Segments of those versions; counts only.
    """

    def __init__(self, gap_ms: int, retention_ms: int) -> None:
        self._gap_ms, self._interval_ms = gap_ms, max(retention_ms // 2, MINUTE)
        self._segments: dict[int, dict[tuple[str, int, int], int]] = {}
        self._newest = -1

    def process(self, key: str, time_ms: int) -> list[tuple[str, int, int, int | None]]:
        start, end, count, merged, sent = time_ms, time_ms, 0, [], []
        for segment in self._segments.values():
            for (held, s, e), n in segment.items():
                if held == key and e >= time_ms - self._gap_ms and s <= time_ms + self._gap_ms:
                    start, end, count = min(start, s), max(end, e), count + n
                    merged.append((s, e))
        if (start, end) != (time_ms, time_ms):
            for s, e in sorted(merged, key=lambda session: session[1]):
                self._segments[e // self._interval_ms].pop((key, s, e))
                sent.append((key, s, e, None))
        number = end // self._interval_ms
        if number > self._newest - 3:
            self._newest = max(self._newest, number)
            self._segments.setdefault(number, {})[key, start, end] = count + 1
            for old in [n for n in self._segments if n <= self._newest - 3]:
                del self._segments[old]
        return [*sent, (key, start, end, count + 1)]


def run(gap_ms: int, retention_ms: int, keys: list[str], times: list[int]) -> Any:
    windows = sk.SessionWindows.until(inactivity_gap_ms=gap_ms, retention_ms=retention_ms)
    plan = group_in_ms("key").windowed_by(windows).count()
    return plan.run(pd.DataFrame({"key": pd.Series(keys, dtype="str"), "at": pd.Series(times, dtype="int64")}))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(fewer(150)))
def test_it_sends_what_kafka_sent_then(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gap = int(rng.choice([0, 1, 5, 30])) * MINUTE // 2
    retention = gap + int(rng.choice([0, 1, 7, 60])) * MINUTE
    size = int(rng.integers(1, 120))
    times = np.cumsum(rng.integers(0, max(gap, MINUTE), size)) - rng.integers(0, 8 * retention + 2, size) * (
        rng.random(size) < 0.3
    )
    times = np.maximum(times, 0).tolist()
    keys = rng.choice(["a", "b"], size).tolist()
    kafka = FirstForm(gap, retention)
    expected = [row for key, time in zip(keys, times, strict=True) for row in kafka.process(key, time)]
    changelog = run(gap, retention, keys, times).changelog()
    columns = [changelog[name].tolist() for name in ("key", "window_start_ms", "window_end_ms", "count")]
    sent = [(k, s, e, None if pd.isna(n) else int(n)) for k, s, e, n in zip(*columns, strict=True)]
    assert sent == expected


def test_a_session_is_found_while_its_segment_lives() -> None:
    """Segments of half an hour: at 1 h 29 min those from 0 min on are there, at 1 h 30 min those from 30 min on."""
    for newest, count in ((89, 2), (90, 1)):
        table = run(5 * MINUTE, 60 * MINUTE, ["a", "b", "a"], [0, newest * MINUTE, 3 * MINUTE]).table()
        assert table["count"].max() == count


def test_a_record_of_any_age_counts() -> None:
    found = run(MINUTE, 2 * MINUTE, ["a", "b", "a", "a"], [0, 10**12, 0, 5])
    assert found.metrics()["dropped-records-total"] == 0
    assert found.table()["status"].unique().tolist() == ["open"]
    assert "would have taken it, but was forgotten: a session can be found until" in str(found.explain(offset=2))
    assert "forgotten" not in str(found.explain(offset=0))
    found.trace.check()


def test_its_pictures_have_no_close_line() -> None:
    found = run(5 * MINUTE, 60 * MINUTE, ["a", "b", "a"], [0, 90 * MINUTE, 3 * MINUTE])
    for figure in (found.plane(key="a"), found.lanes()):
        assert "retention 1 h and no grace" in heading(figure)
        assert "until stream time is 1 h to 1 h 30 min past its end" in heading(figure)
        assert not [trace.name for trace in figure.data if "close" in trace.name and trace.x]


def test_as_a_value() -> None:
    windows = sk.SessionWindows.until(inactivity_gap="5min", retention="1h")
    assert repr(windows) == 'SessionWindows.until(inactivity_gap="5m", retention="1h")'
    assert windows == sk.SessionWindows.until(inactivity_gap_ms=300_000, retention_ms=3_600_000)
    assert len({windows, sk.SessionWindows.until(inactivity_gap="5min", retention="2h")}) == 2
    plan = group_in_ms("key", unit=None).windowed_by(windows).count()
    assert plan.with_windows(retention="2h").windows.until_ms == 7_200_000
    with pytest.raises(InvalidArgument, match="no such parameter; got 'grace'"):
        plan.with_windows(grace="1h")


@pytest.mark.parametrize(("change", "telling"), [
    (lambda plan, data: plan.emit("on_window_close").run(data), "these windows have no final results"),
    (run_deployed, r"Kafka 4\.4\.0 has no until"), (sk.audit, r"Kafka 4\.4\.0 has no until"),
    (lambda plan, data: plan.run(data, retention="3h"), "these windows bring their own retention"),
])  # fmt: skip
def test_what_does_not_go_together(change: Any, telling: str) -> None:
    windows = sk.SessionWindows.until(inactivity_gap="5min", retention="1h")
    plan = group_in_ms("key").windowed_by(windows).count()
    with pytest.raises((InvalidArgument, NotBuilt), match=telling):
        change(plan, pd.DataFrame({"key": ["a"], "at": [1]}))


def test_two_records_a_gap_apart_are_one_session() -> None:
    """An odd retention has segments of a millisecond less than its half: then it must be a little longer."""
    with pytest.raises(InvalidArgument, match="retention must cover a gap; got 2 min 1 ms; at least"):
        sk.SessionWindows.until(inactivity_gap_ms=120_001, retention_ms=120_001)
    assert run(120_001, 120_002, ["a", "a"], [59_999, 180_000]).table()["count"].tolist() == [2]


def test_a_record_of_any_age_counts_at_the_end_of_time() -> None:
    assert run(1, 2**62, ["a", "b"], [2**63 - 10, 5]).metrics()["dropped-records-total"] == 0


def test_retention_covers_a_gap() -> None:
    with pytest.raises(InvalidArgument, match="retention must cover a gap; got 1 min; at least inactivity_gap = 5 min"):
        sk.SessionWindows.until(inactivity_gap="5min", retention="1min")


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_it_goes_on_where_it_stopped(kind: str, tmp_path: Any) -> None:
    keys, times = ["a", "b", "a", "a", "b", "a"], [0, 40, 3, 70, 119, 30]
    data = pd.DataFrame({"key": keys, "at": [t * MINUTE for t in times]})
    windows = sk.SessionWindows.until(inactivity_gap="5min", retention="1h")
    plan = group_in_ms("key").windowed_by(windows).count()
    options = {"directory": tmp_path} if kind == "rocksdb" else {}
    with sk.open_store(kind, "s", **options) as store:
        parts = [plan.run(data[i : i + 1], store=store).changelog() for i in range(len(data))]
    columns = ["key", "what", "window_start_ms", "window_end_ms", "count"]
    assert pd.concat(parts)[columns].reset_index(drop=True).equals(plan.run(data).changelog()[columns])
