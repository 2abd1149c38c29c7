"""The grace that a late record lacked, where some of the sessions that it would have met came from a store."""

import pandas as pd
import pytest

import sessionkit as sk
from tests.kinds import plan_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=20)
PLAN = plan_of(SESSIONS, "on_window_update")


def lacked(rows: pd.DataFrame, cut: int) -> list[int]:
    """What the late records from row `cut` on lacked; those before it are in the store already."""
    with sk.open_store("memory", "sessions") as store:
        PLAN.run(rows[:cut], store=store, retention="1h")
        dropped = PLAN.run(rows[cut:], store=store, retention="1h").dropped()
    return [int(missing) for missing in dropped["missing_grace_ms"]]


@pytest.mark.parametrize(
    ("times", "missing"),
    [
        ([100, 60], 10),  # alone it is open while 60 >= 100 - 10 - grace
        ([72, 100, 62], 0),  # joins a session that is open
        ([65, 100, 55], 5),  # joins [65, 65], which a grace of 25 keeps open
        ([65, 100, 54], 16),  # a millisecond too far from it to be joined
    ],
)
def test_by_hand(times: list[int], missing: int) -> None:
    rows = pd.DataFrame({"key": "a", "at": times})
    assert lacked(rows, len(times) - 1) == ([missing] if missing else [])
