"""A slice of the random comparison with Kafka Streams; `make differential` runs as many cases as one likes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import read_cases
from tests.differential.compare import fault_of, first_difference
from tests.differential.draw import CELLS, KINDS, cell_of, draw
from tests.differential.oracle import Oracle, OracleUnavailable
from tests.differential.run import compare, drawn_cases, shrunk
from tests.differential.shrink import is_valid, shrink

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
def test_random_cases_equal_kafka(oracle: Oracle, capsys: pytest.CaptureFixture[str]) -> None:
    skipped: dict[str, int] = {}
    cells: Counter[str] = Counter()
    different = []
    for case, kafka in oracle.answers(drawn_cases(SEED, KINDS, CASES, skipped)):
        cells[str(cell_of(case))] += 1
        compared = compare(case, kafka)
        if compared.difference is not None:
            different.append(compared)
    with capsys.disabled():
        print(f"\nsessionkit = Kafka: {sum(cells.values())} random cases in {len(cells)} of {len(CELLS)} cells")
    assert sum(cells.values()) == CASES
    assert not different, f"{len(different)} of {CASES} differ, one of them:\n{shrunk(different[0], oracle, 30)}"


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


def test_faults_of_kafka_are_no_differences() -> None:
    steps = [{"outputs": [], "dropped_total": 0}, {"outputs": [], "dropped_total": 1}]
    rest: dict[str, Any] = {"final_store": [], "metrics": {}}
    case = {"window": {"kind": "session"}, "store": "rocksdb", "caching": True, "queries": [{"op": "fetch"}]}
    ours = {"per_record": steps, "query_results": [[]], **rest}
    error = {"after_record": 1, "class": "IllegalStateException", "message": "… segment interval has changed"}
    failed = {"per_record": steps[:1], "error": error}
    assert fault_of(failed) is not None
    assert first_difference(case, ours, failed) is None
    assert first_difference(case, failed, failed) is None
    assert first_difference(case, ours, {**failed, "error": {**error, "message": "closed"}}) is not None
    kafka = {"per_record": steps, "query_results": [{"error": "IllegalStateException"}], **rest}
    assert first_difference(case, ours, kafka) is None
    assert first_difference({**case, "caching": False}, ours, kafka) is not None
    backward = {**case, "queries": [{"op": "backward_find_sessions", "key": "a", "from": 0, "to": 5}]}
    found, none = ({**ours, "query_results": [sessions]} for sessions in ([{"key": "a", "window_end": 6}], []))
    assert first_difference(backward, found, none) is None
    assert first_difference(backward, none, found) is not None


def test_shrinking_finds_the_one_record_that_matters() -> None:
    def differs(case: dict[str, Any]) -> bool:
        return case["caching"] and any(record["value"] is None for record in case["records"])

    case = next(case for case in (draw(3, i) for i in range(1000)) if len(case["records"]) > 40 and differs(case))
    smallest = shrink(case, differs)
    assert smallest["records"] == [{"key": "a", "value": None, "timestamp": 0}]
    assert (smallest["store"], smallest["aggregation"], smallest["caching"]) == ("in_memory", "count", True)
    assert "retention_ms" not in smallest["window"] and "queries" not in smallest


def test_the_command_says_so_when_it_has_no_java() -> None:
    command = [sys.executable, "-m", "tests.differential", "--cases", "1"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (2, "Java 17 or newer is not installed")
