"""Durations and times: read, printed, added without wrapping."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.base.durations import (
    INT64_MAX,
    MAX_DURATION_MS,
    as_duration,
    check_reach,
    duration_code,
    duration_ms,
    length_ms,
    show_duration,
)
from sessionkit.base.moments import show_time
from sessionkit.errors import InvalidArgument, NumberOverflow

AS_PEOPLE_WRITE_THEM = {
    7_200_000: [
        "2h", "2H", "2 h", "2 hours", "2 Hours", "2hr", "2 hrs", "120 minutes", "120 min", "120m", "PT2H", "pt2h",
    ],
    5_400_000: ["1h30m", "1h 30min", "1 hour 30 minutes", "1 hour, 30 minutes", "1 hour and 30 minutes", "1.5 hours"],
    5_400_001: ["01:30:00.001", "1:30:00.001", "PT1H30M0.001S", "0 days 01:30:00.001000", "1h30m1ms", "90 mins 1 msec"],
    129_600_000: ["36:00:00", "1 day, 12:00:00", "1 days 12:00:00", "P1DT12H", "PT36H", "1.5 days", "1 day 12 hours"],
    1_209_600_000: ["2w", "2 weeks", "14 days", "14D", "P2W", "P14D", "336 hrs", "1 wk 7 d"],
    45_000: [
        "45s", "45 sec", "45 secs", "45 seconds", "PT45S", "0:00:45", "45000 millis", "45000 milliseconds", "0.75m",
    ],
    0: ["0", "0s", "0 minutes", "PT0S", "00:00:00"],
}  # fmt: skip
OTHERWISE = [
    (0, 0), (0.0, 0), (np.int64(0), 0), (f"{MAX_DURATION_MS}ms", 2**62), ("30s", 30_000), ("1.5s", 1_500),
    ("0.25s", 250), ("250ms", 250), ("2m", 120_000), ("2min", 120_000), ("1h", 3_600_000), (" 1h  30 min ", 5_400_000),
    ("1d", 86_400_000), ("0.5d 1ms", 43_200_001), (dt.timedelta(hours=1), 3_600_000), (pd.Timedelta("90s"), 90_000),
    (np.timedelta64(2, "h"), 7_200_000), (np.timedelta64(90, "m"), 5_400_000), (np.timedelta64(1, "W"), 604_800_000),
    (np.timedelta64(3, "D"), 259_200_000), (np.timedelta64(5_000_000, "ns"), 5),
    (np.array([1, 2], "timedelta64[25s]")[1], 50_000), (pd.Series(pd.to_timedelta(["90 min"]))[0], 5_400_000),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_as", "ms"), [*((text, ms) for ms, texts in AS_PEOPLE_WRITE_THEM.items() for text in texts), *OTHERWISE]
)
def test_read(given_as: Any, ms: int) -> None:
    assert duration_ms(given_as, "gap") == ms


@given(st.integers(0, MAX_DURATION_MS))
def test_what_is_handed_on_written_and_shown_is_read_back(ms: int) -> None:
    for told in (as_duration(ms), duration_code(ms), show_duration(ms).replace(",", "")):
        assert duration_ms(told, "gap") == ms


NEEDS = '{0} needs a unit; got {1}; "{2}ms" for milliseconds, "{2}s" for seconds, "{2}m" for minutes'
NO_LENGTH = 'months and years have no fixed length: write days, such as "30d" or "365d"'
# What they write that says no length, and the end of the answer: what could be meant.
WHAT_THEY_MEAN: list[tuple[Any, str]] = [
    (7200, NEEDS.format("gap", 7200, 7200)), (7200.0, NEEDS.format("gap", 7200, 7200)),
    (1.5, NEEDS.format("gap", 1.5, 1.5)), (0.00001, NEEDS.format("gap", "0.00001", "0.00001")),
    (np.int32(30), NEEDS.format("gap", 30, 30)), (np.uint64(2**63), NEEDS.format("gap", 2**63, 2**63)),
    (np.float32(0.1), NEEDS.format("gap", 0.1, 0.1)),
    (MAX_DURATION_MS, NEEDS.format("gap", MAX_DURATION_MS, MAX_DURATION_MS)),
    ("7200", NEEDS.format("gap", "'7200'", 7200)), (" 30 ", NEEDS.format("gap", "' 30 '", 30)),
    ("1.5", NEEDS.format("gap", "'1.5'", 1.5)),
    ("01:30", 'write "1h 30m" for hours and minutes, or "1m 30s" for minutes and seconds'),
    ("1M", 'write "1min" for minutes; a month has no fixed length: write its days, such as "30d"'),
    ("5 M", 'write "5min" for minutes; a month has no fixed length: write its days, such as "30d"'),
    ("1 month", NO_LENGTH), ("2 years", NO_LENGTH), ("1 quarter", NO_LENGTH), ("P1M", NO_LENGTH),
    ("half an hour", 'a number with a unit (ms, s, m, h, d, weeks), such as "30s", "1h 30m" or "2 hours"'),
    ("0.5ms", "gap must be a whole number of milliseconds; got '0.5ms'; round it"),
    ("-30s", "gap must be 0 ms or more; got -30000 ms ('-30s'); gap=\"0s\" is allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("given_as", "telling"), WHAT_THEY_MEAN)
def test_what_says_no_length_is_answered_with_what_could_be_meant(given_as: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        duration_ms(given_as, "gap")
    assert str(caught.value).endswith(telling)


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        (("30s", None), 30_000), ((0, None), 0), ((dt.timedelta(hours=1), None), 3_600_000), ((None, 30_000), 30_000),
        ((None, 0), 0), ((None, np.int64(7)), 7), ((None, MAX_DURATION_MS), MAX_DURATION_MS),
    ],
)  # fmt: skip
def test_a_length_has_two_spellings(given: Any, ms: int) -> None:
    read = length_ms(*given, "grace")
    assert read == ms
    assert type(read) is int


@pytest.mark.parametrize(("given", "telling"), [
    ((None, None), 'got neither grace nor grace_ms; grace="5m" or other text, or grace_ms=300000 in milliseconds'),
    (("5m", 300_000), "grace and grace_ms cannot both be given; got grace='5m' and grace_ms=300000; leave one out"),
    ((0, 0), "grace and grace_ms cannot both be given; got grace=0 and grace_ms=0"),
    ((5, None), NEEDS.format("grace", 5, 5)),
    ((None, "5m"), "grace_ms must be an int; got '5m'; whole milliseconds such as grace_ms=300000, or grace=\"5m\""),
    ((None, 5.0), "grace_ms must be an int; got 5.0"), ((None, True), "grace_ms must be an int; got True"),
    ((None, np.bool_(1)), "grace_ms must be an int; got np.True_"),
    ((None, np.timedelta64(5, "s")), "grace_ms must be an int; got np.timedelta64(5,'s')"),
    ((None, dt.timedelta(1)), "grace_ms must be an int; got datetime.timedelta(days=1)"),
    ((None, -1), "grace_ms must be 0 ms or more; got -1 ms; grace_ms=0 is allowed"),
    ((None, 2**62 + 1), "grace_ms must be at most 2**62 ms; got 4611686018427387905 ms; shorten it"),
    ((None, 10**5_000), "grace_ms must be at most 2**62 ms; got (a number of 16,610 bits) ms"),
    ((None, -(10**5_000)), "grace_ms must be 0 ms or more; got (a number of 16,610 bits) ms"),
])  # fmt: skip
def test_lengths_that_are_refused(given: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        length_ms(*given, "grace")
    assert telling in str(caught.value)


NO_DURATIONS: list[Any] = [
    "--5s", "s", "1h x 2m", "1e3s", "nan s", "1.2.3s", "2 hours,", "2 hours and", "2 hoursand 3 s", "P", "PT",
    "1h 30M", "01:61:00",
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_as", "telling"),
    [
        (-1, 'gap must be 0 ms or more; got -1; gap="0s" is allowed'), (-0.5, "gap must be 0 ms or more; got -0.5"),
        (float("-inf"), "gap must be 0 ms or more; got -inf"),
        (float("inf"), "gap must be a duration; got inf; a number with a unit"),
        (float("nan"), "gap must be a duration; got nan; a number with a unit"),
        (1e300, "gap must be a duration; got 1e+300; a number with a unit"),
        (10**20, "gap must be a duration; got 100000000000000000000; a number with a unit"),
        (False, "gap must be a duration; got False"), ("-5ms", "gap must be 0 ms or more; got -5 ms ('-5ms')"),
        (dt.timedelta(milliseconds=-1), "gap must be 0 ms or more; got -1 ms"),
        (f"{MAX_DURATION_MS + 1}ms", "gap must be at most 2**62 ms; got 4611686018427387905 ms"),
        ("200000000000d", "gap must be at most 2**62 ms"),
        ("1.0000000001s", "gap must be a whole number of milliseconds"),
        (dt.timedelta(microseconds=1), "gap must be a whole number of milliseconds"),
        (pd.Timedelta(1_000_001, "ns"), "gap must be a whole number of milliseconds"),
        (None, "gap must be a duration; got None; give text such as"), (True, "gap must be a duration; got True"),
        (pd.NaT, "gap must be a duration; got NaT"), (b"30s", "gap must be a duration; got b'30s'"),
        ("", "gap must be a duration; got ''; a number with a unit (ms, s, m, h, d, weeks), such as"),
        ("-", "gap must be a duration; got '-'"), *((each, "gap must be a duration") for each in NO_DURATIONS),
        ("1 fortnight", "gap must be a duration; got '1 fortnight'; a number with a unit"),
        ("1.5 M", 'write "1.5min" for minutes'), ("P1Y2D", "months and years have no fixed length"),
        ("-2 hours", "gap must be 0 ms or more; got -7200000 ms ('-2 hours')"),
        (np.timedelta64("NaT"), "gap must be a duration; got np.timedelta64('NaT')"),
        (np.timedelta64(1, "M"), "give one in weeks, days, hours"),
        (np.timedelta64(5), "give one in weeks, days, hours"),
        (np.timedelta64(1, "us"), "gap must be a whole number of milliseconds"),
    ],
)  # fmt: skip
def test_refused_with_the_rule(given_as: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        duration_ms(given_as, "gap")
    assert telling in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "given_as",
    [10**5_000, -(10**5_000), "9" * 5_000 + "s", "1." + "3" * 5_000 + "s", "x" * 10**6],
    ids=["int", "negative int", "text", "fraction", "letters"],
)
def test_a_number_of_thousands_of_digits_is_refused_in_one_short_line(given_as: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^gap must be ") as caught:
        duration_ms(given_as, "gap")
    assert len(str(caught.value)) < 300


@given(
    st.integers(0, 10**9),
    st.integers(0, 999),
    st.sampled_from([("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]),
)
def test_fractions_are_exact(whole: int, thousandths: int, unit: tuple[str, int]) -> None:
    word, ms = unit
    assert duration_ms(f"{whole}.{thousandths:03}{word}", "gap") == whole * ms + thousandths * ms // 1_000


@pytest.mark.parametrize(
    ("ms", "shown", "code"),
    [
        (0, "0 s", "0s"), (1, "1 ms", "1ms"), (420_000, "7 min", "7m"), (5_400_000, "1 h 30 min", "1h30m"),
        (90_061_001, "1 d 1 h 1 min 1 s 1 ms", "1d1h1m1s1ms"), (10_000 * 86_400_000, "10,000 d", "10000d"),
    ],
)  # fmt: skip
def test_shown(ms: int, shown: str, code: str) -> None:
    assert (show_duration(ms), duration_code(ms)) == (shown, code)


def test_a_negative_difference_is_shown_with_its_sign() -> None:
    assert show_duration(-90_000) == "-1 min 30 s"


@pytest.mark.parametrize(("ms", "shown"), [
    (0, "1970-01-01 00:00:00"), (1_372_655_700_000, "2013-07-01 05:15:00"),
    (1_372_655_700_042, "2013-07-01 05:15:00.042"), (INT64_MAX, f"{INT64_MAX} ms"),
])  # fmt: skip
def test_times_shown(ms: int, shown: str) -> None:
    assert show_time(ms) == shown


def test_reach_up_to_the_last_64_bit_time() -> None:
    check_reach(INT64_MAX, 0, "inactivity_gap")
    check_reach(INT64_MAX - 5, 5, "inactivity_gap")
    telling = (
        f"a window would end after the largest 64-bit time; got timestamp {INT64_MAX - 4} with inactivity_gap 5 ms"
    )
    with pytest.raises(NumberOverflow) as caught:
        check_reach(INT64_MAX - 4, 5, "inactivity_gap")
    assert telling in str(caught.value)
    assert isinstance(caught.value, OverflowError)
