"""What Kafka Streams 4.4 restores of a changelog: not what is older than its last entry by more than the retention."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from tests.deployments import processor_only

BEGIN_MS = 1_767_225_600_000
SESSIONS = sk.SessionWindows(inactivity_gap="7ms", grace="1ms")


def run(windows: Any, rows: list[tuple[str, int]], emit: str = "on_window_close", **told: Any) -> list[tuple[Any, ...]]:
    """(key, start, value) of each result, by times from the beginning on."""
    frame = pd.DataFrame(rows, columns=["key", "at"])
    frame["at"] = pd.to_datetime(frame["at"] + BEGIN_MS, unit="ms", utc=True)
    plan = sk.group_by_key("key", timestamp="at").windowed_by(windows).emit(emit).count()
    sent = plan.run(frame, deployment=sk.Deployment.plain(**told)).changelog()
    start = (sent["window_start"].astype("datetime64[ms, UTC]").astype("int64") - BEGIN_MS).tolist()
    return list(zip(sent["key"], start, sent["count"].tolist(), strict=True))


@pytest.mark.parametrize("by", ["kernels", "processor"])
@pytest.mark.parametrize(
    ("retention", "again"), [("52ms", [("a", 107), ("b", 126)]), ("51ms", [("b", 126)]), ("23ms", [("b", 126)])]
)
def test_a_crash_sends_again_only_what_is_restored(by: str, retention: str, again: list[tuple[str, int]]) -> None:
    """Found beside a broker: 4.4 began to restore behind the session of 107, whose result waits for nothing more."""
    rows = [("a", 18), ("a", 107), ("b", 126), ("a", 131), ("a", 159), ("a", 187)]
    told = {"commit_every": [1, 5], "restarts": [(4, "killed")], "retention": retention}
    with processor_only() if by == "processor" else nullcontext():
        sent = run(SESSIONS, rows, store="rocksdb", **told)
    first = [("a", 18, 1), ("a", 107, 1), ("b", 126, 1), ("a", 131, 1)]
    assert sent[: len(first)] == first
    assert [each[:2] for each in sent[len(first) :] if each[1] <= 126] == again


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
@pytest.mark.parametrize(("last", "count"), [(35, 3), (36, 1)])
def test_a_window_that_is_not_restored_begins_anew(store: str, last: int, count: int) -> None:
    """The window from 10 has its last entry at 11; with one at 36 behind it the restore begins at 12."""
    rows = [("a", 10), ("a", 11), ("b", last), ("a", 12)]
    windows, restarts = sk.TimeWindows(size="10ms", grace="0ms"), [(2, "changelog")]
    sent = run(windows, rows, "on_window_update", store=store, commit_every=[2, 3], restarts=restarts, retention="24ms")
    assert sent[-1] == ("a", 10, count)


@pytest.mark.parametrize("by", ["kernels", "processor"])
@pytest.mark.parametrize(("later", "again"), [(0, 1), (59_800, 1), (60_000, 0)])
def test_a_stop_in_peace_tells_the_next_crash_how_much_is_on_the_disk(by: str, later: int, again: int) -> None:
    """For as long as a segment is left that was there then: cases 633 of seed 126, and 273 of seed 122."""
    rows = [("a", 18), ("a", later + 107), ("b", later + 126), ("a", later + 131), ("a", later + 159)]
    told: dict[str, Any] = {"store": "rocksdb", "commit_every": [1, 4], "retention": "23ms"}
    with processor_only() if by == "processor" else nullcontext():
        one = run(SESSIONS, rows, restarts=[(3, "killed")], **told)
        both = run(SESSIONS, rows, restarts=[(0, "disk"), (3, "killed")], **told)
    sent = ("a", later + 107, 1)
    assert (one.count(sent), both.count(sent)) == (1, 1 + again)


@pytest.mark.parametrize(("filled", "count"), [(1, 2), (0, 1)])
def test_a_store_that_was_filled_before_knows_how_much_is_on_its_disk(tmp_path: Path, filled: int, count: int) -> None:
    frame = pd.DataFrame([("a", 18), ("a", 107), ("b", 126), ("a", 131), ("a", 159)], columns=["key", "at"])
    frame["at"] = pd.to_datetime(frame["at"] + BEGIN_MS, unit="ms", utc=True)
    plan = sk.group_by_key("key", timestamp="at").windowed_by(SESSIONS).emit("on_window_close").count()
    told: dict[str, Any] = {"commit_every": [1, 4], "retention": "23ms", "restarts": [(3, "killed")]}
    with sk.open_store("rocksdb", "sessions", time_ordered=True, directory=tmp_path / "s", retention="23ms") as store:
        plan.run(frame.iloc[:filled], store=store)
        run = plan.run(frame, store=store, deployment=sk.Deployment.plain(store="rocksdb", **told))
    starts = run.changelog()["window_start"].astype("datetime64[ms, UTC]").astype("int64") - BEGIN_MS
    assert starts.tolist().count(107) == count


def test_windows_are_found_again_up_to_the_last_time_that_there_is() -> None:
    """Beyond 2**62 ms none was: case 657 of seed 122."""
    windows, at = sk.SessionWindows(inactivity_gap="1ms", grace="0ms"), 2**62 - BEGIN_MS
    rows = [{"key": "a", "at": BEGIN_MS + at + more} for more in (0, 5)]
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(windows).emit("on_window_close").count()
    how = sk.Deployment.plain(store="rocksdb", restarts=[(0, "changelog")])
    assert plan.run(rows, deployment=how).metrics()["window-aggregate-final-emit-total"] == 1


@pytest.mark.parametrize(("caching", "session"), [(False, ("a", 100, 4)), (True, ("a", 105, 1))])
def test_a_cache_writes_a_session_at_the_time_of_its_last_record(caching: bool, session: tuple[str, int, int]) -> None:
    """Without one the record of 104 has an entry of its own, so that the session's last one lies behind that."""
    rows = [("a", 100), ("a", 104), ("a", 101), ("b", 200), ("a", 105)]
    told: dict[str, Any] = {"store": "memory", "commit_every": [2, 3, 4], "retention": "97ms"}
    sent = run(SESSIONS, rows, "on_window_update", caching=caching, restarts=[(3, "disk")], **told)
    assert sent[-1] == session


@pytest.mark.parametrize("by", ["kernels", "processor"])
def test_a_record_that_is_dropped_has_no_entry(by: str) -> None:
    """Kernels took the time of the late record for that of the last entry, and so all for restored."""
    rows = [("a", 11), ("b", 69), ("a", 12), ("a", 13)]
    told: dict[str, Any] = {"store": "memory", "commit_every": [2, 3], "retention": "51ms"}
    with processor_only() if by == "processor" else nullcontext():
        windows = sk.TimeWindows(size="10ms", grace="0ms")
        sent = run(windows, rows, "on_window_update", restarts=[(2, "changelog")], **told)
    assert sent == [("a", 10, 1), ("b", 60, 1), ("a", 10, 1)]


@pytest.mark.parametrize("by", ["kernels", "processor"])
def test_a_retention_of_0_is_none_to_a_restore(by: str) -> None:
    """What random case 249 of seed 114 came to beside Kafka Streams, which then restores all."""
    windows = sk.SessionWindows(inactivity_gap="0ms", grace="0ms")
    told: dict[str, Any] = {"store": "rocksdb", "commit_every": [0, 2], "restarts": [(1, "killed")]}
    with processor_only() if by == "processor" else nullcontext():
        sent = run(windows, [("a", 0), ("a", 1), ("a", 0)], **told)
    assert sent == [("a", 0, 1), ("a", 0, 1)]
