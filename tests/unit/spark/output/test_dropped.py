"""The columns of dropped records, without a Spark; tests/spark/test_dropped_records.py has their rows."""

import pytest

from sessionkit.base.result_columns import shown_key
from sessionkit.spark.dropped import ADDED, TIMES_OF_DROPPED


@pytest.mark.parametrize("name", ["closed_by", *ADDED, *TIMES_OF_DROPPED.values()])
def test_a_key_column_never_has_the_name_of_another_column(name: str) -> None:
    assert shown_key(name) == f"key_{name}"
