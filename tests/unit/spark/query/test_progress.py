"""What is made of Spark's words about a query: numbers, a line, partitions that stand still, windows that close."""

import io
import json
from typing import Any

import pytest

from sessionkit.spark.query.progress import KEPT_BATCHES, OBSERVED, PACKED, QueryProgress
from sessionkit.spark.query.running import Running, running_now
from sessionkit.widgets import watched_query as watching
from sessionkit.widgets.store_figure import watched_figure

HOUR = 3_600_000


def told(
    batch: int,
    *partitions: tuple[int, int, int],
    source: dict[str, Any] | None = None,
    counts: dict[str, int] | None = None,
    packed_us: dict[str, int | None] | None = None,
    **spent_us: int,
) -> dict[str, Any]:
    """A micro-batch as Spark tells it: (partition, last offset, stream time) of those that had records."""
    rows = [
        {
            "partition": number, "position": position, "stream_time_ms": stream_ms,
            "last_close_time_ms": stream_ms - HOUR, "windows": 3, **spent_us,
            "counts": json.dumps(
                {"process-total": position + 1, "dropped-records-total": 1, "dropped-late": 1, **(counts or {})}
            ),
        }
        for number, position, stream_ms in partitions
    ]  # fmt: skip
    return {
        "batchId": batch,
        "batchDuration": 500,
        "numInputRows": 10,
        "sources": [source or {"description": "files", "endOffset": {"logOffset": 3}, "latestOffset": None}],
        "stateOperators": [{"memoryUsedBytes": 2_500}],
        "observedMetrics": {OBSERVED + "abc": {"partitions": rows}, PACKED + "abc": packed_us or {}},
    }


def test_partitions_are_as_they_were_last_heard_of() -> None:
    progress = QueryProgress("clicks")
    progress.take(told(0, (0, 9, 5 * HOUR), (1, 4, 6 * HOUR)))
    progress.take(told(1, (0, 19, 7 * HOUR)))
    progress.take(told(0, (0, 9, 5 * HOUR)))  # heard of twice, and late
    assert progress.run == "abc"
    assert progress.counts()["process-total"] == 20 + 5
    assert progress.windows == 6
    assert (progress.is_idle(0), progress.is_idle(1)) == (False, True)
    assert progress.partitions[0].stream_time_ms == 7 * HOUR
    assert progress.line() == (
        "clicks: micro-batch 1 · 25 records (20/s) · 2 dropped · 6 windows in the state · "
        "stream time 1970-01-01 06:00:00 (UTC) and up to 1 h later"
    )
    idle = watching.partition_rows(progress)[1]
    assert idle == ("1", "4", "1970-01-01 06:00:00", "1970-01-01 05:00:00", "5", "1", "3", idle[-1])
    assert idle[-1] == "idle since micro-batch 0: its stream time stands still"
    shown = {count.name: (count.value, count.shown or count.words) for count in watching.counts(progress)}
    assert shown["dropped"] == (2, "8.0% of the records")
    assert shown["state"] == (2_500, "2.5 kB")
    assert shown["windows"] == (6, "in the state now")  # a state from before windows were counted
    assert "merged" not in shown


def test_windows_are_counted_as_far_as_each_partition_has_counted_them() -> None:
    progress, counts = QueryProgress("clicks"), {"windows": 8, "windows-open": 3, "windows-closed": 5}
    progress.take(told(0, (0, 9, 5 * HOUR), (1, 4, 6 * HOUR), counts=counts))
    shown = {count.name: (count.value, count.words) for count in watching.counts(progress)}
    assert shown["windows"] == (6, "in the state now; 6 are open, 10 closed so far")
    progress.take(told(1, (1, 5, 7 * HOUR)))
    assert "windows" not in progress.counts()


def test_how_far_behind_kafka_it_is() -> None:
    progress = QueryProgress("clicks")
    offsets = {"endOffset": {"clicks": {"0": 5, "1": 7}}, "latestOffset": {"clicks": {"0": 9, "1": 7}}}
    progress.take(told(0, (0, 4, HOUR), source=offsets))
    assert progress.line().endswith("4 records behind")
    assert watching.counts(progress)[-1].value == 4


