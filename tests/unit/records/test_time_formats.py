"""Times as web servers, spreadsheets and `format=` write them, hours that clocks show twice, records without a time."""

import datetime as dt
import email.utils
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.text import literal
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, UnsupportedData
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.source import Source
from sessionkit.records.time_text import formats_for
from sessionkit.records.times import to_milliseconds

BERLIN = {"timezone": "Europe/Berlin"}
NIGHT = ["01:59", "02:05", "02:05", "02:50", "02:10", "02:50", "03:10"]  # of 2024-10-27, when 3 o'clock became 2
WINDOWS = sk.SessionWindows(inactivity_gap="30s", grace="0s")


def batch_of(texts: Any, **options: Any) -> RecordBatch:
    column = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    data = pa.table({"user": ["a"] * len(column), "at": column})
    return read_records(data, Source(keys=("user",), timestamp="at", **options), ())


def read(texts: Any, **options: Any) -> list[str | None]:
    times = batch_of(texts, **options).timestamp_ms.tolist()
    told = [dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds") for ms in times if ms >= 0]
    found = iter(told)
    return [next(found).removesuffix("+00:00") if ms >= 0 else None for ms in times]


@pytest.mark.parametrize(("text", "time", "named"), [
    ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36.000", "%d/%b/%Y"),
    ("[10/Oct/2000:13:55:36 +0530]", "2000-10-10T08:25:36.000", "%d/%b/%Y"),
    ("[9/DEC/2000:13:55:36", "2000-12-09T13:55:36.000", "%d/%b/%Y"),
    ("2015/01/01 01:00", "2015-01-01T01:00:00.000", "%Y/%m/%d"),
    ("2015/1/5 1:00:07.25", "2015-01-05T01:00:07.250", "%Y/%m/%d"),
    ("2015/01/01", "2015-01-01T00:00:00.000", "%Y/%m/%d"), ("31.12.2024 10:00", "2024-12-31T10:00:00.000", "%d.%m.%Y"),
    ("1.2.2024, 09:30:01", "2024-02-01T09:30:01.000", "%d.%m.%Y"),
    ("Fri, 20 Feb 2026 16:17:16 +0100", "2026-02-20T15:17:16.000", "%a, %d %b %Y %H:%M:%S %z"),
    ("3 mar 2026 09:40 GMT", "2026-03-03T09:40:00.000", "%a, %d %b %Y %H:%M:%S %z"),
    ("Tue,03 Mar 2026 12:00:07 -0530 (some zone)", "2026-03-03T17:30:07.000", "%a, %d %b %Y %H:%M:%S %z"),
    ("11 Jul 2024, 09:07", "2024-07-11T09:07:00.000", "%d %b %Y"),
    ("3-march-2024 9:07:01", "2024-03-03T09:07:01.000", "%d %b %Y"),
    ("3 Mar 2024", "2024-03-03T00:00:00.000", "%d %b %Y"),
    ("20171223-22:15:29:606", "2017-12-23T22:15:29.606", "%Y%m%d-%H:%M:%S"),
    ("20171224-0:7:20:44", "2017-12-24T00:07:20.044", "%Y%m%d-%H:%M:%S"),
    ("20171224 9:07:2:5 +0100", "2017-12-24T08:07:02.005", "%Y%m%d-%H:%M:%S"),
    ("2017-12-24 9:05", "2017-12-24T09:05:00.000", "%Y-%m-%d"),
    ("2017-1-2T09:05:3.25Z", "2017-01-02T09:05:03.250", "%Y-%m-%d"),
    ("2017-12-24 10:05:09:123456", "2017-12-24T10:05:09.123", "%Y-%m-%d"),
    ("24/Dec/2017:10:05:09:7 +0000", "2017-12-24T10:05:09.007", "%d/%b/%Y"),
    ("20241231T100000Z", "2024-12-31T10:00:00.000", "%Y%m%dT%H%M%S"),
    ("20241231T123456.789+0100", "2024-12-31T11:34:56.789", "%Y%m%dT%H%M%S"),
    ("20241231T1234", "2024-12-31T12:34:00.000", "%Y%m%dT%H%M%S"),
])  # fmt: skip
def test_what_can_be_meant_in_one_way_is_recognised_and_said(text: str, time: str, named: str) -> None:
    batch = batch_of([None, text, ""], timezone="UTC", on_bad_time="drop")
    assert read([None, text, ""], timezone="UTC", on_bad_time="drop") == [None, time, None]
    remark, unusable = batch.remarks
    assert unusable == "2 of 3 records have no usable time ('at') and are in no window."
    assert remark.startswith(f"column 'at' is read as {named}: {text!r} is {time[:10]}")
    assert "format=" in remark


@pytest.mark.parametrize(
    ("offset", "text", "form"),
    [
        ("+02:00", "2026-07-01T10:00:00+02:00", None), ("+02:00", "2026-07-01 10:00:00+02:00", None),
        ("+0200", "2026-07-01 10:00:00.25 +0200", None), ("-0700", "[10/Oct/2000:13:55:36 -0700]", None),
        ("-0500", "1/2/2024 10:00 -0500", "%d/%m/%Y %H:%M %z"),
        ("+0200", "Wed Oct 10 20:19:24 +0200 2018", "%a %b %d %H:%M:%S %z %Y"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["{}", '"{}"', ""])
def test_offsets_are_told_where_no_zone_is_named(tmp_path: Path, offset: str, text: str, form: str, field: str) -> None:
    texts = ["", "", text.replace(offset, "+00:00" if ":" in offset else "+0000"), text, text]
    file, said = tmp_path / "a.csv", f"Times with an offset, such as {offset}, are shown in UTC unless timezone= names "
    file.write_text("user,at\n" + "".join(f"a,{field.format(each)}\n" for each in texts))
    data = file if field else pd.DataFrame({"user": "a", "at": texts})
    for zone in (None, "Europe/Berlin"):
        plan = sk.group_by_key("user", timestamp="at", timezone=zone, on_bad_time="drop", format=form)
        remarks = plan.windowed_by(WINDOWS).count().run(data).remarks()
        assert [each for each in remarks if "offset" in each] == ([] if zone else [f"{said}another zone."])
    with pytest.warns(UserWarning) as warned:
        sk.sessionize(pd.DataFrame({"user": "a", "at": [text]}), "user", "at", "1h", format=form)
    assert f"{said}another zone." in [str(each.message) for each in warned]


def test_recognised_texts_may_differ_in_how_fine_they_are() -> None:
    texts = ["2015/01/01 01:00", "2015/01/02 01:00:05", "2015/01/03", "2015-01-04T00:00:00.5"]
    days = ["2015-01-01T01:00:00.000", "2015-01-02T01:00:05.000", "2015-01-03T00:00:00.000", "2015-01-04T00:00:00.500"]
    assert read(texts, timezone="UTC") == days
    with pytest.raises(UnsupportedData, match="times without a zone"):
        read(texts)


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("01/02/2024 10:00", 'format="%d/%m/%Y %H:%M" or "%m/%d/%Y %H:%M"'), ("13/02/2024", 'format="%d/%m/%Y"'),
        ("01/05/2025 03:15 PM", 'format="%d/%m/%Y %I:%M %p" or "%m/%d/%Y %I:%M %p"'),
        ("01/25/2025 3:15:07pm", 'format="%m/%d/%Y %I:%M:%S%p"'), ("Oct 11 22:14:15", 'format="2024 %b %d %H:%M:%S"'),
        ("10.30 16:49:06", 'format="2024 %m.%d %H:%M:%S", with the year'), ("13-32 10:00", "ISO 8601"),
        ("[3/4 1:02:03,5]", 'format="2024 %m/%d %H:%M:%S,%f" or "2024 %d/%m %H:%M:%S,%f"'),
        ("31.02.2024 10:00", "ISO 8601"), ("12.31.2024 10:00", "ISO 8601"), ("20241231", 'format="%Y%m%d"'),
        ("202412311030", 'format="%Y%m%d%H%M"'), ("20241331", "ISO 8601"),
        ("03.11.25 08:04", 'format="%d.%m.%y %H:%M" or "%y.%m.%d %H:%M"'), ("03.31.25", "ISO 8601"),
        ("31-12-2024", 'format="%d-%m-%Y"'), ("31/12/25", 'format="%d/%m/%y" or "%y/%m/%d"'),
        ("25-12-45", 'format="%d-%m-%y"'), ("99-12-31T10:00:00", 'format="%y-%m-%d'),
        ("10/Okt/2000:13:55:36 -0700", "ISO 8601"), ("2015/01/01 01:00 PM", 'format="%d.%m.%Y %H:%M"'),
    ],
)  # fmt: skip
def test_what_can_be_meant_in_several_ways_is_refused_with_the_way(text: str, way: str) -> None:
    with pytest.raises(InvalidData, match="has texts that are no times; got 1, the first in row 1") as refused:
        read(["2024-01-01", text], timezone="UTC")
    assert way in str(refused.value)


@pytest.mark.parametrize(
    ("texts", "form", "times"),
    [
        (["01/02/2024 10:00", "13/02/2024"], "%d/%m/%Y %H:%M", ["2024-02-01T10:00:00.000", None]),
        (["01/02/2024 10:00 PM"], "%m/%d/%Y %I:%M %p", ["2024-01-02T22:00:00.000"]),
        (["[10/Oct/2000:13:55:36 -0700]"], "[%d/%b/%Y:%H:%M:%S %z]", ["2000-10-10T20:55:36.000"]),
        (["Oct  1 22:14:15"], "2024 %b %d %H:%M:%S", ["2024-10-01T22:14:15.000"]),
        (["[10.30 16:49:06]"], "2024 %m.%d %H:%M:%S", ["2024-10-30T16:49:06.000"]),
        (["17-03 6:13:38.811"], "2024 %d-%m %H:%M:%S.%f", ["2024-03-17T06:13:38.811"]),
        (["Feb 29 00:00:00"], "2024 %b %d %H:%M:%S", ["2024-02-29T00:00:00.000"]),
        ([" 1.2.24 ", None, ""], "%d.%m.%y", ["2024-02-01T00:00:00.000", None, None]),
        (["20240201-10:00:00.1239"], "%Y%m%d-%H:%M:%S.%f", ["2024-02-01T10:00:00.123"]),
        (pa.array([20240201, 20240202]), "%Y%m%d", ["2024-02-01T00:00:00.000", "2024-02-02T00:00:00.000"]),
    ],
)  # fmt: skip
def test_a_format_names_how_times_are_written(texts: Any, form: str, times: list[str]) -> None:
    assert read(texts, format=form, timezone="UTC", on_bad_time="drop") == times


MAILS = ["Tue, 03 Mar 2026 10:00:00 EST", "3 Mar 2026 09:40 PDT", "Tue, 03 Mar 2026 12:00:00 EST (Boston)", None]
SENT = ["2026-03-03T15:00:00.000", "2026-03-03T16:40:00.000", "2026-03-03T17:00:00.000", None]


@pytest.mark.parametrize(("texts", "options", "times"), [
    (["1773364565531.4"], {"unit": "s"}, ["2026-03-13T01:16:05.531"]), (MAILS, {}, SENT),
    (MAILS, {"format": "%a, %d %b %Y %H:%M:%S %z"}, SENT), (MAILS[1:2] * 2, {}, SENT[1:2] * 2),
    (["2026-03-03T16:00:00+01:00", *["1772552400000"] * 2, None], {},
     [SENT[0], *["2026-03-03T15:40:00.000"] * 2, None]),
])  # fmt: skip
def test_texts_that_pandas_makes_times_of_are_told_with_the_line(texts: Any, options: Any, times: list[str]) -> None:
    with pytest.raises(InvalidData) as refused:
        read(texts, **options)
    told = re.search(r"; ((?:number|df\['at'\]) = .*?)(?:, with unit=\"(\w+)\".*)?$", str(refused.value))
    assert told is not None, refused.value
    exec(told[1], {"df": (df := pd.DataFrame({"at": texts})), "pandas": pd, "email": email})  # noqa: S102
    assert read(pa.array(df["at"], from_pandas=True), unit=told[2], on_bad_time="drop") == times


@pytest.mark.parametrize(("unit", "zeros"), [("s", 0), ("ms", 3), ("us", 6), ("ns", 9)])
def test_digits_that_are_text_are_told_with_their_unit(unit: str, zeros: int) -> None:
    texts = [second + "0" * zeros for second in ("1773364565", "1773364566")]
    with pytest.raises(InvalidData, match=f'row 0: .*; unit="{unit}"$'):
        read(texts)
    times = ["2026-03-13T01:16:05.000", "2026-03-13T01:16:06.000", None]
    assert read([*texts, "-"], unit=unit, on_bad_time="drop") == times
    with pytest.raises(InvalidData, match="got 1, the first in row 2: '-'"):
        read([*texts, "-"], unit=unit)


def test_the_order_of_day_and_month_is_told_by_any_of_the_texts() -> None:
    with pytest.raises(InvalidData, match=r'the first in row 0.*; format="%m/%d/%Y"$') as refused:
        read(["01/02/2024", "01/31/2024", "02/01/2024"], timezone="UTC")
    assert "%d/%m" not in str(refused.value)


def test_the_place_of_a_year_of_two_digits_is_told_by_all_texts_together() -> None:
    assert formats_for("03.04.05", "29.01.07", "07.01.30") == ["%d.%m.%y", "%y.%m.%d"]
    assert formats_for("03.04.05", "x", "07.01.45") == ["%d.%m.%y"]
    assert formats_for("03/04/05", "13/01/07", "32/01/07") == ["%y/%m/%d"]


def test_times_of_day_are_told_to_lack_the_day() -> None:
    with pytest.raises(InvalidData, match="; the day as well, here of a column 'day': df") as refused:
        read(["06:14:00", "23:10"])
    df = pd.DataFrame({"day": ["2026-02-03"], "at": "06:14"})
    exec(str(refused.value).partition("'day': ")[2], {"df": df})  # noqa: S102
    assert read(df["at"].tolist(), timezone="UTC") == ["2026-02-03T06:14:00.000"]


def test_a_format_leaves_zones_as_they_are() -> None:
    mixed = ["01/02/2024 10:00 +0100", "01/02/2024 10:00 -0500", "01/02/2024 10:00 Z"]
    hours = ["2024-02-01T09:00:00.000", "2024-02-01T15:00:00.000", "2024-02-01T10:00:00.000"]
    assert read(mixed, format="%d/%m/%Y %H:%M %z") == hours
    assert read(["01/07/2024 10:00"], format="%d/%m/%Y %H:%M", **BERLIN) == ["2024-07-01T08:00:00.000"]
    with pytest.raises(UnsupportedData, match="times without a zone"):
        read(["01/07/2024 10:00"], format="%d/%m/%Y %H:%M")


def test_a_text_that_the_format_does_not_fit() -> None:
    wrong = (
        "column 'at' has texts that are no times; got 1, the first in row 1: '2024-02-01'; texts such as \"03/02/2001\""
    )
    with pytest.raises(InvalidData) as refused:
        read(["01/02/2024", "2024-02-01"], format="%d/%m/%Y", timezone="UTC")
    assert wrong in str(refused.value)
    assert read(["x"], format="%d/%m/%Y", timezone="UTC", on_bad_time="drop") == [None]


@pytest.mark.parametrize(("form", "way"), [
    ("dd/mm/yyyy", "format must name a whole day"), ("%d/%m", "format must name a whole day"),
    ("%b %d %H:%M:%S", 'format="2024 %b %d %H:%M:%S"'), ("%Y-%q", "format must name a whole day"),
    ("%H:%M-%H:%M", "format must name a whole day"), ("%Y", "format must name a whole day"), (7, "format must be text"),
])  # fmt: skip
def test_a_format_that_is_none(form: Any, way: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        sk.group_by_key("user", timestamp="at", format=form)
    assert way in str(refused.value)
    with pytest.raises(InvalidArgument, match="unit= is of numbers and format= of texts"):
        sk.group_by_key("user", timestamp="at", format="%Y-%m-%d", unit="s")


SYSLOG = "2026 %b %d %H:%M:%S"


def log_over_new_year(order: str) -> tuple[pd.DataFrame, pd.DatetimeIndex]:
    times = pd.date_range("2026-12-30 22:00", "2027-01-02 09:00", freq="7min")
    if order == "late":  # one line of the old year is written in the new one
        times = times.insert(300, times[0] + pd.Timedelta("25h"))
    elif order == "newest first":
        times = times[::-1]
    texts = times.strftime("%b %d %H:%M:%S")
    return pd.DataFrame({"user": [f"u{n % 3}" for n in range(len(times))], "at": texts}), times


@pytest.mark.parametrize("sort", [False, "timestamp"])
@pytest.mark.parametrize("order", ["rising", "late", "newest first"])
def test_a_year_that_turns_in_a_log_without_years_is_told_with_the_way(order: str, sort: Any) -> None:
    (df, times), year = log_over_new_year(order), "2027" if order == "newest first" else "2026"
    read: dict[str, Any] = {"timestamp": "at", "timezone": "UTC", "sort": sort}
    form = SYSLOG.replace("2026", year)
    remarks = sk.group_by_key("user", format=form, **read).windowed_by(WINDOWS).count().run(df).remarks()
    told = next(each for each in remarks if "the year seems to turn at row" in each)
    assert told.count("sort") == 0 and not any("sort=" in each for each in remarks if "newest" not in each)
    assert sum("Give the rows" in each for each in remarks) == 1
    line, _, named = told.partition(": ")[2].rpartition(", with format=")
    exec(line, {"df": df, "numpy": np, "pandas": pd})  # noqa: S102
    found = read_records(df, sk.group_by_key("user", format=named.strip('".'), **read).source, ())
    assert pd.to_datetime(found.timestamp_ms, unit="ms").tolist() == (sorted(times) if sort else times.tolist())
    assert not any("year" in each for each in found.remarks)


def test_the_years_of_keys_one_after_another_do_not_seem_to_turn() -> None:
    days = pd.date_range("2026-01-01", "2026-12-31", freq="1D").strftime("%b %d %H:%M:%S")
    batch = batch_of([*days] * 4, format=SYSLOG, timezone="UTC")
    assert not any("year" in each for each in batch.remarks)


def test_a_csv_of_digits_is_text_where_a_format_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,at\nada,20240201\n", encoding="utf-8")
    plan = sk.group_by_key("user", timestamp="at", format="%Y%m%d", timezone="UTC").windowed_by(WINDOWS).count()
    assert plan.run(str(tmp_path / "a.csv")).table()["window_start"].tolist() == [pd.Timestamp("2024-02-01", tz="UTC")]


# ---- an hour that clocks show twice


def test_the_order_of_rows_tells_which_of_two_hours_is_meant() -> None:
    texts = [f"2024-10-27 {time}" for time in NIGHT]
    utc = ["23:59", "00:05", "00:05", "00:50", "01:10", "01:50", "02:10"]
    found = read(texts, ambiguous="infer", **BERLIN)
    assert [each[11:16] for each in found if each] == utc
    appended = read([*texts, *texts], ambiguous="infer", **BERLIN)  # two histories, one after the other
    assert appended == [*found, *found]
    once = [texts[row] for row in (0, 1, 3, 4, 5, 6)]  # pandas takes two equal times for a step back
    by_pandas = pd.DatetimeIndex(once).tz_localize("Europe/Berlin", ambiguous="infer").tz_convert("UTC")
    assert read(once, ambiguous="infer", **BERLIN) == [time.strftime("%Y-%m-%dT%H:%M:%S.000") for time in by_pandas]


def test_a_row_without_a_time_does_not_part_the_hour_that_clocks_show_twice() -> None:
    texts = [f"2024-10-27 {time}" for time in ("01:50", "02:10", "02:50", "02:10", "02:40", "03:10")]
    found, holes = read(texts, ambiguous="infer", **BERLIN), {"ambiguous": "infer", "on_bad_time": "drop"}
    for row in range(len(texts) + 1):
        assert read([*texts[:row], None, *texts[row:]], **holes, **BERLIN) == [*found[:row], None, *found[row:]]


def test_an_hour_that_no_order_tells_is_refused_with_its_row() -> None:
    once = ["2024-10-27 01:59", "2024-10-27 02:50", None, "2024-10-27 03:10"]
    with pytest.raises(InvalidData) as refused:
        read(once, ambiguous="infer", on_bad_time="drop", **BERLIN)
    assert str(refused.value) == (
        "column 'at' has a time that clocks showed twice, and the order of the rows does not tell which is meant; "
        "got row 1: 2024-10-27 02:50:00 in Europe/Berlin; "
        'rows in order of time around the change, or ambiguous="earliest" or "latest"'
    )


def test_what_a_zone_cannot_resolve_is_told_in_plain_words() -> None:
    with pytest.raises(InvalidData) as twice:
        read(["2024-10-27 01:59", "2024-10-27 02:50", "2024-10-27 02:10"], **BERLIN)
    assert str(twice.value) == (
        "column 'at' has a time that clocks showed twice, as they were set back; got row 1: 2024-10-27 02:50:00 in "
        'Europe/Berlin; ambiguous="earliest" or "latest" choose one, and "infer" goes by the order of the rows'
    )
    with pytest.raises(InvalidData) as never:
        read(["2024-03-31 01:59", "2024-03-31 02:50"], ambiguous="infer", **BERLIN)
    assert str(never.value) == (
        "column 'at' has a time that no clock showed, as they were set forward; got row 1: 2024-03-31 02:50:00 in "
        'Europe/Berlin; nonexistent="earliest" or "latest" choose one'
    )
    for texts in (["2024-10-27 02:50", "2024-03-31 02:50"], ["2024-03-31 02:50", "2024-10-27 02:50"]):
        with pytest.raises(InvalidData, match=r'"earliest" or .*; for a time that .*"earliest" or') as both:
            read(texts, **BERLIN)  # which were told one after the other
        assert "nonexistent=" in str(both.value) and "ambiguous=" in str(both.value)
    assert read(["2024-03-31 02:50"], ambiguous="infer", nonexistent="latest", **BERLIN) == ["2024-03-31T01:00:00.000"]


@pytest.mark.parametrize(
    ("times", "sort", "is_named"),
    [(["02:10", "02:50", "02:10"], False, True), (["02:10", "02:50", "02:10"], True, False),
     (["02:00", "03:00"], False, False), (["02:50", "02:40", "02:30"], False, False)],
)  # fmt: skip
def test_the_order_of_rows_is_named_as_a_way_only_where_it_tells(times: list[str], sort: bool, is_named: bool) -> None:
    ordered: dict[str, Any] = {"partition": "p", "offset": "o", "sort": True} if sort else {}
    source = sk.group_by_key("user", timestamp="at", **BERLIN, **ordered).source
    column = pa.chunked_array([[f"2024-10-27 {time}" for time in times]])
    with pytest.raises(InvalidData, match='ambiguous="earliest" or "latest" choose one') as refused:
        to_milliseconds(column, source)
    assert ('"infer"' in str(refused.value)) == is_named


def test_the_order_of_rows_cannot_tell_where_it_is_made_anew() -> None:
    with pytest.raises(InvalidArgument, match='ambiguous="infer" goes by the order of the rows'):
        sk.group_by_key("user", timestamp="at", partition="p", offset="o", sort=True, ambiguous="infer")


# ---- Kafka's UsePartitionTimeOnInvalidTimestamp

TIMES = pa.array([5_000, None, 9_000, 7_000, -4, None], pa.int64())


def test_a_record_without_a_time_takes_that_of_its_partition() -> None:
    batch = batch_of(TIMES, unit="ms", on_bad_time="partition_time")
    assert batch.timestamp_ms.tolist() == [5_000, 5_000, 9_000, 7_000, 9_000, 9_000]
    assert batch.rejected is None
    assert batch.remarks == ("3 records without a usable time took that of the partition",)


def test_each_partition_has_a_time_of_its_own_and_records_without_a_key_count() -> None:
    rows = pa.table({"user": ["a", "b", None, "b", "a"], "p": [0, 1, 1, 1, 0], "o": [1, 1, 2, 3, 2],
                     "at": pa.array([5, 1, 8, None, None], pa.int64())})  # fmt: skip
    places = {"partition": "p", "offset": "o", "unit": "s", "on_bad_time": "partition_time"}
    batch = read_records(rows, Source(keys=("user",), timestamp="at", **places), ())
    assert batch.timestamp_ms.tolist() == [5_000, 1_000, 8_000, 8_000, 5_000]
    plan = sk.group_by_key("user", timestamp="at", **places).windowed_by(WINDOWS).count()  # type: ignore[arg-type]
    assert plan.run(rows).assign(rows)["session_id"].to_pylist() == [0, 1, None, 1, 0]


def test_without_a_time_before_it_kafka_stops() -> None:
    with pytest.raises(InvalidData) as refused:
        batch_of(pa.array([None, 5], pa.int64()), unit="ms", on_bad_time="partition_time")
    assert str(refused.value) == (
        "the time of a partition is unknown before its first record with a time; got row 0; "
        'a time for the first record of each partition, or on_bad_time="drop"'
    )


def test_what_the_time_of_a_partition_does_not_go_with() -> None:
    with pytest.raises(InvalidArgument, match='on_bad_time="partition_time" goes by the order of arrival'):
        sk.group_by_key("user", timestamp="at", sort="timestamp", on_bad_time="partition_time")
    plan = sk.group_by_key("user", timestamp="at", unit="ms", on_bad_time="partition_time").windowed_by(WINDOWS).count()
    with sk.open_store("memory", "s") as store, pytest.raises(NotBuilt, match="does not keep the time of a partition"):
        plan.run(pa.table({"user": ["a"], "at": [1]}), store=store)
    assert "new UsePartitionTimeOnInvalidTimestamp()" in str(plan.to_java(timestamp="record"))
    assert "return ms >= 0 ? ms : partitionTime >= 0 ? partitionTime : refused(time);" in str(plan.to_java())


@pytest.mark.parametrize(("texts", "forms"), [
    (["22-Jan-01 02:00", "22-Jan-01 02:10"], ["%d-%b-%y %H:%M", "%y-%b-%d %H:%M"]),
    (["22-Jan-01", "22-Jan-12"], ["%d-%b-%y", "%y-%b-%d"]),
    (["91-Jan-01", "22-Jan-31"], ["%y-%b-%d"]),
    (["01 Jun 22 1:05:00 PM"], ["%d %b %y %I:%M:%S %p", "%y %b %d %I:%M:%S %p"]),
])  # fmt: skip
def test_a_year_of_two_digits_beside_the_name_of_a_month_is_told(texts: list[str], forms: list[str]) -> None:
    """Delays of buses had such days: the format that was named could not read them."""
    frame = pd.DataFrame({"k": "a", "at": texts})
    with pytest.raises(InvalidData) as refused:
        sk.sessionize(frame, by="k", at="at", gap="1h")
    assert f"; format={' or '.join(map(literal, forms))}" in str(refused.value)
    for form in forms:
        assert len(sk.sessionize(frame, by="k", at="at", gap="1h", format=form, timezone="UTC")) == len(texts)


@pytest.mark.parametrize("form", [None, "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p"])
def test_times_that_are_written_in_two_ways_are_told_with_the_line_that_reads_both(form: str | None) -> None:
    """As a spreadsheet leaves them: the format of one part was named, and then that of the other, or to drop it."""
    texts = ["04/12/2016 00:00", "04/12/2016 01:00", "4/13/2016 12:00:00 AM", "4/13/2016 1:00:00 PM"] * 9
    frame = pd.DataFrame({"k": "a", "at": texts})
    with pytest.raises(InvalidData) as refused:
        sk.sessionize(frame, by="k", at="at", gap="1h", format=form)
    assert "has times that are written in several ways" in str(refused.value)
    assert "on_bad_time" not in str(refused.value)
    exec(str(refused.value).rpartition("; ")[2], {"df": frame, "pandas": pd})  # noqa: S102
    assert frame["at"].astype(str).unique().tolist() == [
        "2016-04-12 00:00:00", "2016-04-12 01:00:00", "2016-04-13 00:00:00", "2016-04-13 13:00:00",
    ]  # fmt: skip


def test_days_first_in_two_ways_are_told_so() -> None:
    frame = pd.DataFrame({"k": "a", "at": ["13/04/2016 00:00", "14/4/2016 1:00:00 PM", "01/02/2016 00:00"] * 9})
    with pytest.raises(InvalidData, match='format="mixed", dayfirst=True'):
        sk.sessionize(frame, by="k", at="at", gap="1h")
    frame = pd.DataFrame({"k": "a", "at": ["01/04/2016 00:00", "02/4/2016 1:00:00 PM"] * 9})
    with pytest.raises(InvalidData, match='format="mixed"\\) \\(with dayfirst=True where the day stands first\\)'):
        sk.sessionize(frame, by="k", at="at", gap="1h")


SECONDS = ["1773364565.531693", "1773364566"]


@pytest.mark.parametrize("seconds", [pa.array(SECONDS), pa.array(SECONDS).cast(pa.decimal128(20, 6))])
def test_seconds_with_a_fraction_are_read_as_text_and_as_decimals(seconds: pa.Array) -> None:
    assert read(seconds, unit="s") == ["2026-03-13T01:16:05.531", "2026-03-13T01:16:06.000"]


def test_texts_of_seconds_with_a_fraction_are_told_with_their_unit() -> None:
    with pytest.raises(InvalidData, match=r'; unit="s"$'):
        read(SECONDS)
