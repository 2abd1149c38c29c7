"""A column of times as milliseconds: units, zones, what is missing, what is refused."""

import datetime as dt
import re
import warnings
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessionkit.base.durations import INT64_MAX
from sessionkit.errors import InvalidArgument, InvalidData, UnsupportedData
from sessionkit.records.source import Source
from sessionkit.records.times import refuse_mixed_zones, to_milliseconds

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
NEW_YORK = "America/New_York"
LAST_S, FIRST_DST_MS = INT64_MAX // 1000, 1_362_898_800_000  # 2013-03-10 02:00 in New York did not exist


def read(
    values: Any, kind: pa.DataType | None = None, **options: Any
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
    """The column `at` of these values as the engine gets it."""
    column = pa.chunked_array([values], kind)
    return to_milliseconds(column, Source(keys=("user",), timestamp="at", **options))


def refused(error: type[Exception], telling: str, values: Any, kind: pa.DataType | None = None, **options: Any) -> None:
    with pytest.raises(error) as caught:
        read(values, kind, **options)
    assert telling in str(caught.value)


@pytest.mark.parametrize("unit", list(PER_SECOND))
@pytest.mark.parametrize("chunked", [False, True])
def test_the_unit_comes_from_the_type(unit: str, chunked: bool) -> None:
    per_second = PER_SECOND[unit]
    parts = (
        [[1_372_655_700 * per_second], [0, per_second // 2]]
        if chunked
        else [[1_372_655_700 * per_second, 0, per_second // 2]]
    )
    column = pa.chunked_array(parts, pa.timestamp(unit, "UTC"))
    ms, missing = to_milliseconds(column, Source(keys=("user",), timestamp="at"))
    assert ms.tolist() == [1_372_655_700_000, 0, 0 if unit == "s" else 500]
    assert ms.dtype == np.dtype("int64")
    assert missing is None


@pytest.mark.parametrize("unit", list(PER_SECOND))
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.float64()])
def test_plain_numbers_with_a_unit(unit: str, kind: pa.DataType) -> None:
    if unit == "ns" and kind == pa.float64():
        return refused(UnsupportedData, "column 'at' has a float from 2**53 on", [1_372_655_700e9], kind, unit=unit)
    ms, _ = read(pa.array(np.array([1_372_655_700 * PER_SECOND[unit]]).astype(kind.to_pandas_dtype())), unit=unit)
    assert ms.tolist() == [1_372_655_700_000]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.float16(), pa.float32()])
def test_narrow_numbers(kind: pa.DataType) -> None:
    values = np.array([1, 2], kind.to_pandas_dtype())
    assert read(pa.array(values, kind), unit="s")[0].tolist() == [1_000, 2_000]


@given(st.lists(st.integers(0, INT64_MAX), min_size=1), st.sampled_from(["us", "ns"]))
@example([631_152_000 * 10**9], "us")
def test_finer_times_are_rounded_down(values: list[int], unit: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ms, _ = read(values, pa.int64(), unit=unit)
        except InvalidArgument as error:  # as nanoseconds they are times of today
            assert (unit, "lies after the year 9999" in str(error)) == ("us", True)
            return
    assert ms.tolist() == [value // (PER_SECOND[unit] // 1000) for value in values]


@given(
    st.lists(st.integers(-(2**63), -1) | st.sampled_from([-(2**63), -(2**62), -LAST_S - 1]), min_size=1),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_a_negative_time_never_wraps(values: list[int], unit: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ms, missing = read([7, *values], pa.int64(), unit=unit, on_bad_time="drop")
    assert (ms[1:] < 0).all()
    assert missing is not None
    assert not missing.any()


def test_the_last_times_of_each_unit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read([LAST_S], pa.int64(), unit="s")[0].tolist() == [LAST_S * 1000]
        assert read([INT64_MAX], pa.int64(), unit="ms")[0].tolist() == [INT64_MAX]
        refused(InvalidData, f"a time in seconds is too large; got {LAST_S + 1}", [LAST_S + 1], pa.int64(), unit="s")
        refused(InvalidData, "column 'at' has a time that is too large", [2**63], pa.uint64(), unit="ms")
        refused(InvalidData, "column 'at' has a time that is too large", [float("inf")], unit="ms")
        for large in (1e300, -1e300):
            refused(InvalidData, "column 'at' has a time that is too large", [large], unit="ms")


@pytest.mark.parametrize(
    ("value", "unit", "other"),
    [(1_372_655_700, "ms", "s"), (1_372_655_700_000, "us", "ms"), (1_372_655_700_000_000, "ns", "us")],
)
def test_a_warning_where_another_unit_fits_better(value: int, unit: str, other: str) -> None:
    with pytest.warns(
        UserWarning, match=f"column 'at' read as {unit} lies outside 1990 to 2100; as {other} it would not"
    ):
        read([value] * 2_500, pa.int64(), unit=unit)


@pytest.mark.parametrize(
    ("value", "unit", "other"),
    [(1_372_655_700_000, "s", "ms"), (1_372_655_700_000_000, "ms", "us"), (1_372_655_700_000_000, "s", "us")],
)
def test_times_so_late_that_nothing_shows_them_name_the_unit_that_fits(value: int, unit: str, other: str) -> None:
    telling = (
        f"column 'at' read as {unit} lies after the year 9999; got {value}; unit=\"{other}\", as which it is 2013-07-01"
    )
    refused(InvalidArgument, telling, [value] * 2_500, pa.int64(), unit=unit)


def test_no_warning_for_toy_times_and_right_units() -> None:
    read([0, 60_000, 120_000], pa.int64(), unit="ms")
    read([1_372_655_700_000], pa.int64(), unit="ms")
    read([], pa.int64(), unit="s")
    read([None], pa.int64(), unit="s", on_bad_time="drop")


@pytest.mark.parametrize(
    ("value", "form"), [(20_260_105, "%Y%m%d"), (202_601_050_804, "%Y%m%d%H%M"), (20_260_105_080_405, "%Y%m%d%H%M%S")]
)
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_days_as_numbers_are_told_with_their_format(value: int, form: str, unit: str) -> None:
    refused(UnsupportedData, f'has plain numbers as times; got int64; format="{form}" reads', [value], pa.int64())
    with pytest.warns(
        UserWarning,
        match=f'read as {unit} lies outside 1990 to 2100, and the numbers look like dates; format="{form}" reads them',
    ):
        read([value] * 20, pa.int64(), unit=unit)
    read([20_269_905], pa.int64(), unit="ms")


@pytest.mark.parametrize(("values", "kind"), [
    ([7, None, 9, None, None, None], pa.int64()), ([7.0, float("nan"), 9.0, None, float("nan"), None], pa.float64()),
    ([7, None, 9, None, None, None], pa.timestamp("ms", "UTC")),
])  # fmt: skip
def test_missing_times(values: list[Any], kind: pa.DataType) -> None:
    unit = None if pa.types.is_timestamp(kind) else "ms"
    telling = (
        "column 'at' has missing timestamps; got 4 (rows 1, 3, 4, …); "
        'drop them, or pass on_bad_time="drop" to count them as dropped'
    )
    refused(InvalidData, telling, values, kind, unit=unit)
    ms, missing = read(values, kind, unit=unit, on_bad_time="drop")
    assert missing is not None
    assert missing.tolist() == [False, True, False, True, True, True]
    assert ms[~missing].tolist() == [7, 9]
    assert (ms[missing] < 0).all()


def test_a_column_of_nothing_but_missing_times() -> None:
    refused(InvalidData, "column 'at' has missing timestamps; got 2 (rows 0, 1)", [None, None], pa.null())
    _, missing = read([None, None], pa.null(), on_bad_time="drop")
    assert missing is not None
    assert missing.all()
    assert read([], pa.null())[0].tolist() == []


def test_negative_times_are_refused_with_their_rows() -> None:
    telling = (
        "column 'at' has times before 1970, which Kafka refuses; got 2 (rows 1, 2); drop them, or pass on_bad_time="
    )
    refused(InvalidData, telling, [7, -1, -2, 9], pa.int64(), unit="ms")
    refused(InvalidData, telling, [7, -1, -2, 9], pa.timestamp("us", "UTC"))
    ms, missing = read([7, -1, -2_000, 9_000], pa.timestamp("us", "UTC"), on_bad_time="drop")
    assert ms.tolist() == [0, -1, -2, 9]
    assert missing is not None
    assert not missing.any()


def test_seconds_may_have_a_fraction_and_other_times_not() -> None:
    """A float of today has seven digits behind the point; what lies below a millisecond is rounded down."""
    seconds = [1736035216.123, float("nan"), 1736035216.0019, 1736035216.9999999, None]
    ms, missing = read(seconds, pa.float64(), unit="s", on_bad_time="drop")
    assert missing is not None
    assert ms[~missing].tolist() == [1_736_035_216_123, 1_736_035_216_001, 1_736_035_217_000]
    assert missing.tolist() == [False, True, False, False, True]
    every = np.arange(1000)
    assert read((1736035216 + every / 1000).tolist(), pa.float64(), unit="s")[0].tolist() == [
        *range(1_736_035_216_000, 1_736_035_217_000)
    ]
    refused(InvalidData, "column 'at' has a time that is too large", [float("inf"), 0.5], pa.float64(), unit="s")
    refused(UnsupportedData, 'pass unit="s", as which 1736035216 is 2025-01-05', [1736035216.5], pa.float64())
    telling = "column 'at' has times with a fraction; got 2.5 in row 2; round them to integers: "
    telling += "df['at'] = df['at'].round().astype('Int64')"
    refused(UnsupportedData, telling, [1.0, None, 2.5, 0.5], pa.float64(), unit="ms")
    assert read([1.0, 2.0], pa.float64(), unit="s")[0].tolist() == [1_000, 2_000]


@pytest.mark.parametrize("unit", [None, "s", "ms"])
@pytest.mark.parametrize(
    ("at", "time"),
    [
        ([46023.5, None, 46023.125], "2026-01-01T12:00"),  # days as Excel counts them
        ([1736035216123.5, None, 1736035217000.0], "2025-01-05T00:00:16.124"),
        ([1736035216123000.5, None, 1736035217000000.0], "2025-01-05T00:00:16.123"),
    ],
)
def test_the_advice_on_fractions_leads_to_times_of_today(at: list[Any], time: str, unit: str | None) -> None:
    with pytest.raises(UnsupportedData) as refusal:
        read(at, pa.float64(), unit=unit)
    said = str(refusal.value).removeprefix(f"column 'at' has times with a fraction; got {at[0]!r} in row 0; ")
    line, rest = re.split(", (?=with|if)|$", said.removeprefix("round them to integers: "), maxsplit=1)
    df = pd.DataFrame({"at": at})
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    named = rest.partition('unit="')[2].partition('"')[0] or unit
    zone: dict[str, Any] = {"timezone": "UTC", "unit": unit} if df["at"].dtype.kind == "M" else {"unit": named}
    source = Source(keys=("at",), timestamp="at", on_bad_time="drop", **zone)
    ms, _ = to_milliseconds(pa.chunked_array([pa.array(df["at"])]), source)
    assert ms[0] == pd.Timestamp(time).value // 1_000_000
    assert ("Excel" in rest) == (at[0] == 46023.5)


def test_the_advice_says_where_times_lie_outside_of_what_is_usual() -> None:
    refused(UnsupportedData, "; such times lie outside 1990 to 2100", [0.5], pa.float64(), unit="ms")


def test_whole_days_of_excel_are_told_where_no_unit_is_given() -> None:
    way = "df['at'] = pandas.to_datetime(df['at'], unit='D', origin='1899-12-30')"
    refused(UnsupportedData, 'pass unit="s", "ms", "us" or "ns"; or ' + way, [46023, 46024], pa.int64())
    assert read([46023, 46024], pa.int64(), unit="ms")[0].tolist() == [46023, 46024]  # as in made-up data


@pytest.mark.parametrize(("values", "kind", "telling"), [
    ([b"2013-07-01"], pa.binary(), "got binary; a column of timestamps, dates or ISO 8601 text, or of integers"),
    ([True], pa.bool_(), "got bool; a column of timestamps"),
    ([dt.time(8)], pa.time32("s"), "time32[s]; the day as well, here of a column 'day': df['at'] = df['day']"),
    ([dt.timedelta(1)], pa.duration("ms"), "got duration[ms]; a column of timestamps"),
    ([[1]], pa.list_(pa.int64()), "a column of timestamps"),
])  # fmt: skip
def test_what_is_no_time(values: list[Any], kind: pa.DataType, telling: str) -> None:
    refused(UnsupportedData, "column 'at' must hold times; got", values, kind)
    refused(UnsupportedData, telling, values, kind)


def test_times_without_a_zone_need_one() -> None:
    telling = "column 'at' has times without a zone; got timestamp[ms]; pass timezone=\"UTC\", or the zone of the clock"
    refused(UnsupportedData, telling, [1], pa.timestamp("ms"))
    assert read([FIRST_DST_MS], pa.timestamp("ms"), timezone="UTC")[0].tolist() == [FIRST_DST_MS]
    summer = dt.datetime(2013, 7, 1, 5, 15)
    ms, _ = read([summer], pa.timestamp("ms"), timezone=NEW_YORK)
    assert ms.tolist() == [int(summer.replace(tzinfo=ZoneInfo(NEW_YORK)).timestamp() * 1000)]


def test_a_zone_in_the_type_stays() -> None:
    moment = dt.datetime(2013, 7, 1, tzinfo=ZoneInfo("Asia/Tokyo"))
    column = [moment]
    assert read(column, pa.timestamp("s", "Asia/Tokyo"), timezone=NEW_YORK)[0].tolist() == [
        int(moment.timestamp()) * 1000
    ]


@pytest.mark.parametrize("timezone", ["Nowhere/Else", ""])
def test_an_unknown_zone(timezone: str) -> None:
    telling = f'timezone must be a zone of the IANA database; got {timezone!r}; a name such as "UTC"'
    refused(InvalidArgument, telling, [1], pa.timestamp("ms"), timezone=timezone)
    refused(InvalidArgument, telling, [], pa.timestamp("ms"), timezone=timezone)


@pytest.mark.parametrize(
    ("zone", "name"),
    [(ZoneInfo("Europe/Berlin"), "Europe/Berlin"), (dt.UTC, "UTC"), (dt.timezone(dt.timedelta(hours=2)), "+02:00")],
)
def test_a_zone_may_be_a_tzinfo(zone: Any, name: str) -> None:
    assert Source(keys=("user",), timestamp="at", timezone=zone).timezone == name
    assert read([dt.datetime(2024, 7, 1)], pa.timestamp("ms"), timezone=zone)[0].tolist() == [
        int(dt.datetime(2024, 7, 1, tzinfo=zone).timestamp()) * 1000
    ]


def test_a_zone_that_is_not_known_names_those_that_end_like_it() -> None:
    for wrong, name in (("Berlin", "Europe/Berlin"), ("new york", "America/New_York")):
        refused(InvalidArgument, f'got {wrong!r}; timezone="{name}"', [1], pa.timestamp("ms"), timezone=wrong)


@given(st.integers(0, 400), st.integers(1, 401))
def test_the_row_named_is_the_first_that_fails(bad: int, more: int) -> None:
    times = [dt.datetime(2013, 7, 1)] * bad + [dt.datetime(2013, 3, 10, 2, 30)] * more
    refused(InvalidData, f"got row {bad}: ", times, pa.timestamp("s"), timezone=NEW_YORK)


def test_zones_that_are_not_mixed() -> None:
    aware, naive = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1)
    refuse_mixed_zones([aware, None, aware], "at")
    refuse_mixed_zones([naive, "text", naive], "at")
