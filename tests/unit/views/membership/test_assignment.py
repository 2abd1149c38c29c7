"""`run.assign`: the rows of a run with the window that each is in."""

from typing import Any

import pandas as pd
import polars as pl
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument

SECONDS = [100, 10, 50, 5, 120, 20]


def rows(**more: Any) -> pd.DataFrame:
    at = pd.to_datetime(SECONDS, unit="s", utc=True)
    return pd.DataFrame({"user": ["bo", "ada", "ada", None, "bo", "ada"], "at": at, **more})


def plan_of(windows: Any, **source: Any) -> sk.Plan:
    return sk.group_by_key("user", timestamp="at", **source).windowed_by(windows).aggregate(n=sk.count())


SESSIONS = sk.SessionWindows(inactivity_gap="30s", grace="10s")


def test_a_run_says_what_sessionize_says() -> None:
    pd.testing.assert_frame_equal(
        plan_of(SESSIONS).run(rows()).assign(rows()), sk.sessionize(rows(), "user", "at", "30s", "10s")
    )


def test_the_tumbling_window_of_each_row() -> None:
    found = plan_of(sk.TimeWindows(size="1m", grace="50s")).run(rows()).assign(rows())
    assert found["window_id"].tolist() == [1, 0, 0, pd.NA, 2, pd.NA]
    assert found["window_rows"].tolist() == [1, 2, 2, pd.NA, 1, pd.NA]
    assert found["late"].tolist() == [False, False, False, False, False, True]
    assert found["window_start"].iloc[0] == pd.Timestamp("1970-01-01 00:01", tz="UTC")
    assert found["window_end"].iloc[0] == pd.Timestamp("1970-01-01 00:02", tz="UTC")


@pytest.mark.parametrize(
    "windows",
    [sk.TimeWindows(size="1m", advance="20s", grace="0s"), sk.SlidingWindows(time_difference="1m", grace="0s")],
)
def test_windows_that_overlap_are_refused(windows: Any) -> None:
    with pytest.raises(InvalidArgument, match="a record can be in several of these windows"):
        plan_of(windows).run(rows()).assign(rows())


def test_sorted_records_are_told_in_the_order_of_the_frame() -> None:
    given = rows(p=0, o=[4, 1, 3, 0, 5, 2])
    plan = plan_of(SESSIONS, partition="p", offset="o", sort=True)
    found = plan.run(given).assign(given)
    assert found["session_id"].tolist() == [1, 0, 0, pd.NA, 1, 0] and not found["late"].any()


def test_only_the_rows_of_the_run_are_taken() -> None:
    run = plan_of(SESSIONS).run(rows())
    assert isinstance(run.assign(pl.from_pandas(rows())), pl.DataFrame)
    for other in (rows().iloc[1:], rows().iloc[::-1]):
        with pytest.raises(
            InvalidArgument, match=r"these are not the rows of this run.*the data that plan\.run was given"
        ):
            run.assign(other)


def test_merged_sessions_can_be_listed_and_asked_for() -> None:
    """The bounds before the record that joined them, and those that `lineage` takes."""
    at = pd.to_datetime([10, 70, 40, 75, 300], unit="s", utc=True)
    run = plan_of(sk.SessionWindows(inactivity_gap="30s", grace="1h")).run(pd.DataFrame({"user": "ada", "at": at}))
    [merge] = run.merges().to_dict("records")
    seconds = {name: value.timestamp() for name, value in merge.items() if isinstance(value, pd.Timestamp)}
    assert merge["user"] == "ada" and merge["offset"] == 2 and merge["partition"] == 0
    assert seconds == {
        **{"timestamp": 40, "earlier_start": 10, "earlier_end": 10, "later_start": 70, "later_end": 70},
        **{"window_start": 10, "window_end": 75},
    }
    assert run.lineage(merge["user"], merge["window_start"]).nodes[-1].total == 4


def test_a_merge_with_sessions_of_a_store_has_their_bounds() -> None:
    plan = plan_of(sk.SessionWindows(inactivity_gap="30s", grace="1h"))
    store = sk.open_store("memory", "visits", retention="2h")
    frame = pd.DataFrame({"user": "ada", "at": pd.to_datetime([10, 70, 40], unit="s", utc=True)})
    plan.run(frame[:2], store=store)
    [merge] = plan.run(frame[2:], store=store).merges().to_dict("records")
    assert [merge[name].timestamp() for name in ("earlier_start", "later_end")] == [10, 70]


def test_windows_that_do_not_merge_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="only sessions merge"):
        plan_of(sk.TimeWindows(size="1m", grace="0s")).run(rows()).merges()