def test_where_the_time_of_a_micro_batch_went() -> None:
    progress = QueryProgress("clicks")
    assert watching.time_spent(progress) == ""
    spent = {
        "triggerExecution": 5_000, "addBatch": 4_000, "queryPlanning": 900, "walCommit": 60, "getBatch": 1, "new": 9,
    }  # fmt: skip
    progress.take({**told(0, (0, 9, HOUR)), "durationMs": spent})
    assert watching.time_spent(progress) == (
        "Micro-batch 0 took 5 s for 10 records: 4 s running the plan, 900 ms planning, 60 ms noting what will be read."
    )
    states = [{"memoryUsedBytes": 1, "allUpdatesTimeMs": 2_500}, {"memoryUsedBytes": 1, "allUpdatesTimeMs": 500}]
    progress.take({**told(1, (0, 19, HOUR)), "durationMs": spent, "stateOperators": states})
    assert watching.time_spent(progress).endswith("in it 3 s of all tasks together in sessionkit and the state.")
    states[0]["commitTimeMs"] = 700
    progress.take({**told(2, (0, 29, HOUR)), "durationMs": spent, "stateOperators": states})
    assert watching.time_spent(progress).endswith("together in sessionkit and the state, and 700 ms to write it.")


def test_what_the_tasks_spent_their_time_on_is_told() -> None:
    progress = QueryProgress("clicks")
    packed_us: dict[str, int | None] = {"read_us": 1_400_000, "pack_us": 80_000}
    progress.take(told(0, (0, 9, HOUR), (1, 9, HOUR), packed_us=packed_us, engine_us=5_400))
    assert watching.time_spent(progress) == (
        "Micro-batch 0 took 500 ms for 10 records. "
        "Its tasks together spent 1 s 400 ms reading, 80 ms packing for the shuffle, 10 ms playing the records."
    )
    nothing: dict[str, int | None] = {"read_us": None, "pack_us": None}
    progress.take(told(1, (1, 19, HOUR), packed_us=nothing, unpack_us=3_000, state_us=2_000))  # the other had no record
    assert watching.time_spent(progress).endswith("together spent 3 ms unpacking behind it, 2 ms reading the state.")


def test_what_the_state_will_come_to_hold_is_told() -> None:
    """Two partitions, each of which makes 10 windows in an hour, and a window stays for 3 hours."""
    progress = QueryProgress("clicks")
    progress.retention_ms = 3 * HOUR

    def said() -> str:
        shown = {count.name: count.words for count in watching.counts(progress)}
        return shown["windows"]

    progress.take(told(0, (0, 9, 5 * HOUR), (1, 4, 7 * HOUR), counts={"windows": 100}))
    assert "to be expected" not in said()
    progress.take(told(1, (0, 19, 7 * HOUR), (1, 8, 9 * HOUR), counts={"windows": 120}))
    assert said().endswith("; at this rate about 60 are to be expected, more where sessions last long")
    progress.retention_ms = 0
    assert "to be expected" not in said()


def test_the_slowest_partition_is_told() -> None:
    progress = QueryProgress("clicks")
    progress.take(told(0, (0, 9, 5 * HOUR), (1, 4, 6 * HOUR), (2, 4, 5 * HOUR + 1)))
    notes = [row[-1] for row in watching.partition_rows(progress)]
    assert notes == ["the slowest: its stream time is 1 h behind the newest", "", ""]
    progress.take(told(1, (1, 9, 7 * HOUR)))
    assert watching.partition_rows(progress)[0][-1].startswith("idle since")


