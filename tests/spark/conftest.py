"""What tests on Spark ask for by name."""

from collections.abc import Iterator

import pytest

from sessionkit.spark.query.running import SETTING
from tests.optional import SparkSession


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many steps for each partition, so that state travels."""
    monkeypatch.setattr("sessionkit.steps.job.STEP_RECORDS", 90)


@pytest.fixture
def unset(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose user has not said in how many partitions a shuffle ends."""
    before = spark.conf.get(SETTING)
    spark.conf.unset(SETTING)
    yield spark
    spark.conf.set(SETTING, str(before))
