"""What a run on Spark says of columns that it does not read as they are."""

from __future__ import annotations

import re

import pytest

from sessionkit.errors import NotBuilt
from sessionkit.records.source import Source
from sessionkit.spark.input import check_options

TYPES = {"user": "string", "payload": "string", "order": "struct<amount:double,at:timestamp>"}


@pytest.mark.parametrize(("name", "unit", "field"), [
    ("order.amount", None, "F.col('order.amount')"),
    ("payload.amount", None, "F.get_json_object('payload', '$.amount').cast('double')"),
    ("payload.at", None, "F.get_json_object('payload', '$.at').cast('timestamp')"),
    ("payload.at", "ms", "F.get_json_object('payload', '$.at').cast('bigint')"),
    ("payload.user.id", None, "F.get_json_object('payload', '$.user.id')"),
])  # fmt: skip
def test_the_way_to_a_field_goes_by_the_type_of_its_column(name: str, unit: str | None, field: str) -> None:
    source = Source(keys=("payload.user.id",), timestamp="payload.at", unit=unit)
    way = f"got {name!r}; df.withColumn({name!r}, {field})"
    with pytest.raises(NotBuilt, match=re.escape(way) + "$"):
        check_options(source, TYPES, [name])
