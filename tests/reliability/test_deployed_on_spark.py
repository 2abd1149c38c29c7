"""A slice of the long check of deployments on Spark; the check itself sees what is wrong."""

from typing import Any

import pytest

from tests.optional import SparkSession
from tests.reliability import deployed_on_spark

SEED = 1
pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_a_slice_of_random_streams(spark: SparkSession) -> None:
    told = deployed_on_spark.check(SEED, 75)
    assert told.wrong == [], "\n".join(told.wrong)
    assert told.done == 75
    assert told.noted["sent"] > 500 and {"lives", "one life"} <= {*told.noted}


def test_a_life_that_is_left_out_is_seen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(settings: dict[str, Any], count: int) -> dict[str, Any]:
        return {**settings, "restarts": []}

    monkeypatch.setattr(deployed_on_spark, "_of_so_many", without)
    assert deployed_on_spark.check(SEED, 75).wrong
