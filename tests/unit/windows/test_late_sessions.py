"""The three things that can become of a record that is behind stream time, and the clock that decides."""

import pandas as pd
import pytest

import sessionkit as sk
from tests.deployments import run_by

RULES = ["sessionkit", "kafka"]
PLAN = (
    sk.group_by_key("user", timestamp="at", timezone="UTC", times="ms")
    .windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="10m"))
    .count()
)


def decided(*times: str, rules: str = "sessionkit", users: str = "") -> list[str]:
    frame = pd.DataFrame(
        {"user": list(users or "a" * len(times)), "at": pd.to_datetime(list(times), utc=True, format="ISO8601")}
    )
    records = run_by(PLAN, frame, rules=rules, retention="1d").trace.records()
    columns = (records[name].to_pylist() for name in ("decision", "reason"))
    return [reason or decision for decision, reason in zip(*columns, strict=True)]


@pytest.mark.parametrize("rules", RULES)
def test_inside_the_reach_of_an_open_session(rules: str) -> None:
    """It is half an hour behind, and counts: its session is still open."""
    found = decided("2024-05-01 10:00", "2024-05-01 10:25", "2024-05-01 09:55", rules=rules)
    assert found == ["opened", "added", "added"]


@pytest.mark.parametrize("rules", RULES)
def test_beyond_the_close_time(rules: str) -> None:
    """Gap and grace are over for it, and no open session is near."""
    found = decided("2024-05-01 10:00", "2024-05-01 10:41", "2024-05-01 10:00:59", rules=rules)
    assert found == ["opened", "opened", "late"]


@pytest.mark.parametrize("rules", RULES)
def test_before_the_close_time_with_no_session_near(rules: str) -> None:
    """It is behind stream time, but not by gap and grace: it opens a session of its own."""
    found = decided("2024-05-01 10:00", "2024-05-01 10:41", "2024-05-01 10:01", rules=rules, users="aab")
    assert found == ["opened", "opened", "opened"]


@pytest.mark.parametrize("rules", RULES)
def test_stream_time_is_the_greatest_event_time_and_not_the_time_of_arrival(rules: str) -> None:
    """However long nothing arrives, nothing closes; one record of another key that is ahead closes all at once."""
    quiet = decided("2024-05-01 10:00", "2024-05-01 10:00:01", rules=rules)
    assert quiet == ["opened", "added"]
    ahead = decided("2024-05-01 10:00", "2024-05-01 12:00", "2024-05-01 10:00:01", rules=rules, users="aba")
    assert ahead == ["opened", "opened", "late"]
