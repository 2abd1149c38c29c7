"""`sessionize` on Spark is the local one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.frames_with_sessions import COLUMNS, GAP_MS, GRACE_MS, drawn, in_one_form

pytestmark = pytest.mark.spark
FRAMES = 2_000


def collected(result: Any) -> pd.DataFrame:
    found = result.toPandas().sort_values(["frame", "offset"], ignore_index=True)
    for name in ("session_start", "session_end"):
        found[name] = found[name].dt.tz_localize("UTC")
    return found


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
