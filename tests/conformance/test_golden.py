"""Recorded answers of Kafka Streams 4.3.1: the processor gives each of them, the kernels all that no expiry touches.

One difference is known, and no other: `session-largest-timestamp`, where time + gap does not fit into 64 bits. Kafka
wraps and quietly stops merging; we refuse. Where Kafka itself fails, we fail at the same record with our own error.
"""

import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import run_cases
from tests.conformance.cases import (
    BUILT_INS,
    frame_of,
    lives_of,
    per_record,
    plan_of,
    read_cases,
    run_case,
    unsupported,
)
from tests.deployments import lives_by_kernels, run_deployed
from tests.kinds import in_ms

GOLDEN = Path(__file__).parent.parent / "golden"
pytestmark = pytest.mark.kafka

CORNER = "corner-session.jsonl"
WRAPS = "session-largest-timestamp"
ALL = [case for path in sorted(GOLDEN.glob("*-*.jsonl*")) for case in read_cases(path)]
CASES = [case for case in ALL if not unsupported(case)]
PLAIN = [case for case in CASES if "error" not in case["expected"] and case["id"] != WRAPS]
FAILING = [case for case in CASES if "error" in case["expected"]]
SESSIONS = [
    case
    for case in CASES
    if case["window"]["kind"] == "session"
    and case["store"] == "in_memory"
    and not case["caching"]
    and "suppress" not in case  # see tests/property/test_suppress.py
    and "restarts" not in case  # which the kernel knows nothing of
    and case["id"] != WRAPS
]


@pytest.fixture(autouse=True)
def times_near_2_to_62() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column 'timestamp' read as ms", UserWarning)
        yield


def _named(cases: list[dict[str, Any]]) -> Any:
    """Of the random cases each fourth belongs to `make test`, all others to `make test-all`."""
    drawn = [case["id"] for case in cases if "random" in case["id"]]
    rare = set(drawn) - set(drawn[::4])
    marked = {True: [pytest.mark.thorough], False: []}
    named = [pytest.param(case, id=case["id"], marks=marked[case["id"] in rare]) for case in cases]
    return pytest.mark.parametrize("case", named)


PLAYED = {  # how many cases kernels play, of each kind of window, emit strategy and store
    "session on_update in_memory": 29,
    "session on_update rocksdb": 41,
    "session on_close in_memory": 14,
    "session on_close rocksdb": 20,
    "tumbling on_update in_memory": 23,
    "tumbling on_update rocksdb": 17,
    "tumbling on_close in_memory": 8,
    "tumbling on_close rocksdb": 10,
    "hopping on_update in_memory": 19,
    "hopping on_update rocksdb": 16,
    "hopping on_close in_memory": 9,
    "hopping on_close rocksdb": 10,
    "sliding on_update in_memory": 7,
    "sliding on_update rocksdb": 9,
    "sliding on_close in_memory": 6,
    "sliding on_close rocksdb": 6,
}


def test_the_cases_are_all_there() -> None:
    assert (len(ALL), len(SESSIONS)) == (402 + 220 + 200 + 15, 50)
    assert sum("suppress" in case for case in ALL) == 223
    assert sum("restarts" in case for case in ALL) == 215
    assert len(PLAIN) == len(CASES) - len(FAILING) - 1


@_named(PLAIN)
def test_processor_equals_kafka(case: dict[str, Any]) -> None:
    result, expected = run_case(case), case["expected"]
    assert result["per_record"] == expected["per_record"]
    assert result["final_store"] == expected["final_store"]
    assert result.get("query_results") == expected.get("query_results")
    for name, total in result["metrics"].items():
        assert total == expected["metrics"][name], name


@_named([case for case in PLAIN if case["store"] == "rocksdb"])
def test_rocksdb_played_in_memory_equals_kafka(case: dict[str, Any]) -> None:
    """A deployment that is given no store plays RocksDB's rules, and needs no RocksDB."""
    assert per_record(lives_of(case, plan_of(case))) == case["expected"]["per_record"]


def test_kernels_play_deployments_as_kafka_does() -> None:
    """Each life that kernels can play: results in order with their times, drops, and what the store holds."""
    played: Counter[str] = Counter()
    for case in PLAIN:
        plan = plan_of({**case, "built_in": True} if case["aggregation"] in BUILT_INS else case)
        with lives_by_kernels() as by_kernels:
            lives = lives_of(case, plan)
            if not by_kernels:
                continue
            played[f"{case['window']['kind']} {case['emit']} {case['store']}"] += 1
            assert per_record(lives) == case["expected"]["per_record"], case["id"]
            if case["store"] == "in_memory":
                answer = run_case(case, "deployed")
                assert answer["final_store"] == case["expected"]["final_store"], case["id"]
                for name, total in answer["metrics"].items():
                    assert total == case["expected"]["metrics"][name], (case["id"], name)
    assert played == PLAYED


