"""What is said where rows stand in another order than they arrived, and where results call a key otherwise."""

import re
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument


def test_rows_in_another_order_than_they_arrived_are_told() -> None:
    arrived = pd.to_datetime("2026-01-01", utc=True) + pd.to_timedelta(range(300), unit="min")
    rows = pd.DataFrame(
        {"user": "ada", "at": arrived - pd.Timedelta("30s"), "received": arrived, "server": [0, 1, 2] * 100}
    )
    shuffled, by_server = rows.sample(frac=1, random_state=1), rows.sort_values(["server", "received"])
    said = "The rows do not stand in the order of 'received': df.sort_values('received') puts them as they arrived."
    named = {"timestamp": "at", "arrival": "received", "max_ahead": "5m", "ahead": "drop"}
    plan = sk.group_by_key("user", **named).windowed_by(sk.SessionWindows(gap="1h", grace="0s")).count()
    assert plan.run(shuffled).remarks()[0] == said
    assert plan.run(shuffled.sort_values("received")).remarks() == []
    served = sk.group_by_key("user", partition="server", **named).windowed_by(plan.windows).count()
    assert served.run(by_server).remarks() == []


def test_a_key_that_has_another_name_in_results_is_told() -> None:
    rows = pd.DataFrame({"status": ["paid", "open"], "at": pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True)})
    days = sk.TimeWindows(size="1d", grace="0s")
    run = sk.group_by_key("status", timestamp="at").windowed_by(days).count().run(rows)
    assert run.remarks() == [
        "Column 'status' of the data is 'key_status' in results, which have another column 'status'."
    ]
    assert "key_status" in run.table()


@pytest.mark.parametrize(("given", "telling"), [
    ({"arrival": "received"}, "df.sort_values('received')"), ({"sort": "received"}, "df.sort_values('received')"),
])  # fmt: skip
def test_an_order_of_arrival_is_that_of_the_rows(given: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(telling)):
        sk.group_by_key("user", timestamp="at", **given)
