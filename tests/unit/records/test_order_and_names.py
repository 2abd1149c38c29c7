"""What is said where rows stand in another order than they arrived, and where results call a key otherwise."""

import re
from pathlib import Path
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


@pytest.mark.parametrize(("times", "unit", "meant"), [(1, "ns", "s"), (1_000, "ns", "ms"), (1, "ms", "s")])
def test_numbers_that_were_read_as_times_of_1970_are_told(times: int, unit: Any, meant: str) -> None:
    at = pd.to_datetime(pd.Series([1_772_442_000, 1_772_452_060, 1_772_450_000]) * times, unit=unit, utc=True)
    rows = pd.DataFrame({"user": ["ada", "ada", "bob"], "at": at})
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(gap="1h", grace="0s")).count()
    said = plan.run(rows).remarks()[0]
    assert "lie in the first weeks of 1970" in said and f"unit='{meant}'" in said
    with pytest.warns(UserWarning, match="lie in the first weeks of 1970"):
        sk.sessionize(rows, "user", "at", "1h")
    from_0 = rows.assign(at=pd.to_datetime([0, 60, 3_600], unit="s", utc=True))
    assert plan.run(from_0).remarks() == []


def test_an_offset_in_a_file_is_told_by_sessionize_too(tmp_path: Path) -> None:
    """Days were cut at midnight of UTC, and nothing said so."""
    at = ["2026-03-02T23:50:00+01:00", "2026-03-03T00:10:00+01:00"]
    pd.DataFrame({"user": "ada", "at": at}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.warns(UserWarning, match="Times with an offset, such as [+]01:00, are shown in UTC unless timezone="):
        assert sk.sessionize(tmp_path / "rows.csv", "user", "at", "30m", new_at="midnight")["session_id"].nunique() == 1
    zoned = sk.sessionize(tmp_path / "rows.csv", "user", "at", "30m", new_at="midnight", timezone="Europe/Berlin")
    assert zoned["session_id"].tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_a_store_keeps_windows_as_long_as_it_was_opened_for(kind: Any, tmp_path: Path) -> None:
    rows = pd.DataFrame({"user": ["ada", "bob"], "at": pd.to_datetime(["2026-03-02", "2026-03-05"], utc=True)})
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(gap="10m", grace="0s")).count()
    folder = {"directory": tmp_path} if kind == "rocksdb" else {}
    for named, kept in (({}, 1), ({"retention": "1d"}, 0)):
        with sk.open_store(kind, f"kept{kept}", retention="30d", **folder) as store:
            plan.run(rows, store=store, **named)
            assert len(list(store.fetch("ada"))) == kept
    with sk.open_store(kind, "written", retention="30d", **folder) as store:
        plan.write(rows, table=tmp_path / "table", store=store)
        assert len(list(store.fetch("ada"))) == 1


def test_results_are_not_written_to_what_is_called_as_a_file_of_text(tmp_path: Path) -> None:
    rows = pd.DataFrame({"user": ["ada"], "at": pd.to_datetime(["2026-03-02"], utc=True)})
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(gap="10m", grace="0s")).count()
    with pytest.raises(InvalidArgument, match="results are written as folders of Parquet"):
        plan.write(rows, table=tmp_path / "res.csv")
    assert not list(tmp_path.iterdir())
