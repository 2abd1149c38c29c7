"""What a stream keeps of the buffer of suppress: what is written, what is believed, and which plans go on with it."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import BufferFull, StoreCorrupted, StoreMismatch
from sessionkit.stores.state.chunked_state import _of_bytes
from tests.kinds import plan_of
from tests.partition_processor import Kept, assert_as_local, events_job, micro_batch, through_processor

from sessionkit.spark.worker.shared_files import SharedFiles, shared_folder  # isort: skip

PLAN = plan_of(sk.TimeWindows(size_ms=10, grace_ms=0), partition="partition", offset="offset")
FINAL = PLAN.suppress("until_window_closes")


def rows(*times: int, first: int = 0, key: str = "a") -> pa.Table:
    """Records at these times, from this offset on."""
    count = len(times)
    offsets = pa.array(range(first, first + count), pa.int64())
    return pa.table({"key": [key] * count, "at": times, "partition": [4] * count, "offset": offsets})


def sent(plan: sk.Plan, table: pa.Table, kept: Kept) -> list[tuple[Any, ...]]:
    """(offset, what, start, count) of all that a query sends, which has just been started over what was kept."""
    events, _ = through_processor(plan, table, [], kept)
    names = ("offset", "what", "window_start_ms", "count")
    return [tuple(row[name] for name in names) for row in events.to_pylist()]


def test_a_query_that_is_started_again_keeps_the_clock_of_the_buffer() -> None:
    """Kafka's clock would start anew, and a result of 12 would send nothing."""
    plan, kept = PLAN.windowed_by(sk.TimeWindows(size_ms=10, grace_ms=100)).suppress("until_time_limit", "20ms"), Kept()
    assert sent(plan, rows(31), kept) == []
    assert sent(plan, rows(8, 12, first=1), kept) == [(1, "update", 0, 1)]
    assert sent(plan, rows(13, 50, first=3), kept) == [(4, "update", 10, 2)]


def test_what_waits_does_not_go_out_before_its_window_is_closed() -> None:
    kept = Kept()
    assert sent(FINAL, rows(1, 2), kept) == []
    assert sent(FINAL, rows(3, 9, first=2), kept) == []
    assert sent(FINAL, rows(10, 1, first=4), kept) == [(4, "final", 0, 4), (5, "dropped", 0, None)]
    assert sent(FINAL, rows(20, first=6), kept) == [(6, "final", 10, 1)]


@pytest.mark.parametrize("plan", [PLAN.suppress("until_time_limit", "1h", max_bytes=10**9), FINAL])
def test_only_what_has_changed_is_written(plan: sk.Plan) -> None:
    """Of 500 results that wait, the one that a record replaced."""
    many = pa.concat_tables(rows(3, first=number, key=f"k{number}") for number in range(500))
    _, kept = through_processor(plan, many, [])
    chunks = dict(kept.variables["buffer_chunks"])
    assert [_of_bytes(raw).num_rows for raw, _ in chunks.values()] == [500]
    through_processor(plan, rows(4, first=500, key="k7"), [], kept)
    new = {number: row for number, row in kept.variables["buffer_chunks"].items() if number not in chunks}
    assert [(_of_bytes(raw).num_rows, _of_bytes(gone).num_rows) for raw, gone in new.values()] == [(1, 1)]
    assert {**chunks, **new} == kept.variables["buffer_chunks"]


@pytest.mark.parametrize("options", [{"max_records": 2}, {"max_bytes": 150}])
def test_a_full_buffer_fails_each_retry_alike_and_goes_on_with_more_room(options: dict[str, int]) -> None:
    plan, kept = PLAN.windowed_by(sk.TimeWindows(size_ms=10, grace_ms=100)), Kept()
    full = plan.suppress("until_window_closes", **options)
    assert sent(full, rows(1, 11), kept) == []
    said = []
    for _ in range(3):
        with pytest.raises(BufferFull) as caught:
            sent(full, rows(12, 21, first=2), tried := kept.copy())
        assert tried.variables == kept.variables
        said.append(str(caught.value))
    of, got = next(iter(options.items()))
    size = " of 182 bytes" if of == "max_bytes" else ""
    text = f"the buffer of suppress is full at partition 4, offset 3, with {of}={got}; got 3 results{size}; more room"
    assert said == [said[0]] * 3
    assert said[0].startswith(text)
    more = plan.suppress("until_window_closes", **dict.fromkeys(options, 1_000))
    assert sent(more, rows(12, 21, 110, first=2), kept) == [(4, "final", 0, 1)]


def test_a_micro_batch_that_is_tried_again_sends_the_same() -> None:
    table = rows(1, 2, 12, 3, 14, 25, 40)
    _, kept = through_processor(FINAL, table.slice(0, 3), [])
    assert sent(FINAL, table.slice(3), kept.copy()) == sent(FINAL, table.slice(3), kept.copy()) != []


TIME_LIMIT = PLAN.suppress("until_time_limit", "5ms", max_records=9)


