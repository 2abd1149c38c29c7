"""The pass over a run's records, chunk by chunk: what is noted has its place in the run."""

import pyarrow as pa
import pytest

import sessionkit as sk
from tests.kinds import plan_of

# a merge at rows 2, 5 and 8, in chunks of two, three and all
TIMES = [0, 8, 4, 100, 108, 104, 200, 208, 204, 300]


@pytest.mark.parametrize("chunk", [2, 3, 100])
def test_a_merge_is_noted_at_its_record(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionkit.windows.feed.CHUNK", chunk)
    windows = sk.SessionWindows(inactivity_gap_ms=5, grace_ms=1_000)
    run = plan_of(windows).run(pa.table({"key": ["a"] * len(TIMES), "at": TIMES}))
    run.trace.check()
    assert run.trace.merges.at.tolist() == [2, 5, 8]
    assert [row["merged_count"] for row in run.trace.records().to_pylist()] == [0, 0, 1, 0, 0, 1, 0, 0, 1, 0]
