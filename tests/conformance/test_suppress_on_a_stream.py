"""Recorded cases of suppress through the processor of a stream: it gives what Kafka Streams gave.

A stream has no record cache and no restarts, and forgets no window that is open: cases about these are left out, all
others are here.
"""

import re
from typing import Any

import pyarrow as pa
import pytest

from sessionkit.errors import BufferFull
from tests.conformance.cases import _shown, _shown_together, frame_of, key_text, plan_of
from tests.conformance.test_golden import ALL
from tests.partition_processor import through_processor

pytestmark = [pytest.mark.kafka, pytest.mark.filterwarnings("ignore:column 'timestamp' read as ms:UserWarning")]

FORGETS = "random-suppress-133"  # with a gap and a grace of 0 its store forgets a session before it is closed
CASES = [
    case
    for case in ALL
    if "suppress" in case and not case["caching"] and "restarts" not in case and case["id"] != FORGETS
]


def per_record(case: dict[str, Any], cuts: int) -> list[list[dict[str, Any]]]:
    """The results that each record sent, of partitions that are cut in so many places."""
    plan, table = plan_of(case), frame_of(case)
    values = [out["value"] for record in case["expected"]["per_record"] for out in record["outputs"]]
    of_text = any(isinstance(value, str) for value in values) or case["aggregation"] == "collect"
    sent: dict[int, list[dict[str, Any]]] = {offset: [] for offset in table["offset"].to_pylist()}
    full: list[BufferFull] = []
    for number in pa.compute.unique(table["partition"]).to_pylist():
        mine = table.filter(pa.compute.equal(table["partition"], number))
        at = sorted(len(mine) * place // (cuts + 1) for place in range(1, cuts + 1))
        try:
            events, _ = through_processor(plan, mine, at, types={"value": pa.string() if of_text else pa.int64()})
        except BufferFull as error:
            full.append(error)
            continue
        for row in events.filter(pa.compute.not_equal(events["what"], "dropped")).to_pylist():
            value = _shown(row) if "value" in row else _shown_together(row)
            bounds = {"window_start": row["window_start_ms"], "window_end": row["window_end_ms"]}
            answer = {"key": key_text(row["key"]), **bounds, "value": value, "timestamp": row["timestamp_ms"]}
            sent[row["offset"]].append(answer)
    if full:
        raise min(full, key=_offset)
    return list(sent.values())


def _offset(error: BufferFull) -> int:
    found = re.search(r"offset (\d+)", str(error))
    assert found is not None
    return int(found[1])


def test_the_cases_are_all_there() -> None:
    kinds = {kind: sum(case["window"]["kind"] == kind for case in CASES) for kind in ("session", "sliding", "hopping")}
    assert (len(CASES), kinds) == (114, {"session": 31, "sliding": 25, "hopping": 32})
    assert sum("max_bytes" in case["suppress"] for case in CASES) == 26
    assert sum("error" in case["expected"] for case in CASES) == 18


@pytest.mark.parametrize("cuts", [0, 2, 7])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_stream_equals_kafka(case: dict[str, Any], cuts: int) -> None:
    expected = case["expected"]
    if "error" in expected:
        with pytest.raises(BufferFull) as full:
            per_record(case, cuts)
        assert _offset(full.value) == expected["error"]["after_record"]
        case = {**case, "records": case["records"][: len(expected["per_record"])]}
    assert per_record(case, cuts) == [record["outputs"] for record in expected["per_record"]]
