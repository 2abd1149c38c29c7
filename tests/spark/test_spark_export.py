"""Python code that a plan writes for Spark: run as it is printed, and equal to the plan where nothing is late."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from tests.kinds import every, group_in_ms
from tests.optional import SparkSession

pytestmark = pytest.mark.spark

WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap="10s", grace="6s"),
    "tumbling": sk.TimeWindows(size="10s", grace="7s"),
    "hopping": sk.TimeWindows(size="10s", advance="4s", grace="7s"),
    "tumbling moved": sk.TimeWindows(size="10s", offset="3s", grace="7s"),
    "hopping moved": sk.TimeWindows(size="10s", advance="4s", offset="3s", grace="7s"),
}
WORD = "wo`rd.'\"\\\n*/"
EVERY = every(WORD, real_sum="real sum", last="la`st.'\"\\\n")
EVERY |= {
    "words": sk.count_distinct(WORD), "halves": sk.count_distinct("half"), "middle": sk.median("real"),
    "most": sk.quantile("whole", 0.75), "spread": sk.std("half"), "ayes spread": sk.std("flag"),
}  # fmt: skip
TYPES = {"whole": "bigint", "real": "double", "half": "double", WORD: "string", "flag": "boolean"}
ARROW = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}


def _rows() -> list[dict[str, Any]]:
    """Records in order of time, one of them exactly a gap after another; no value twice, so that order is seen."""
    times = [21_000, 25_000, 35_000, 45_001, 60_000, 60_500, 64_000, 90_000]
    rows = [{"user": key, "at": time} for time in times for key in (7, -7)]
    for i, row in enumerate(rows):
        row.update({"whole": None if i % 5 == 0 else i, "real": None if i % 3 == 0 else i / 4})
        row["half"] = [None, -0.0, 0.0, 0.5][i % 4]
        row.update({WORD: None if i % 4 == 0 else f"w{i}", "flag": None if i % 2 else i % 3 == 0})
    return rows


@pytest.mark.filterwarnings("ignore:column .* read as")
@pytest.mark.parametrize("unit", ["ms", "us", None])
@pytest.mark.parametrize("kind", WINDOWS)
def test_a_batch_query_gives_the_plans_windows(spark: SparkSession, kind: str, unit: str | None) -> None:
    plan = group_in_ms("user", unit=unit).windowed_by(WINDOWS[kind]).aggregate(**EVERY)
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(str(plan.to_spark(types=TYPES, key_type="bigint")), "exported.py", "exec"), module)  # noqa: S102
    rows = _rows()
    raw = [(row["user"].to_bytes(8, "big", signed=True), json.dumps(_value(row, unit)).encode()) for row in rows]
    frame = spark.createDataFrame([*raw, (None, raw[0][1])], "key binary, value binary").coalesce(1)
    found = module["windowed"](module["records"](frame)).toArrow().to_pylist()
    scale = {"us": 1000}.get(str(unit), 1)
    kind_of_time = pa.timestamp("ms", "UTC") if unit is None else pa.int64()
    schema = pa.schema(
        [("user", pa.int64()), ("at", kind_of_time), *((name, ARROW[kind]) for name, kind in TYPES.items())]
    )
    table = pa.Table.from_pylist([{**row, "at": row["at"] * scale} for row in rows], schema=schema)
    own = plan.run(table).table().to_pylist()
    names = ("key", "window_start_ms", "window_end_ms", *EVERY)
    assert _sorted([{name: row[name] for name in names} for row in own]) == _sorted(found)


def test_a_stream_takes_every_aggregation(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses distinct counts there, for one."""
    plan = group_in_ms("user").windowed_by(WINDOWS["session"]).aggregate(**EVERY).emit("on_window_close")
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(str(plan.to_spark(types=TYPES, key_type="bigint")), "exported.py", "exec"), module)  # noqa: S102
    raw = [(row["user"].to_bytes(8, "big", signed=True), json.dumps(_value(row, "ms")).encode()) for row in _rows()]
    spark.createDataFrame(raw, "key binary, value binary").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("key binary, value binary").parquet(str(tmp_path / "in"))
    writer = module["windowed"](module["records"](stream)).writeStream.format("memory").queryName("exported")
    query = writer.outputMode("append").option("checkpointLocation", str(tmp_path / "at")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.table("exported").toArrow().to_pylist()
    assert len(found) == 6 and {row["halves"] for row in found} == {1, 2}


@pytest.mark.filterwarnings("ignore:column .* read as")
def test_the_records_own_timestamp_gives_the_plans_windows(spark: SparkSession) -> None:
    plan = group_in_ms("user").windowed_by(WINDOWS["session"]).count()
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(str(plan.to_spark(key_type="bigint", timestamp="record")), "exported.py", "exec"), module)  # noqa: S102
    rows = [{"user": row["user"], "at": row["at"]} for row in _rows()]
    raw = [(row["user"].to_bytes(8, "big", signed=True), b"{}", row["at"]) for row in rows]
    frame = spark.createDataFrame(raw, "key binary, value binary, at bigint")
    frame = frame.selectExpr("key", "value", "timestamp_millis(at) AS timestamp")
    found = module["windowed"](module["records"](frame)).toArrow().to_pylist()
    own = plan.run(pa.Table.from_pylist(rows)).table().to_pylist()
    names = ("key", "window_start_ms", "window_end_ms", "count")
    assert _sorted([{name: row[name] for name in names} for row in own]) == _sorted(found)


def test_fields_inside_objects_are_read_as_the_plan_reads_them(spark: SparkSession) -> None:
    plan = (
        group_in_ms("user", timestamp="payload.at")
        .windowed_by(WINDOWS["session"])
        .aggregate(spent=sk.sum("payload.order.amount"))
    )
    module: dict[str, Any] = {"__name__": "exported"}
    code = str(plan.to_spark(types={"payload.order.amount": "bigint"}))
    exec(compile(code, "exported.py", "exec"), module)  # noqa: S102
    rows = [{"user": "ada", "payload": {"at": at, "order": {"amount": at}}} for at in (21_000, 25_000, 60_000)]
    raw = [(row["user"].encode(), json.dumps({"payload": row["payload"]}).encode()) for row in rows]
    frame = spark.createDataFrame(raw, "key binary, value binary")
    found = module["windowed"](module["records"](frame)).toArrow().to_pylist()
    assert _sorted(found) == plan.run(pa.Table.from_pylist(rows)).table().select(list(found[0])).to_pylist()


def _value(row: dict[str, Any], unit: str | None) -> dict[str, Any]:
    at = row["at"]
    time: Any = {"ms": at, "us": at * 1000 + 999}.get(str(unit))
    if unit is None:
        time = f"1970-01-01T00:{at // 60_000:02}:{at % 60_000 / 1000:06.3f}Z"
    return {**{name: value for name, value in row.items() if name != "user"}, "at": time}


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In order of key and time; deviations without their last digits."""
    rows = [{name: round(each, 12) if isinstance(each, float) else each for name, each in row.items()} for row in rows]
    return sorted(rows, key=lambda row: (row["key"], row["window_start_ms"]))
