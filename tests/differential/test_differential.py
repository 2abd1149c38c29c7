"""A slice of the random comparison with Kafka Streams; `make differential` runs as many cases as one likes."""

import base64
import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sessionkit.stores.contract import RESTARTS
from tests.conformance.cases import AGGREGATIONS, read_cases, restarts_of
from tests.differential.compare import excuses, fault_of, first_difference
from tests.differential.draw import CELLS, KINDS, cell_of, draw
from tests.differential.draw_times import SMALLEST_SEGMENT, overlap_of, smallest_retention, span_of
from tests.differential.oracle import Oracle, running_oracle
from tests.differential.run import compare, drawn_cases, shrunk
from tests.differential.shrink import is_valid, records_read, shrink
from tests.interpreted import fewer
from tests.reliability import differential

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("Kafka Streams")]  # which is started once

SEED, CASES = 20_260_131, 640
GOLDEN = Path(__file__).parent.parent / "golden"
oracle = pytest.fixture(running_oracle, scope="module")


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
def test_restarts_equal_kafka(oracle: Oracle, capsys: pytest.CaptureFixture[str]) -> None:
    met: Counter[str] = Counter()
    for case, kafka in oracle.answers(drawn_cases(SEED, KINDS, fewer(1_600), {}, "restarts")):
        compared = compare(case, kafka)
        assert compared.difference is None, shrunk(compared, oracle)
        met.update(f"{kind} {case['store']}" for _, kind in restarts_of(case))
    with capsys.disabled():
        print(f"\nsessionkit = Kafka over restarts: {dict(met)}")
    assert set(met) == {f"{kind} {store}" for kind in RESTARTS for store in ("in_memory", "rocksdb")}


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


def test_after_a_kill_the_records_since_the_last_commit_are_read_again() -> None:
    case = {"records": [{}] * 6, "commit_after": [1, 5], "restarts": [[0, "killed"], [3, "killed"], 4]}
    assert records_read(case) == [0, 0, 1, 2, 3, 2, 3, 4, 5]


def test_all_that_should_be_drawn_is_drawn() -> None:
    cases = [draw(11, i) for i in range(2400)]
    records = [record for case in cases for record in case["records"]]
    times = {record["timestamp"] for record in records}
    spans = [span_of(case["window"]) for case in cases]
    queries = [query for case in cases for query in case.get("queries", [])]
    keys = [base64.b64decode(r["key"]) for c in cases if c.get("keys") == "bytes" for r in c["records"] if r["key"]]
    texts = {record["key"] for case in cases if "keys" not in case for record in case["records"]}
    assert 0.88 < sum(len(case["records"]) <= 40 for case in cases) / len(cases) < 0.92
    assert max(len(case["records"]) for case in cases) > 5_000
    assert max(len({record["key"] for record in case["records"]}) for case in cases) > 1_000
    assert any(b"\x00" in key for key in keys) and any(b"\xff" in key for key in keys) and max(map(len, keys)) > 2_000
    assert {"", "a", "aa", None} <= texts
    for near in (0, 2**53, 2**62):
        assert any(abs(time - near) < 1000 for time in times)
    assert (min(spans), max(spans)) == (0, 2**40)
    assert max(case["window"]["grace_ms"] for case in cases) == 2**40
    assert 90 < max(overlap_of(case["window"]) for case in cases) <= 100
    bounds = {query.get(name, 0) for query in queries for name in ("from", "to")}
    assert {-(2**63), -1, 2**63 - 1} <= bounds
    assert any(a == b for case in cases for a, b in pairwise(case["records"]))
    assert any(sum(r["value"] is None for r in c["records"]) > 0.8 * len(c["records"]) > 20 for c in cases)
    assert any(record.get("wall_advance_ms", 0) < 0 for record in records)
    assert {case.get("partitions", 1) for case in cases} == {1, 2, 3}
    assert {case["aggregation"] for case in cases} == {*AGGREGATIONS, "all_built_ins"}
    assert any(case.get("built_in") for case in cases) and any("restarts" in case for case in cases)
    for case in cases:  # where Kafka itself walks every segment from 0
        if case["store"] == "rocksdb" and case["caching"]:
            latest = max(record["timestamp"] for record in case["records"])
            kept = case["window"].get("retention_ms", smallest_retention(case["window"]))
            assert latest // max(kept // 2, SMALLEST_SEGMENT) < 50_000


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


def test_a_flush_after_a_fault_of_kafkas_is_not_compared() -> None:
    """Kafka failed before the commit that sends what an earlier record of another partition came to."""
    sent = {"key": "e", "window_start": 9, "window_end": 9, "value": 1, "timestamp": 9}
    fault = {"class": "IllegalStateException", "message": "segment interval has changed", "after_record": 1}
    case = {
        "window": {"kind": "session", "gap_ms": 87_667},
        "store": "rocksdb",
        "caching": {"bytes": 300},
        "commit_after": [1],
    }
    ours = {"per_record": [{"outputs": [], "flushed": [sent], "dropped_total": 0}, {"outputs": [], "dropped_total": 0}]}
    kafka = {"per_record": [{"outputs": [], "dropped_total": 0}], "error": fault}
    assert first_difference(case, ours, kafka) is None
    committed = {**case, "commit_after": [0, 1]}  # here it was sent before the fault, and should be there
    assert first_difference(committed, ours, kafka) is not None
    other = {"per_record": [{"outputs": [sent], "dropped_total": 0}], "error": fault}
    assert first_difference(case, {"per_record": [{"outputs": [], "dropped_total": 0}]}, other) is not None


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


@pytest.mark.parametrize("variable", ["next", "windowBeingProcessed"], ids=["4.3", "3.9"])
def test_a_deleted_sliding_window_in_a_cache_is_a_fault_of_kafka(variable: str) -> None:
    steps = [{"outputs": [], "dropped_total": 0}] * 3
    ours = {"per_record": steps, "final_store": [], "metrics": {}}
    said = f'Cannot invoke "ValueAndTimestamp.value()" because "{variable}.value" is null'
    failed = {"per_record": steps[:2], "error": {"after_record": 2, "class": "NullPointerException", "message": said}}
    case = {**CACHED, "window": {"kind": "sliding"}, "aggregation": "fading"}
    assert fault_of(case, failed) == "cached sliding windows meet a deleted one"
    assert first_difference(case, ours, failed) is None
    for other in ({"caching": False}, {"aggregation": "count"}, {"window": {"kind": "hopping"}}):
        assert first_difference({**case, **other}, ours, failed) is not None
    other_null = {**failed, "error": {**failed["error"], "message": 'because "other.value" is null'}}
    assert first_difference(case, ours, other_null) is not None


def test_a_gap_of_0_is_refused_by_3_9_alone() -> None:
    ours = {"per_record": [{"outputs": [], "dropped_total": 0}], "final_store": [], "metrics": {}}
    error = {"after_record": 0, "class": "IllegalArgumentException", "message": "Gap time cannot be zero or negative."}
    refused, case = {"per_record": [], "error": error}, {**CACHED, "window": {"kind": "session", "gap_ms": 0}}
    assert first_difference(case, ours, refused) is None
    assert first_difference({**case, "window": {"kind": "session", "gap_ms": 1}}, ours, refused) is not None


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
    assert (smallest["store"], smallest["aggregation"], smallest["caching"]) == ("in_memory", "count", {"bytes": 0})
    assert "retention_ms" not in smallest["window"] and "queries" not in smallest


def test_the_command_says_so_when_it_has_no_java() -> None:
    command = [sys.executable, "-m", "tests.differential", "--cases", "1"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (2, "Java 17 or newer is not installed")
