"""Texts as times: each with its own zone, and what is no time is told with its row."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.errors import InvalidData, UnsupportedData
from sessionkit.records.batch import read_records
from sessionkit.records.source import Source


def read(texts: list[Any], **options: Any) -> list[int]:
    data = pa.table({"user": ["a"] * len(texts), "at": pa.array(texts, pa.string())})
    return read_records(data, Source(keys=("user",), timestamp="at", **options), ()).timestamp_ms.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "2024-07-01T08:10:00.5Z", "2024-07-01T10:10:00.500+02:00", "2024-07-01 10:10:00.5009999999999 +0200",
        "2024-07-01t03:10:00,5-05", " 2024-07-01 08:10:00.500 UTC ", "2024-07-01 08:10:00.500GMT",
        "2024-07-01T08:10:00.500999999999Z",
    ],
)  # fmt: skip
def test_ways_to_write_a_time(text: str) -> None:
    assert read([text, "2024-07-01T08:10Z"]) == [1719821400500, 1719821400000]


@given(st.lists(st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(9999, 12, 30)), min_size=1), st.integers(-1439, 1439))
def test_what_python_writes_is_read(times: list[dt.datetime], minutes: int) -> None:
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    zoned = [time.replace(tzinfo=zone if place % 2 else dt.UTC) for place, time in enumerate(times)]
    expected = [(time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1) for time in zoned]
    assert read([time.isoformat() for time in zoned], on_bad_time="drop") == expected


def test_texts_without_a_zone_need_the_plan_s() -> None:
    texts = ["2024-07-01 10:10", "2024-07-01"]
    berlin = dt.datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    expected = [int((berlin + dt.timedelta(minutes=610)).timestamp() * 1000), int(berlin.timestamp() * 1000)]
    assert read(texts, timezone="Europe/Berlin") == expected
    assert read([*texts, "2024-07-01T00:00Z"], timezone="Europe/Berlin") == [*expected, 1719792000000]
    with pytest.raises(UnsupportedData, match="column 'at' has times without a zone; got string; pass timezone="):
        read(texts)
    with pytest.raises(
        UnsupportedData, match="times with and without a zone; got 2024-07-01 10:10:00 without a zone in"
    ):
        read(["2024-07-01T00:00Z", *texts])


BAD = [
    "soon", "2024-02-30T00:00Z", "2023-02-29", "2024-13-01", "2024-07-01T24:00Z", "2024070", "1719821400",
    "٢٠٢٤-07-01",
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_a_text_that_is_no_time(bad: str) -> None:
    texts = ["2024-02-29T00:00Z", bad, None, ""]
    with pytest.raises(InvalidData) as caught:
        read(texts)
    told = f"column 'at' has texts that are no times; got 1, the first in row 1: {bad!r}; "
    assert told in str(caught.value)
    assert read(texts, on_bad_time="drop") == [1709164800000, -1, -1, -1]
    with pytest.raises(InvalidData, match=r"column 'at' has missing timestamps; got 2 \(rows 1, 2\)"):
        read(["2024-02-29T00:00Z", None, " "])


def test_all_texts_of_one_form_are_read_at_once() -> None:
    assert read(["2024-07-01T08:10:00.500999Z", "2024-07-01T10+02:00", None, ""], on_bad_time="drop") == [
        *(1719821400500, 1719820800000, -1, -1)
    ]
    assert read(["2024-07-01T08:10:00.500999", "2024-07-01 08"], timezone="UTC") == [1719821400500, 1719820800000]
    assert read(["2500-01-01T00:00Z"]) == [16725225600000]


def test_only_empty_texts_and_no_texts() -> None:
    assert read(["", None], on_bad_time="drop") == [-1, -1]
    assert read([]) == []


def test_numbers_in_text_need_a_unit() -> None:
    assert read(["1719821400", "1719821401"], unit="s") == [1719821400000, 1719821401000]
    assert read(["2024-07-01T08:10Z"], unit="s") == [1719821400000]
    assert read(["1700000000122999999", "1700000000123000000"], unit="ns") == [1700000000122, 1700000000123]
    with pytest.raises(InvalidData, match="texts that are no times; got 1, the first in row 1"):
        read(["2024-07-01T00:00Z", "5"], unit="s")


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda data: pd.DataFrame(data).astype("category")]
)
def test_every_frame_may_hold_texts(make: Any) -> None:
    data = make({"user": ["a", "b"], "at": ["2024-07-01T08:10:00Z", "2024-07-01T10:10:00+02:00"]})
    batch = read_records(data, Source(keys=("user",), timestamp="at"), ())
    assert batch.timestamp_ms.tolist() == [1719821400000] * 2
    assert batch.timezone == "UTC"
