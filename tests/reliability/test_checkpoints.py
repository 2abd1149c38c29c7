"""A slice of the long check of damaged checkpoints."""

import pytest

from tests.optional import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_damaged_checkpoint_is_read_right_or_refused(spark: SparkSession) -> None:
    from tests.reliability.checkpoints import check

    outcome = check(seed=4, count=8)
    assert outcome.wrong == []
    assert outcome.noted["right"] and outcome.noted["refused"]
