"""The figures of KIP-450, and the example of Kafka's SlidingWindows, as runs."""

import pyarrow as pa
import pytest

import sessionkit as sk
from tests.deployments import run_by
from tests.kinds import group_in_ms

RULES = ["sessionkit", "kafka"]


def held(*records: tuple[str, int], difference_ms: int, rules: str) -> dict[tuple[int, int], str]:
    """What each window holds in the end, by its bounds."""
    grouped = group_in_ms("key")
    plan = grouped.windowed_by(sk.SlidingWindows(time_difference_ms=difference_ms, grace="1h"))
    plan = plan.aggregate(names=sk.collect("name"))
    names, times = zip(*records, strict=True)
    table = pa.table({"key": ["k"] * len(records), "at": times, "name": names})
    rows = run_by(plan, table, rules=rules).table().to_pylist()
    return {(row["window_start_ms"], row["window_end_ms"]): "".join(row["names"]) for row in rows}


@pytest.mark.parametrize("rules", RULES)
def test_figure_1_of_kip_450(rules: str) -> None:
    """A record in order: its left window takes what is there; its right one is made by the first record in it."""
    before = {(10, 20): "a", (15, 25): "ab", (21, 31): "b"}
    assert held(("a", 20), ("b", 25), difference_ms=10, rules=rules) == before
    after = {**before, (21, 31): "bc", (20, 30): "abc", (26, 36): "c"}
    assert held(("a", 20), ("b", 25), ("c", 30), difference_ms=10, rules=rules) == after


@pytest.mark.parametrize("rules", RULES)
def test_figure_2_of_kip_450(rules: str) -> None:
    """A record out of order: its two windows are made of what others hold, and each that it is in takes it."""
    found = held(("a", 20), ("b", 25), ("c", 30), ("d", 22), difference_ms=10, rules=rules)
    assert found == {
        (10, 20): "a",
        (12, 22): "ad",  # its left window, made of [10, 20]
        (15, 25): "abd",
        (20, 30): "abcd",
        (21, 31): "bcd",
        (23, 33): "bc",  # its right window, without itself
        (26, 36): "c",
    }


@pytest.mark.parametrize("rules", RULES)
def test_the_example_of_sliding_windows(rules: str) -> None:
    found = held(("1", 8_000), ("2", 9_200), ("3", 12_400), difference_ms=5_000, rules=rules)
    assert found == {
        (3_000, 8_000): "1", (4_200, 9_200): "12", (7_400, 12_400): "123", (8_001, 13_001): "23", (9_201, 14_201): "3",
    }  # fmt: skip
