"""A key lands in the partition where Kafka puts it: 200 keys as Kafka hashed them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.errors import InvalidArgument
from sessionkit.records.places import murmur2, partition_for, partition_of_keys

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "partitioner.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_there_are_200_golden_keys() -> None:
    assert len(CASES) == len({case["key"] for case in CASES}) == 200


@pytest.mark.parametrize("case", CASES, ids=[f"{i}" for i in range(len(CASES))])
def test_golden(case: dict[str, Any]) -> None:
    assert murmur2(case["key"].encode()) == case["murmur2"]
    for count, partition in case["partition_by_count"].items():
        assert partition_for(case["key"], int(count)) == partition


def test_all_keys_of_a_column() -> None:
    keys = pa.array([case["key"] for case in CASES], pa.large_string())
    partitions = partition_of_keys(keys, 12)
    assert partitions.tolist() == [case["partition_by_count"]["12"] for case in CASES]
    assert partitions.dtype == np.int32


def test_integers_and_bytes_are_hashed_as_they_are_serialised() -> None:
    assert partition_for(7, 1_000) == partition_for(b"\0\0\0\0\0\0\0\7", 1_000)
    assert partition_for("é", 1_000) == partition_for("é".encode(), 1_000)


@pytest.mark.parametrize("partitions", [0, -1, 1.5, True, None, "4"])
def test_a_topic_has_one_partition_or_more(partitions: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"partitions must be an integer of 1 or more; got .*; such as 4"):
        partition_for("ada", partitions)


@pytest.mark.parametrize("key", [None, 1.0, ("a", "b")])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidArgument, match="this cannot be a key"):
        partition_for(key, 4)
