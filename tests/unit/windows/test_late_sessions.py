"""The three things that can become of a record that is behind stream time, and the clock that decides."""

import pandas as pd
import pytest

import sessionkit as sk
from tests.deployments import run_by

RULES = ["sessionkit", "kafka"]
PLAN = (
    sk.group_by_key("user", timestamp="at", timezone="UTC")
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
@pytest.mark.parametrize(
    ("times", "users", "became"),
    [
        # it is half an hour behind, and counts: its session is still open
        pytest.param(("10:00", "10:25", "09:55"), "aaa", ["opened", "added", "added"], id="near an open session"),
        # gap and grace are over for it, and no open session is near
        pytest.param(("10:00", "10:41", "10:00:59"), "aaa", ["opened", "opened", "late"], id="beyond the close time"),
        # it is behind stream time, but not by gap and grace: it opens a session of its own
        pytest.param(("10:00", "10:41", "10:01"), "aab", ["opened"] * 3, id="before it with no session near"),
    ],
)
def test_a_record_behind_stream_time(times: tuple[str, ...], users: str, became: list[str], rules: str) -> None:
    assert decided(*(f"2024-05-01 {time}" for time in times), rules=rules, users=users) == became


@pytest.mark.parametrize("rules", RULES)
def test_stream_time_is_the_greatest_event_time_and_not_the_time_of_arrival(rules: str) -> None:
    """However long nothing arrives, nothing closes; one record of another key that is ahead closes all at once."""
    quiet = decided("2024-05-01 10:00", "2024-05-01 10:00:01", rules=rules)
    assert quiet == ["opened", "added"]
    ahead = decided("2024-05-01 10:00", "2024-05-01 12:00", "2024-05-01 10:00:01", rules=rules, users="aba")
    assert ahead == ["opened", "opened", "late"]