def test_what_goes_on_is_said_at_every_second() -> None:
    progress, pulse = QueryProgress("clicks"), watching.Pulse(100.0)
    first = Running(True, "Initializing sources")
    assert pulse.words(progress, first, 107.2) == (
        "No micro-batch has ended yet. Micro-batch 0 has been running for 7 s: Initializing sources."
    )
    assert pulse.words(progress, None, 108.0).endswith("has been running for 8 s.")  # Spark could not be asked
    busy = Running(True, "Processing new data", tasks=8, done=1, records=1_200)
    assert pulse.words(progress, busy, 110.0).endswith(
        "for 10 s: Processing new data. 1 of 8 tasks is done. They have read 1,200 records so far."
    )
    progress.take(told(0, (0, 9, HOUR)))
    assert pulse.words(progress, busy, 120.0).startswith("Micro-batch 1 has been running for 0 s")
    waiting = Running(False, "Waiting for data to arrive")
    pulse.words(progress, waiting, 121.0)
    assert pulse.words(progress, waiting, 125.0) == "Between two micro-batches for 4 s: Waiting for data to arrive."
    progress.ended = True
    assert pulse.words(progress, None, 126.0) == ""


def test_a_query_that_cannot_be_asked_is_not() -> None:
    class Ended:
        isActive = False

    assert running_now(Ended()) is None
    assert running_now(object()) is None


def test_what_is_kept_is_bounded() -> None:
    progress, kept = QueryProgress("clicks"), watching.KeptWindows()
    for batch in range(3 * KEPT_BATCHES):
        progress.take(told(batch, (0, batch, HOUR)))
        row = {"partition": 0, "key": "ada", "window_start_ms": batch, "last_ms": batch}
        kept.take([row], {0: batch + 1})
    assert len(progress.batches) == KEPT_BATCHES
    assert len(kept.rows()) == watching.KEPT_WINDOWS


def test_a_session_that_became_part_of_a_larger_one_is_not_kept() -> None:
    kept = watching.KeptWindows()
    rows = [{"partition": 0, "key": "ada", "window_start_ms": start, "last_ms": start + 5} for start in (0, 20, 40)]
    kept.take(rows[1:], {0: 0})
    kept.take([{**rows[0], "last_ms": 25}, rows[2]], {0: 10})
    assert [(row["window_start_ms"], row["closed"]) for row in kept.rows()] == [(0, False), (40, False)]
    kept.take([rows[2]], {0: 30})
    assert [(row["window_start_ms"], row["closed"]) for row in kept.rows()] == [(0, True), (40, False)]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_line_in_a_terminal(is_terminal: bool) -> None:
    out = io.StringIO()
    out.isatty = lambda: is_terminal  # type: ignore[method-assign]
    line, progress = watching.ProgressLine(out), QueryProgress("clicks")
    assert repr(line) == "ProgressLine: nothing yet"
    line.show(progress)
    for batch in range(5):
        progress.take(told(batch, (0, batch, HOUR)))
        line.show(progress)
    progress.ended, progress.error = True, "no room"
    line.show(progress)
    said = out.getvalue()
    assert said.endswith("failed\n")
    assert repr(line) == f"ProgressLine: {progress.line()}"
    assert said.count("\n") == (1 if is_terminal else 2)
    assert said.count("\r") == (7 if is_terminal else 0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_tells_open_from_closed(theme: Any) -> None:
    rows = [
        {"partition": p, "key": key, "window_start_ms": at, "window_end_ms": at + 5, "closed": at < 10, "label": "<b>"}
        for p, key, at in ((0, "ada", 0), (0, "ada", 20), (1, "<img src=x>", 20))
    ]
    figure = watched_figure(rows, {0: (30, 10), 1: (25, -1), 2: (9, 9)}, "session", "said", timezone="UTC", theme=theme)
    names = {trace.name: trace for trace in figure.data}
    assert set(names) == {"1 session closed", "2 sessions open", "stream time", "closed up to here"}
    assert list(names["1 session closed"].base) == [0]
    assert names["stream time"].x.count(30) == 2
    assert names["closed up to here"].x.count(10) == 2  # partition 1 has closed nothing
    assert "<img" not in figure.to_json()
    assert watched_figure([], {}, "session", "said", timezone="UTC", theme=theme).data
