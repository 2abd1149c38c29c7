"""A slice of the random comparison with Kafka Streams; `make differential` runs as many cases as one likes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import read_cases
from tests.differential.compare import excuses, fault_of, first_difference
from tests.differential.draw import CELLS, cell_of, draw
from tests.differential.oracle import Oracle, OracleUnavailable
from tests.differential.shrink import is_valid, shrink
from tests.reliability import differential

pytestmark = pytest.mark.kafka

SEED, CASES = 20_260_131, 640
GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """One process for all tests here."""
    try:
        running = Oracle()
    except OracleUnavailable as missing:
        pytest.skip(f"{missing}; install Java 17 or newer (a JDK) and Maven, e.g. apt-get install maven")
    with running:
        yield running


@pytest.mark.slow
@pytest.mark.usefixtures("oracle")
def test_random_cases_equal_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = differential.check(SEED, CASES)
    with capsys.disabled():
        print(f"\nsessionkit = Kafka: {outcome.done} random cases; {outcome.noted}")
    assert outcome.wrong == []
    assert outcome.done == CASES
    assert set(differential.MET) <= outcome.noted.keys()


@pytest.mark.slow
def test_oracle_repeats_the_recorded_answers(oracle: Oracle) -> None:
    recorded = [case for path in sorted(GOLDEN.glob("corner-*.jsonl")) for case in read_cases(path)]
    asked = [{name: part for name, part in case.items() if name != "expected"} for case in recorded]
    for (case, answer), golden in zip(oracle.answers(asked), recorded, strict=True):
        assert first_difference(case, answer, golden["expected"]) is None, case["id"]


def test_the_same_seed_draws_the_same_valid_cases() -> None:
    cases = [draw(7, i) for i in range(640)]
    assert cases == [draw(7, i) for i in range(640)]
    assert cases != [draw(8, i) for i in range(640)]
    assert all(is_valid(case) for case in cases)
    assert {cell_of(case) for case in cases} == set(CELLS)
    assert json.loads(json.dumps(cases)) == cases


def test_every_field_is_compared() -> None:
    output = {"key": "a", "window_start": 0, "window_end": 0, "value": 1, "timestamp": 0}
    answer: dict[str, Any] = {
        "per_record": [{"outputs": [output], "dropped_total": 0}],
        "final_store": [{"key": "a", "window_start": 0, "window_end": 0, "value": 1}],
        "query_results": [[]],
        "metrics": {"dropped": 0},
    }
    changes: dict[str, dict[str, Any]] = {
        "per_record[0].outputs": {"per_record": [{"outputs": [], "dropped_total": 0}]},
        "per_record[0].flushed": {"per_record": [{"outputs": [output], "flushed": [output], "dropped_total": 0}]},
        "per_record[0].dropped_total": {"per_record": [{"outputs": [output], "dropped_total": 1}]},
        "number of records answered": {"per_record": []},
        "error": {"error": {"after_record": 1, "class": "StreamsException", "message": "negative"}},
        "final_store": {"final_store": []},
        "query_results[0]": {"query_results": [{"error": "X"}]},
        "number of query_results": {"query_results": []},
        "metrics dropped": {"metrics": {"dropped": 1}},
    }
    case = {"window": {"kind": "session"}, "store": "rocksdb", "caching": True, "queries": [{"op": "fetch"}]}
    assert first_difference(case, answer, answer) is None
    for where, change in changes.items():
        for ours, kafka in (({**answer, **change}, answer), (answer, {**answer, **change})):
            difference = first_difference(case, ours, kafka)
            assert difference is not None and difference.where == where


CACHED: dict[str, Any] = {
    "window": {"kind": "session", "gap_ms": 60_000},
    "store": "rocksdb",
    "caching": True,
    "aggregation": "count",
    "records": [{"key": "a", "value": 1, "timestamp": 6}],
}


def test_faults_of_kafka_are_no_differences() -> None:
    steps = [{"outputs": [], "dropped_total": 0}, {"outputs": [], "dropped_total": 1}]
    ours = {"per_record": steps, "final_store": [], "metrics": {}}
    error = {"after_record": 1, "class": "IllegalStateException", "message": "… segment interval has changed"}
    failed = {"per_record": steps[:1], "error": error}
    assert fault_of(CACHED, failed) is not None
    assert first_difference(CACHED, ours, failed) is None
    assert first_difference(CACHED, failed, failed) is None
    assert first_difference(CACHED, ours, {**failed, "error": {**error, "message": "closed"}}) is not None
    for other in ({"caching": False}, {"store": "in_memory"}, {"window": {"kind": "session", "gap_ms": 59_999}}):
        assert first_difference({**CACHED, **other}, ours, failed) is not None


ROW = {"key": "a", "window_start": 6, "window_end": 6, "value": 1}


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ({"op": "backward_find_sessions", "key": "a", "from": 0, "to": 7}, {"caching": False}),
        ({"op": "find_sessions", "key": "a", "from": -1, "to": 7}, {}),
        ({"op": "fetch_keys", "key_from": "", "key_to": "b"}, {"caching": False, "store": "in_memory"}),
    ],
)
def test_a_read_that_kafka_gets_wrong_is_excused_if_its_own_scan_says_what_we_say(
    query: dict[str, Any], other: dict[str, Any]
) -> None:
    case = {**CACHED, "queries": [query], "caching": query["op"] != "fetch_keys"}
    held: dict[str, Any] = {"per_record": [], "final_store": [ROW], "metrics": {}}
    right, wrong = {**held, "query_results": [[ROW]]}, {**held, "query_results": [[]]}
    assert first_difference(case, right, wrong) is None
    assert first_difference(case, wrong, right) is not None
    assert excuses(case, right, wrong).total() == 1
    if other:
        assert first_difference({**case, **other}, right, wrong) is not None


def test_shrinking_finds_the_one_record_that_matters() -> None:
    def differs(case: dict[str, Any]) -> bool:
        return case["caching"] and any(record["value"] is None for record in case["records"])

    case = next(case for case in (draw(3, i) for i in range(1000)) if len(case["records"]) > 40 and differs(case))
    smallest = shrink(case, differs)
    assert smallest["records"] == [{"key": "a", "value": None, "timestamp": 0}]
    assert (smallest["store"], smallest["aggregation"], smallest["caching"]) == ("in_memory", "count", 1)
    assert "retention_ms" not in smallest["window"] and "queries" not in smallest


def test_the_command_says_so_when_it_has_no_java() -> None:
    command = [sys.executable, "-m", "tests.differential", "--cases", "1"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (2, "Java 17 or newer is not installed")
