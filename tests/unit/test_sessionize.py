"""Which session a row belongs to, in one line."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, NumberOverflow, UnsupportedData


def visits(**more: Any) -> pd.DataFrame:
    at = pd.to_datetime([100, 10, 50, 5, 120, 20], unit="s", utc=True)
    return pd.DataFrame({"user": ["bo", "ada", "ada", None, "bo", "ada"], "at": at, **more}, index=list("uvwxyz"))


def test_which_session_does_a_row_belong_to() -> None:
    given = visits()
    found = sk.sessionize(given, by="user", at="at", gap="30s")
    assert found.index.equals(given.index) and list(found)[:2] == list(given)
    assert found["session_id"].tolist() == [1, 0, 0, pd.NA, 1, 0]
    assert found["position_in_session"].tolist() == [1, 1, 3, pd.NA, 2, 2]
    assert found["session_rows"].tolist() == [2, 3, 3, pd.NA, 2, 3]
    assert found["session_start"].iloc[4] == given["at"].iloc[0] and found["session_end"].iloc[0] == given["at"].iloc[4]
    assert found["late"].dtype == bool and not found["late"].any()
    assert list(visits()) == list(given)  # the user's own frame has no column more


def test_a_pause_as_long_as_the_gap_joins() -> None:
    assert sk.sessionize(visits(), "user", "at", "29s 999ms")["session_id"].nunique() == 3
    assert sk.sessionize(visits(), "user", "at", "30s")["session_id"].nunique() == 2


def test_with_a_grace_rows_arrive_in_their_order() -> None:
    found = sk.sessionize(visits(), "user", "at", "30s", "10s")
    assert found["late"].tolist() == [False, True, True, False, False, True]
    assert found["session_rows"].tolist() == [2, pd.NA, pd.NA, pd.NA, 2, pd.NA]


def test_a_row_without_a_time_stays() -> None:
    rows = visits()
    rows.loc["w", "at"] = None
    with pytest.raises(InvalidData, match="missing timestamps"):
        sk.sessionize(rows, "user", "at", "30s")
    found = sk.sessionize(rows, "user", "at", "30s", on_bad_time="drop")
    assert found["session_id"].isna().tolist() == [False, False, True, True, False, False]
    assert not found["late"].any()


def test_several_columns_need_no_separator() -> None:
    rows = visits(site=["x", "x@", "x", "x", "y", "x@"])
    found = sk.sessionize(rows, by=["user", "site"], at="at", gap="30s")
    assert found["session_id"].tolist() == [2, 1, 0, pd.NA, 3, 1]
    three = sk.sessionize(rows.assign(n=[-1, 2, 2, 2, -1, 2]), by=["n", "site", "user"], at="at", gap="30s")
    assert three["session_id"].tolist() == [2, 1, 0, pd.NA, 3, 1]


def test_keys_of_any_type_and_of_no_type() -> None:
    for user in ([1, -1, -1, 5, 1, -1], [b"bo", b"ada", b"ada", b"", b"bo", b"ada"], [None] * 6):
        found = sk.sessionize(visits().assign(user=user), "user", "at", "30s")
        assert found["session_rows"].notna().all() == (user[0] is not None)


def test_sessions_do_not_cross_partitions() -> None:
    rows = visits(p=[0, 0, 1, 0, 1, 0])
    assert sk.sessionize(rows, "user", "at", "30s", partition="p")["session_rows"].tolist() == [1, 2, 1, pd.NA, 1, 2]


def test_each_kind_of_frame_stays_what_it_is(tmp_path: Path) -> None:
    rows = visits()
    table = pa.Table.from_pandas(rows, preserve_index=False)
    assert isinstance(sk.sessionize(table, "user", "at", "30s"), pa.Table)
    assert isinstance(sk.sessionize(table.to_batches()[0], "user", "at", "30s"), pa.Table)
    found = sk.sessionize(pl.from_pandas(rows), "user", "at", "30s")
    assert isinstance(found, pl.DataFrame) and found["session_id"].to_list() == [1, 0, 0, None, 1, 0]
    empty = sk.sessionize(rows.iloc[:0], "user", "at", "30s")
    assert not len(empty) and str(empty["session_id"].dtype) == "int64"


def test_columns_that_it_does_not_read_can_hold_anything() -> None:
    rows = visits(what=[{1}, object, None, "x", b"y", 2**80])
    rows.insert(0, "note", 1)
    rows.insert(0, "note", 2, allow_duplicates=True)
    found = sk.sessionize(rows, "user", "at", "30s")
    assert list(found)[:5] == ["note", "note", "user", "at", "what"] and found["what"].iloc[5] == 2**80


def test_bounds_are_told_in_the_zone_of_the_times() -> None:
    rows = visits()
    rows["at"] = rows["at"].dt.tz_convert("Europe/Berlin")
    assert str(sk.sessionize(rows, "user", "at", "30s")["session_start"].dt.tz) == "Europe/Berlin"
    rows["at"] = rows["at"].dt.tz_localize(None)
    with pytest.raises(UnsupportedData, match="times without a zone"):
        sk.sessionize(rows, "user", "at", "30s")
    assert (
        str(sk.sessionize(rows, "user", "at", "30s", timezone="America/New_York")["session_end"].dt.tz)
        == "America/New_York"
    )
    late = pd.DataFrame({"user": ["ada"], "at": [253_402_300_800_000]})
    with pytest.raises(NumberOverflow, match="session_start has a time after the year 9999"):
        sk.sessionize(late, "user", "at", "30s", unit="ms")


@pytest.mark.parametrize(("change", "error", "said"), [
    ({"by": "usr"}, MissingColumn, "column 'usr' is not in the data"),
    ({"by": []}, InvalidArgument, "by must be a column or a list of columns"),
    ({"by": 5}, InvalidArgument, r"by must be a column or a list of columns; got 5; by=\"user\""),
    ({"at": "user"}, InvalidData, "column 'user' has texts that are no times"), ({"gap": 30}, InvalidArgument, "gap"),
    ({"gap": "-5s"}, InvalidArgument, "gap"), ({"grace": 5}, InvalidArgument, "grace"),
    ({"on_bad_time": "skip"}, InvalidArgument, "on_bad_time must be a known choice"),
])  # fmt: skip
def test_a_mistake_is_told(change: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        sk.sessionize(visits(), **{"by": "user", "at": "at", "gap": "30s"} | change)


def test_a_column_is_never_overwritten() -> None:
    with pytest.raises(InvalidArgument, match="the data has a column of this name already; got 'session_id'"):
        sk.sessionize(visits(session_id=1), "user", "at", "30s")


@pytest.mark.thorough
def test_long_sessions_in_any_order() -> None:
    """More rows a session than are sorted one by one, backwards and mixed."""
    rows = pd.DataFrame({"user": 7, "at": pd.date_range("2024-01-01", periods=5_000, freq="s", tz="UTC")})
    for order in (rows[::-1], rows.sample(frac=1, random_state=3)):
        found = sk.sessionize(order, "user", "at", "1s").sort_index()
        assert found["position_in_session"].tolist() == list(range(1, 5_001)) and found["session_id"].eq(0).all()


def test_a_column_of_one_of_the_names_gets_a_prefix_out_of_the_way() -> None:
    rows = visits(session_id=range(6), late=[0] * 6)
    with pytest.raises(InvalidArgument, match=r"name already; got 'session_id'; rename it .*; or prefix=\"new_\""):
        sk.sessionize(rows, "user", "at", "30s")
    found = sk.sessionize(rows, "user", "at", "30s", prefix="visit_")
    assert found["session_id"].tolist() == list(range(6))
    assert found["visit_session_id"].tolist() == [1, 0, 0, pd.NA, 1, 0]
    assert list(found)[4:] == [f"visit_{name}" for name in list(sk.sessionize(visits(), "user", "at", "30s"))[2:]]
    again = sk.sessionize(found, "user", "at", "10s", prefix="short_")
    assert again["short_session_id"].nunique() == 4
    with pytest.raises(InvalidArgument, match="prefix must be text; got None"):
        sk.sessionize(rows, "user", "at", "30s", prefix=None)  # type: ignore[arg-type]


def test_how_times_are_written_can_be_said_or_is_told() -> None:
    rows = pd.DataFrame({"user": ["ada"] * 3, "at": ["01/02/2024 10:00", "01/02/2024 10:05", "02/02/2024 10:00"]})
    found = sk.sessionize(rows, "user", "at", "30m", format="%d/%m/%Y %H:%M", timezone="UTC")
    assert found["session_id"].tolist() == [0, 0, 1]
    assert found["session_start"].iloc[2] == pd.Timestamp("2024-02-02 10:00", tz="UTC")
    dotted = rows.assign(at=rows["at"].str.replace("/", "."))
    with pytest.warns(UserWarning, match=r"column 'at' is read as %d.%m.%Y: '01.02.2024 10:00' is 2024-02-01T10:00"):
        assert sk.sessionize(dotted, "user", "at", "30m", timezone="UTC")["session_id"].tolist() == [0, 0, 1]


def test_an_hour_that_clocks_show_twice() -> None:
    rows = pd.DataFrame({"user": ["ada"] * 4, "at": pd.to_datetime(
        ["2024-10-27 01:50", "2024-10-27 02:10", "2024-10-27 02:05", "2024-10-27 03:00"])})  # fmt: skip
    found = sk.sessionize(rows, "user", "at", "30m", timezone="Europe/Berlin", ambiguous="infer")
    assert found["session_id"].tolist() == [0, 0, 1, 2]
    latest = sk.sessionize(rows, "user", "at", "30m", timezone="Europe/Berlin", ambiguous="latest")
    assert latest["session_id"].tolist() == [0, 1, 1, 2]


def test_a_file_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ada;20240701\nada;20240703\n", encoding="utf-8")
    form: dict[str, Any] = {"header": False, "separator": ";", "format": "%Y%m%d", "timezone": "UTC"}
    found = sk.sessionize(str(tmp_path / "a.csv"), "c1", "c2", "1d", **form)
    assert found["session_id"].tolist() == [0, 1]


def test_one_key_for_all_rows_is_told() -> None:
    df = pd.DataFrame({"at": pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True)})
    with pytest.raises(InvalidArgument, match="by=None if all rows are of one person or device"):
        sk.sessionize(df, by=[], at="at", gap="5m")
    assert len(sk.sessionize(df.assign(all="all"), by="all", at="at", gap="5m")) == 2
    with pytest.raises(InvalidArgument, match=re.escape("at must be the name of a column")) as refusal:
        sk.sessionize(df, by="at", at=df.index, gap="5m")  # type: ignore[call-overload]
    assert "group_by_key" not in str(refusal.value)


def test_a_gap_shorter_than_a_day_is_told_of_days() -> None:
    frame = pd.DataFrame({"user": ["a", "b"] * 20, "day": pd.date_range("2024-01-01", periods=40)})
    said = "All times are whole days apart, and the inactivity gap of 30 min is shorter: only records of the same day"
    with pytest.warns(UserWarning, match=said):
        sk.sessionize(frame, "user", "day", gap="30m", timezone="UTC")
    sk.sessionize(frame, "user", "day", gap="1d", timezone="UTC")  # a warning would be an error here
    sk.sessionize(frame[:10], "user", "day", gap="30m", timezone="UTC")
