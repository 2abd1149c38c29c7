"""`sessionize` on Spark is the local one."""

import re
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, UnsupportedData
from sessionkit.spark import readable_errors
from sessionkit.spark.worker.sessions_of_rows import IDS_OF_A_TASK
from tests.frames_with_rules import ADDED, ZONES, rules_drawn, with_short_minutes
from tests.frames_with_rules import drawn as drawn_with_rules
from tests.frames_with_sessions import COLUMNS, GAP_MS, GRACE_MS, drawn, in_one_form

pytestmark = pytest.mark.spark
FRAMES = 2_000


def collected(result: Any) -> pd.DataFrame:
    found = result.toPandas().sort_values(["frame", "offset"], ignore_index=True)
    for name in ("session_start", "session_end"):
        found[name] = found[name].dt.tz_localize("UTC")
    return found


@pytest.mark.filterwarnings("ignore:.* came too late and were dropped:UserWarning")
@pytest.mark.parametrize("grace", [None, f"{GRACE_MS}ms"], ids=["everything is there", "in order of arrival"])
def test_it_is_the_local_one(spark: Any, grace: str | None) -> None:
    rows = drawn(FRAMES)
    options: dict[str, Any] = {"by": "key", "at": "at", "gap": f"{GAP_MS}ms", "grace": grace}
    options |= {"partition": "frame", "offset": "offset"}
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        result = sk.sessionize(spark.createDataFrame(rows.sample(frac=1, random_state=1)), **options)
        assert result.columns == [*rows.columns, *COLUMNS]
        found = collected(result)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    local = in_one_form(sk.sessionize(rows, **options))
    assert found["session_id"].isna().tolist() == local["session_id"].isna().tolist()
    one_to_one = pd.DataFrame({"spark": found["session_id"], "local": local["session_id"]}).dropna().drop_duplicates()
    assert one_to_one["spark"].is_unique and one_to_one["local"].is_unique
    pd.testing.assert_frame_equal(in_one_form(found).drop(columns="session_id"), local.drop(columns="session_id"))


