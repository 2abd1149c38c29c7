"""Given a Spark DataFrame, what chooses settings is right, or says how to hand it the records."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.widgets.tuner import Tuner
from tests.optional import SparkSession
from tests.spark.common import WINDOWS, plan_of, records, shuffled

pytestmark = pytest.mark.spark

PLAN = plan_of(WINDOWS["session"], "on_window_close")
IN_MS = sk.group_by_key("key", timestamp="ms", unit="ms").windowed_by(WINDOWS["session"]).count()


@pytest.mark.parametrize("ask", [
    pytest.param(lambda data: Tuner(PLAN, data), id="tune"),
    pytest.param(lambda data: Tuner(IN_MS, data), id="tune by integer times"),
])  # fmt: skip
def test_what_goes_through_the_records_in_order_takes_them_from_here(
    spark: SparkSession, ask: Callable[[Any], object]
) -> None:
    """Spark's rows have no order: a board of them would be one of another stream."""
    table = records(2)
    data = shuffled(spark, table.append_column("ms", table["at"].cast(pa.int64())))
    with pytest.raises(InvalidArgument, match=r"needs local records.*a Spark DataFrame.*\.orderBy\(.*toPandas"):
        ask(data)


def test_only_runs_at_hand_are_compared(spark: SparkSession) -> None:
    table = records(1).slice(0, 100)
    local, run = PLAN.run(table), PLAN.run(shuffled(spark, table))
    with pytest.raises(InvalidArgument, match=r"compare takes local runs; got SparkRun.*\.local\("):
        local.compare(run)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="compare takes local runs; got str"):
        local.compare("another")  # type: ignore[arg-type]
    assert local.compare(run.local()).counts()["changed"] == 0