def test_overflow_is_refused_where_kafka_wraps() -> None:
    case = next(case for case in CASES if case["id"] == WRAPS)
    error = run_case(case)["error"]
    assert error["class"] == "NumberOverflow"
    assert "a window would end after the largest 64-bit time; got timestamp" in error["message"]


@_named(FAILING)
def test_both_fail_at_the_same_record(case: dict[str, Any]) -> None:
    result, expected = run_case(case), case["expected"]
    assert result["per_record"] == expected["per_record"]
    assert result["error"]["after_record"] == expected["error"]["after_record"]
    assert result["error"]["class"] in ("InvalidData", "InvalidArgument", "NumberOverflow", "BufferFull")


def _retention(case: dict[str, Any]) -> int:
    window = case["window"]
    return window.get("retention_ms", window["gap_ms"] + window.get("grace_ms", 0))


def _meets_a_null_aggregate(case: dict[str, Any]) -> bool:
    """True if a window's aggregate is null at some record: there Kafka deletes it, and the kernel keeps it."""
    readable = [r for r in case["records"] if r["timestamp"] >= 0]
    run = plan_of(case).emit("on_window_update").run(frame_of({**case, "records": readable}))
    return any(row["what"] == "update" and row["value"] is None for row in run.changelog().to_pylist())


def _expiry_matters(case: dict[str, Any]) -> bool:
    """True if Kafka's own answer changes when its store keeps one millisecond more."""
    return run_case(case, retention_ms=_retention(case) + 1)["per_record"] != case["expected"]["per_record"]


def _emits_all_that_closed(case: dict[str, Any]) -> bool:
    run = run_deployed(plan_of(case), frame_of(case), retention=in_ms(_retention(case)))
    return bool(len(run.changelog()) == len(run.trace.closes.at) > 0)


@pytest.mark.parametrize(("emit", "least"), [("on_update", 26), ("on_close", 3)])
def test_kernel_equals_kafka(emit: str, least: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no window expires in Kafka's store, which then loses finals, and no aggregate is null."""
    cases = [case for case in SESSIONS if case["emit"] == emit and not case.get("emit_interval_ms")]
    known = [case for case in cases if not _meets_a_null_aggregate(case)]
    comparable = [c for c in known if (_emits_all_that_closed(c) if emit == "on_close" else not _expiry_matters(c))]
    for case in comparable:
        assert run_case(case, "kernel")["per_record"] == case["expected"]["per_record"], case["id"]
    with capsys.disabled():
        print(f"\nkernel = Kafka {emit}: {len(comparable)} of {len(cases)} cases")
    assert len(comparable) >= least


HUGE_MS = 2**61
ENOUGH = {"hopping": 23, "tumbling": 49, "sliding": 47, "session": 10}  # of 39, 67, 64, and 16 sessions on RocksDB


@pytest.mark.parametrize("kind", ENOUGH)
def test_kernels_equal_kafka_where_no_store_expiry_matters(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the processor answers at a huge retention as Kafka did at the case's own, the kernel answers so, too."""
    cases = [
        case
        for case in PLAIN
        if case["window"]["kind"] == kind
        and not case["caching"]
        and "suppress" not in case
        and "restarts" not in case
        and not case.get("emit_interval_ms")
        and (kind != "session" or (case["store"] == "rocksdb" and case["emit"] == "on_update"))
    ]
    with_nulls = {case["id"] for case in cases if _meets_a_null_aggregate(case)}
    comparable = [
        case
        for case in cases
        if case["id"] not in with_nulls
        # nothing expires, so any store will do
        and run_case({**case, "store": "in_memory"}, retention_ms=HUGE_MS)["per_record"]
        == case["expected"]["per_record"]
    ]
    for case in comparable:
        assert run_case(case, "kernel")["per_record"] == case["expected"]["per_record"], case["id"]
    with capsys.disabled():
        print(f"\nkernel = Kafka, {kind}: {len(comparable)} of {len(cases)} cases without caching")
    assert len(comparable) >= ENOUGH[kind] - len(with_nulls)


def test_runner_writes_a_line_for_every_case(tmp_path: Path) -> None:
    """As a program, and as a function."""
    cases, results = GOLDEN / CORNER, tmp_path / "results.jsonl.gz"
    asked = list(read_cases(cases))
    for implementation in ("processor", "kernel"):
        arguments = [str(cases), str(results), "--implementation", implementation]
        if implementation == "processor":
            subprocess.run([sys.executable, str(Path(__file__).parent / "run_cases.py"), *arguments], check=True)
        else:
            assert run_cases.main(arguments) == 0
        lines = list(read_cases(results))
        assert [line["id"] for line in lines] == [case["id"] for case in asked]
        assert sum("unsupported" in line for line in lines) == sum(bool(unsupported(case)) for case in asked)
        assert json.dumps(lines)