def test_few_rows_go_to_few_tasks(spark: Any) -> None:
    """As many tasks as `spark.sql.shuffle.partitions` says, 200 by default, took five times as long as their rows."""
    result = sk.sessionize(spark.createDataFrame(drawn(50)), by=["frame", "key"], at="at", gap=f"{GAP_MS}ms")
    assert set(result.toPandas()["session_id"].dropna() // IDS_OF_A_TASK) == {0}


@pytest.mark.parametrize("number", range(6))
def test_rules_are_the_local_ones(spark: Any, number: int) -> None:
    rows = drawn_with_rules(600)
    rows = rows[rows["zone"] == ZONES[number]].reset_index(drop=True)
    rules = rules_drawn(number) | [{"new_at": "midnight"}, {"new_when": ["place"], "max_rows": 3}][number % 2]
    options: dict[str, Any] = {"by": "key", "at": "at", "timezone": ZONES[number]}
    options |= {"partition": "frame", "offset": "offset"} | rules
    result = sk.sessionize(spark.createDataFrame(rows.sample(frac=1, random_state=1)), **options)
    found = result.toPandas().sort_values(["frame", "offset"], ignore_index=True)
    local = sk.sessionize(rows, **options)
    assert list(found.columns) == list(local.columns)
    pairs = pd.DataFrame({"spark": found["session_id"], "local": local["session_id"]}).drop_duplicates().dropna()
    assert pairs["spark"].is_unique and pairs["local"].is_unique
    zone = spark.conf.get("spark.sql.session.timeZone")
    for name in ADDED:
        there, here = found[name].astype(object), local[name].astype(object)
        if name in ("session_start", "session_end"):
            there, here = found[name].dt.tz_localize(zone).dt.tz_convert("UTC"), local[name].dt.tz_convert("UTC")
        assert there.where(there.notna(), None).tolist() == here.where(here.notna(), None).tolist(), name


def test_times_finer_than_a_millisecond_are_the_local_ones(spark: Any) -> None:
    """Spark's own are of microseconds."""
    rows, rules = with_short_minutes(drawn_with_rules(300), {"gap": "15m", "max_length": "40m", "until": "to"}, "us")
    options: dict[str, Any] = {"by": "key", "at": "at", "partition": "frame", "offset": "offset", "ids": "key"} | rules
    found = sk.sessionize(spark.createDataFrame(rows), **options).toPandas().sort_values(["frame", "offset"])
    local, zone = sk.sessionize(rows, **options), spark.conf.get("spark.sql.session.timeZone")
    assert re.search(r"\.\d{6}Z", local["session_id"].dropna().iloc[0])
    for name in ["session_id", *ADDED]:
        there, here = found[name].astype(object), local[name].astype(object)
        if name in ("session_start", "session_end"):
            there, here = found[name].dt.tz_localize(zone).dt.tz_convert("UTC"), local[name].dt.tz_convert("UTC")
        assert there.where(there.notna(), None).tolist() == here.where(here.notna(), None).tolist(), name


def test_all_rows_may_be_of_one_on_spark(spark: Any) -> None:
    df = spark.createDataFrame([("ada", 1), ("bo", 20), (None, 60)], "user string, at long").repartition(3)
    found = sk.sessionize(df, None, "at", "30s", unit="s", ids="key").toPandas().sort_values("at")
    first, second = '["1970-01-01T00:00:01.000Z"]', '["1970-01-01T00:01:00.000Z"]'
    assert found["session_id"].tolist() == [first, first, second]


def test_rules_that_go_by_order_need_one_on_spark(spark: Any) -> None:
    df = spark.createDataFrame([("ada", 1, 0)], "user string, at long, n int")
    with pytest.raises(InvalidArgument, match="go by the order of rows, and rows on Spark have none; got no offset="):
        sk.sessionize(df, "user", "at", "30s", unit="s", max_rows=3)
    assert sk.sessionize(df, "user", "at", "30s", unit="s", max_length="1h").collect()[0]["session_ended_by"] is None
    with pytest.raises(InvalidArgument, match="gap is no length and no column; got 'pause'"):
        sk.sessionize(df, "user", "at", "pause", unit="s")


def test_what_it_needs_is_said(spark: Any) -> None:
    df = spark.createDataFrame([("ada", 1, 0)], "`the user` string, at long, late int")
    with pytest.raises(InvalidArgument, match="the data has a column of this name already; got 'late'"):
        sk.sessionize(df, "the user", "at", "30s", unit="s")
    df = df.drop("late")
    assert sk.sessionize(df, "the user", "at", "30s", unit="s").count() == 1
    with pytest.raises(InvalidArgument, match="with a grace, the order of arrival counts"):
        sk.sessionize(df, "the user", "at", "30s", "10s", unit="s")
    with pytest.raises(NotBuilt, match="a streaming DataFrame"):
        sk.sessionize(spark.readStream.format("rate").load(), "value", "timestamp", "30s")


def test_what_is_no_time_is_said_before_anything_runs(spark: Any) -> None:
    """Text that is no time failed in the workers, after 21 s, and named the column 'c1'."""
    df = spark.createDataFrame([("ada", "banana", 1.0)], "`the user` string, `at.utc` string, size double")
    told = r"^column 'at\.utc' has texts that are no times; got 1, the first in a row of the user 'ada': 'banana'; ISO"
    with pytest.raises(InvalidData, match=told):
        sk.sessionize(df, "the user", "at.utc", "30s")
    for kind, want in {
        "timestamp_ntz": r"times without a zone; got timestamp\[us\]; pass timezone=\"UTC\", or the zone of the clock",
        "date": "times without a zone; got date32",
        "bigint": "plain numbers as times; got int64; pass unit=",
        "boolean": "column 'at' must hold times; got bool",
    }.items():
        rows = spark.sql(f"SELECT 'ada' AS user, CAST(NULL AS {kind}) AS at")
        with pytest.raises(UnsupportedData, match=want):
            sk.sessionize(rows, "user", "at", "30s")
    rows = spark.sql("SELECT 'ada' AS user, timestamp_ntz'2026-03-02 09:00:00' AS at")
    [found] = (
        sk.sessionize(rows, "user", "at", "30s", timezone="America/New_York")
        .selectExpr("date_format(to_utc_timestamp(session_start, current_timezone()), 'HH:mm') AS start")
        .collect()
    )
    assert found.start == "14:00"


def test_a_look_at_types_starts_no_job(spark: Any) -> None:
    rows = spark.sql("SELECT 'ada' AS user, timestamp'2026-03-02 09:00:00' AS at, raise_error('read') AS size")
    sk.sessionize(rows, "user", "at", "30s")  # Spark reads nothing of it
    text = spark.sql("SELECT 'ada' AS user, '2026-03-02T09:00Z' AS at, raise_error('read') AS size")
    sk.sessionize(text, "user", "at", "30s")  # one row, of the columns that it needs


@pytest.mark.parametrize("options", [{}, {"partition": "part", "offset": "place", "grace": "1m"}], ids=["key", "place"])
def test_a_bad_row_is_named_as_the_user_knows_it(spark: Any, options: dict[str, Any]) -> None:
    """Fifty lines ended in "column 'c1' has missing timestamps; got 1 (rows 4403)"."""
    rows = [("ada", f"2026-03-02T09:{n:02}Z" if n != 7 else "x", 3, 40 + n) for n in range(20)]
    df = spark.createDataFrame(rows, "`the user` string, `the time` string, part int, place long").coalesce(1)
    result = sk.sessionize(df, "the user", "the time", "30m", **options)
    place = "partition 3, offset 47" if options else "a row of the user 'ada'"
    told = f"column 'the time' has texts that are no times; got 1, the first in {place}: 'x'; ISO 8601"
    with pytest.raises(InvalidData, match=f"^{told}"), readable_errors():
        result.collect()
    with pytest.raises(Exception, match=told) as caught:
        result.collect()
    assert str(caught.value).count("\n") < 10, "without our own stack"


def test_formats_and_prefixes_work_and_what_needs_an_order_is_refused(spark: Any) -> None:
    df = spark.createDataFrame(
        [("ada", "01/02/2024 10:00", (1,)), ("ada", "01/02/2024 10:10", (2,))],
        "user string, at string, payload struct<total: long>",
    )
    options: dict[str, Any] = {"by": "user", "at": "at", "gap": "30m", "format": "%d/%m/%Y %H:%M", "timezone": "UTC"}
    found = sk.sessionize(df, **options, prefix="my_").toPandas()
    assert found["my_session_rows"].tolist() == [2, 2]
    for given, way in (
        ({"ambiguous": "infer"}, 'ambiguous="earliest"'),
        ({"on_bad_time": "partition_time"}, r"F\.coalesce"),
        ({"separator": ";"}, r"spark.read.csv\(path, sep="),
        ({"header": False}, r"spark.read.csv\(path, header=False\)"),
        ({"by": "payload.total"}, r"df.withColumn\('payload.total', F.col\('payload.total'\)\)"),
    ):
        with pytest.raises(NotBuilt, match=way):
            sk.sessionize(df, **(options | given))
    plan = sk.group_by_key("user", timestamp="at", format="%d/%m/%Y", partition="payload.total", offset="o")
    with pytest.raises(NotBuilt, match=r"F\.to_timestamp"):
        plan.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="0s")).count().run(df)