@pytest.mark.parametrize(
    ("made", "asked", "telling"),
    [
        (PLAN, FINAL, "suppress None, not 'until_window_closes'"),
        (FINAL, PLAN, "suppress 'until_window_closes', not None"),
        (FINAL, TIME_LIMIT, "suppress 'until_window_closes', not 'until_time_limit'"),
        (TIME_LIMIT, PLAN.suppress("until_time_limit", 0, max_bytes=7), "not 'until_time_limit, by bytes'"),
    ],
)
def test_a_plan_with_another_suppress_is_refused(made: sk.Plan, asked: sk.Plan, telling: str) -> None:
    _, kept = through_processor(made, rows(1, 2), [])
    with pytest.raises(StoreMismatch, match=telling) as refused:
        through_processor(asked, rows(3, first=2), [], kept)
    assert "take the plan that it was made with, or another checkpointLocation" in str(refused.value)


def test_the_time_limit_may_change() -> None:
    _, kept = through_processor(TIME_LIMIT, rows(1, 2), [])
    assert sent(PLAN.suppress("until_time_limit", "1ms", when_full="shut_down"), rows(11, first=2), kept) == [
        (2, "update", 0, 2)
    ]


def lose_a_chunk(kept: Kept) -> None:
    del kept.variables["buffer_chunks"][(0,)]


def flip_a_bit(kept: Kept) -> None:
    chunks = kept.variables["buffer_chunks"]
    raw, gone = chunks[(0,)]
    chunks[(0,)] = (raw[: len(raw) // 2], gone)


def lose_all(kept: Kept) -> None:
    kept.variables |= {"buffer_chunks": {}}
    del kept.variables["buffer_head"]


@pytest.mark.parametrize(
    ("damage", "telling"),
    [
        (lose_a_chunk, "a state is incomplete"),
        (flip_a_bit, "a chunk of a state cannot be read"),
        (lose_all, "a buffer of suppress is of another micro-batch; got -1, not 1; the buffer that was written with"),
    ],
)
def test_a_damaged_buffer_is_not_believed(damage: Callable[[Kept], None], telling: str) -> None:
    _, kept = through_processor(FINAL, rows(1, 2), [])
    damage(kept)
    with pytest.raises(StoreCorrupted, match=telling):
        through_processor(FINAL, rows(11, first=2), [], kept)


def test_a_buffer_of_the_micro_batch_before_is_not_believed() -> None:
    _, kept = through_processor(FINAL, rows(1, 2), [])
    older = kept.copy().variables
    through_processor(FINAL, rows(3, first=2), [], kept)
    kept.variables |= {name: each for name, each in older.items() if name.startswith("buffer_")}
    with pytest.raises(StoreCorrupted, match="another micro-batch; got 1, not 2"):
        through_processor(FINAL, rows(11, first=3), [], kept)


@pytest.mark.parametrize(("plan", "states"), [(PLAN, 1), (FINAL, 2)])
def test_two_files_of_each_state_stay_in_shared_memory(plan: sk.Plan, states: int) -> None:
    run, kept, table = uuid4().hex, Kept(), rows(*range(6))
    try:
        for place in range(6):
            micro_batch(events_job(plan, table), plan, kept, table.slice(place, 1), run)
        files = {each.name for each in (shared_folder() / run).iterdir()}
        tokens = {row[6] for name, row in kept.variables.items() if name.endswith("head")}
        assert len(files) == 2 * states
        assert {f"4-{token}.arrow" for token in tokens} < files and len(tokens) == states
    finally:
        SharedFiles(run).remove()


def test_results_of_every_type_wait() -> None:
    """Texts, lists, times, decimals, structs and what Python functions made, over the chunks alone."""
    plan = PLAN.windowed_by(sk.TimeWindows(size_ms=10, advance_ms=5, grace_ms=30)).aggregate(
        word=sk.last("word"), words=sk.collect("word"), at=sk.min("when"), price=sk.sum("price"), mean=sk.mean("n"),
        own=sk.reduce(lambda older, newer: {**older, **newer}, ("n", "word")),
    ).suppress("until_time_limit", "3ms", max_bytes=1_400)  # fmt: skip
    table = rows(1, 2, 12, 3, 14, 5, 25, 26, 40).append_column(
        "word", pa.array(["ä", None, "", "b", "c", "d", "e", "f", "g"])
    )
    numbers = pa.array(range(9), pa.int64())
    table = table.append_column("n", numbers).append_column("when", numbers.cast(pa.timestamp("us", "UTC")))
    table = table.append_column("price", numbers.cast(pa.decimal128(21, 2)))
    types = {"own": pa.struct({"n": pa.int64(), "word": pa.string()})}
    for cuts in ([], [2, 4, 6], [*range(1, 9)]):
        events, _ = through_processor(plan, table, cuts, forgets=True, types=types)
        assert assert_as_local(events, plan.run(table)) == 7
