"""Older Kafka Streams beside 4.4: windows, stores, caches and suppress give the same, recorded case by recorded case.

The tests ask 3.9, `make versions` asks each version.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import read_cases
from tests.differential.compare import fault_of, first_difference
from tests.differential.oracle import KAFKA_VERSION, OLDER_VERSIONS, Oracle, running_oracle
from tests.differential.run import our_answer
from tests.interpreted import fewer

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("Kafka 3.9")]

GOLDEN = Path(__file__).parent.parent / "golden"
ASKED = (KAFKA_VERSION, *OLDER_VERSIONS) if os.environ.get("SESSIONKIT_VERSIONS") else OLDER_VERSIONS[-1:]


@pytest.fixture(scope="module", params=ASKED)
def older(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """The program that asks Kafka Streams, built against this version."""
    yield from running_oracle(version=request.param)


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """What the two have to agree on: what was sent, dropped, stored and counted, and where a task stopped."""
    failed = answer.get("error", {}).get("after_record")
    return {**{name: answer.get(name) for name in ("per_record", "final_store", "metrics")}, "failed": failed}


def test_recorded_answers_are_those_of_each_version(older: Oracle) -> None:
    """All but those with a gap of 0, which 3.9 refuses, and those by which 4.4 restores less of a changelog."""
    cases = [case for path in sorted(GOLDEN.glob("*-*.jsonl*")) for case in read_cases(path)]
    chosen = cases[:: max(1, len(cases) // fewer(len(cases)))]
    without_gap = [case for case in cases if case["window"].get("gap_ms") == 0]
    chosen += [case for case in without_gap if case not in chosen]
    of_4_4 = [case for case in cases if case["kafka_version"] == "4.4.0"]
    chosen += [case for case in of_4_4 if case not in chosen]
    asked = ({name: part for name, part in case.items() if name != "expected"} for case in chosen)
    different, refused, restored_more = [], 0, []
    for case, (_, answer) in zip(chosen, older.answers(asked), strict=True):
        if older.version.startswith("3.9") and case["window"].get("gap_ms") == 0:
            assert fault_of(case, answer) == "3.9 refuses a gap of 0"
            assert first_difference(case, our_answer(case), answer) is None
            refused += 1
        elif case in of_4_4 and older.version != "4.4.0":
            restored_more += [case["id"]] if _told(answer) != _told(case["expected"]) else []
        elif _told(answer) != _told(case["expected"]):
            different.append(case["id"])
    assert not different
    asked_of_4_4 = [case["id"] for case in of_4_4 if not (older.version.startswith("3.9") and case in without_gap)]
    assert sorted(restored_more) == ([] if older.version == "4.4.0" else sorted(asked_of_4_4))
    assert len(of_4_4) == 5
    assert refused == (len(without_gap) if older.version.startswith("3.9") else 0)
    assert len(without_gap) > 2


def test_the_cache_of_each_version_fails_at_the_same_deleted_sliding_window(older: Oracle) -> None:
    """What seed 392, case 3229 came to, made smaller: both versions fail at the third record, in other words."""
    case = {
        "id": "deleted", "window": {"kind": "sliding", "difference_ms": 1, "grace_ms": 0}, "aggregation": "fading",
        "emit": "on_update", "store": "in_memory", "caching": True,
        "records": [{"key": "a", "value": value, "timestamp": ms} for value, ms in ((1, 0), (-15, 1), (1, 1))],
        "commit_after": [0, 2],
    }  # fmt: skip
    ours, theirs = our_answer(case), older.ask(case)
    with Oracle() as newer:
        assert newer.ask(case)["error"]["after_record"] == theirs["error"]["after_record"] == 2
    assert fault_of(case, theirs) == "cached sliding windows meet a deleted one"
    assert first_difference(case, ours, theirs) is None
    assert first_difference({**case, "caching": False}, ours, theirs) is not None
