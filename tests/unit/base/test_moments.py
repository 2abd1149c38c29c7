"""Moments as people write them: read in the zone that they name, or else in the one of the records."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.base.moments import moment_ms, zone_of
from sessionkit.errors import InvalidArgument

BERLIN = ZoneInfo("Europe/Berlin")
MS = int(dt.datetime(2024, 7, 2, 0, 10, tzinfo=BERLIN).timestamp()) * 1_000  # 22:10 of July 1 in UTC

OF_BERLIN: list[Any] = [
    MS, np.int64(MS), "2024-07-02 00:10", "2024-07-02T00:10", " 2024-07-02 00:10:00 ", "2024-07-02 00:10:00.000",
    "2024-07-02 00:10:00.000000", "2024-07-02 00:10+02:00", "2024-07-02T00:10:00+0200", "2024-07-01 22:10Z",
    "2024-07-01T22:10:00+00:00", "2024-07-01 15:10-07:00", "20240702T0010", "2024-W27-2 00:10",
    pd.Timestamp("2024-07-02 00:10"), pd.Timestamp("2024-07-02 00:10", tz="Europe/Berlin"),
    pd.Timestamp("2024-07-01 22:10", tz="UTC"), pd.Timestamp("2024-07-01 18:10", tz="America/New_York"),
    dt.datetime(2024, 7, 2, 0, 10), dt.datetime(2024, 7, 2, 0, 10, tzinfo=BERLIN),
    dt.datetime(2024, 7, 1, 22, 10, tzinfo=dt.UTC), np.datetime64("2024-07-02T00:10"),
    np.datetime64("2024-07-02T00:10:00.000000000"), pd.Series(pd.to_datetime(["2024-07-02 00:10"])).iloc[0],
    pd.Series(pd.to_datetime(["2024-07-02 00:10"])).to_numpy()[0], pa.scalar(MS, pa.timestamp("ms", "UTC")),
    pa.scalar(MS, pa.timestamp("ms", "Asia/Kolkata")), pa.scalar(dt.datetime(2024, 7, 2, 0, 10), pa.timestamp("ns")),
]  # fmt: skip


@pytest.mark.parametrize("value", OF_BERLIN, ids=repr)
def test_a_moment_is_that_of_the_zone(value: Any) -> None:
    assert moment_ms(value, "start", "Europe/Berlin") == MS


@pytest.mark.parametrize(
    ("value", "zone", "ms"),
    [
        ("2024-07-02", "UTC", 1_719_878_400_000), ("2024-07-02", "Europe/Berlin", 1_719_871_200_000),
        ("2024-07-02", "Asia/Kolkata", 1_719_858_600_000), ("2024-07-02", "+05:30", 1_719_858_600_000),
        ("2024-07-02", "-0330", 1_719_891_000_000), ("1969-12-31 23:59:59.999", "UTC", -1),
        (pd.Timestamp("2024-07-02 00:00:00.001"), "UTC", 1_719_878_400_001),
        (np.datetime64("2024-07-02"), "UTC", 1_719_878_400_000),
        (dt.date(2024, 7, 2), "Europe/Berlin", 1_719_871_200_000), (0, "Europe/Berlin", 0),
    ],
)  # fmt: skip
def test_zones(value: Any, zone: str, ms: int) -> None:
    assert moment_ms(value, "start", zone) == ms


@given(
    st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2200, 1, 1)).map(lambda t: t.replace(microsecond=0)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+02:00"]),
)
def test_what_clocks_show_once_is_what_zoneinfo_says(moment: dt.datetime, zone: str) -> None:
    early, late = (moment.replace(tzinfo=zone_of(zone), fold=fold) for fold in (0, 1))
    if early.utcoffset() == late.utcoffset():
        assert moment_ms(moment, "start", zone) == int(early.timestamp() * 1_000)
        assert moment_ms(str(moment), "start", zone) == int(early.timestamp() * 1_000)
    else:
        with pytest.raises(InvalidArgument, match=r"start is a time that clocks in .* show (twice|never)"):
            moment_ms(moment, "start", zone)


@pytest.mark.parametrize(("value", "said"), [
    ("2024-10-27 02:30", 'show twice; got 2024-10-27 02:30:00; name the offset, such as "2024-10-27T02:30+02:00"'),
    ("2024-03-31 02:30", "clocks in Europe/Berlin show never"),
    ("2024-07-02 00:10:00.0001", "start is finer than a millisecond"),
    (pd.Timestamp(1, unit="ns"), "start is finer than a millisecond"),
    (dt.datetime(2024, 7, 2, microsecond=1), "start is finer than a millisecond"),
    (np.datetime64("2024-07-02T00:10:00.000001"), "start is finer than a millisecond"),
    ("yesterday", "start must be a moment; got 'yesterday'; a time such as \"2024-07-01 00:10\""),
    *((each, "start must be a moment") for each in ("02.07.2024", "", "00:10")),
    (None, "start must be a moment; got None"), (True, "start must be a moment; got True"),
    (1.5, "start must be a moment; got 1.5"), (pd.NaT, "start must be a moment; got NaT"),
    (np.datetime64("NaT"), "start must be a moment"), (pa.scalar(None, pa.timestamp("ms")), "start must be a moment"),
    (pd.Timedelta("1h"), "start must be a moment"),
])  # fmt: skip
def test_what_is_no_moment_is_refused(value: Any, said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        moment_ms(value, "start", "Europe/Berlin")
    assert said in str(caught.value)
