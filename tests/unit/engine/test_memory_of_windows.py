"""What a run would make is known before it starts, and refused where it would not fit into memory."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.base import process
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.memory import most_windows
from sessionkit.errors import SessionkitError, TooLarge
from sessionkit.records.files import tables
from tests.deployments import processor_only, run_deployed
from tests.property.streams import draw

Limit = Callable[[int], object]
KEYED = sk.group_by_key("key", timestamp="at", unit="ms")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Limit:
    """Sets how many bytes the control group of this process leaves it."""
    monkeypatch.setattr(process, "_GROUPS", tmp_path)
    monkeypatch.setattr(process, "_OWN_GROUP", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "memory.current").write_text("7000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 2000\nactive_file 0\n")
    return lambda count: (tmp_path / "memory.max").write_text(f"{count + 5000}\n")


def records(count: int, step_ms: int) -> pa.Table:
    at = 1_700_000_000_000 + np.arange(count) * step_ms
    return pa.table({"key": ["ada"] * count, "at": at})


def hopping(size_ms: int) -> Any:
    return KEYED.windowed_by(sk.TimeWindows(size_ms=size_ms, advance_ms=1, grace_ms=10**7)).count()


def test_what_the_control_group_leaves_is_free(free: Limit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free(2_000_000)
    assert process.free_bytes() == 2_000_000  # what is kept of files makes room when it is needed
    (tmp_path / "own").mkdir()
    (tmp_path / "cgroup").write_text("4:cpu:/x\n0::/own\n")
    (tmp_path / "own" / "memory.stat").write_text("inactive_file 0\nactive_file 0")
    (tmp_path / "own" / "memory.max").write_text("900000")
    (tmp_path / "own" / "memory.current").write_text("100000")
    assert process.free_bytes() == 800_000
    (tmp_path / "own" / "memory.max").write_text("max")
    assert process.free_bytes() == 2_000_000
    (tmp_path / "memory" / "old").mkdir(parents=True)
    (tmp_path / "memory" / "old" / "memory.stat").write_text("inactive_file 0\nactive_file 0")
    (tmp_path / "memory" / "old" / "memory.limit_in_bytes").write_text("500000")
    (tmp_path / "memory" / "old" / "memory.usage_in_bytes").write_text("100000")
    (tmp_path / "cgroup").write_text("9:memory,x:/old\n0::/own\n")
    assert process.free_bytes() == 400_000
    monkeypatch.setattr(process, "_OWN_GROUP", tmp_path / "none")
    assert process.free_bytes() > 10**8  # what the machine has, where the test runs


def test_files_that_do_not_fit_are_refused_before_they_are_read_and_can_be_written(
    free: Limit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "_SMALL", 0)
    monkeypatch.setattr(process, "_MUCH", 0)
    (folder := tmp_path / "days").mkdir()
    for number in range(2):
        pq.write_table(records(200, 1_000), folder / f"{number}.parquet")
    plan = KEYED.windowed_by(sk.SessionWindows(inactivity_gap_ms=1_500, grace_ms=0)).count()
    free(13_000)
    assert plan.run(folder, trace=False).table()["count"].sum() == 400
    free(12_700)
    with pytest.raises(TooLarge, match=r"got up to 400 records, or 0\.00 GiB, .*; plan\.write\(data, table=…\)"):
        plan.run(folder)
    assert plan.write(folder, table=tmp_path / "out").record_count == 400


@pytest.mark.parametrize(("name", "limit"), [("clicks.csv", 9_000), ("clicks.csv.gz", 4_000), ("clicks.jsonl", 9_000)])
def test_text_that_may_not_fit_is_told_before_it_is_read(
    free: Limit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, limit: int
) -> None:
    """How many rows it has is not known, so that it is read all the same."""
    monkeypatch.setattr(tables, "_SMALL", 0)
    monkeypatch.setattr(process, "_MUCH", 0)
    frame, path = records(400, 1_000).to_pandas(), tmp_path / name
    frame.to_json(path, orient="records", lines=True) if "json" in name else frame.to_csv(path, index=False)
    plan = KEYED.windowed_by(sk.SessionWindows(inactivity_gap_ms=1_500, grace_ms=0)).count()
    free(10**6)
    assert plan.run(path, trace=False).table()["count"].sum() == 400
    free(limit)
    about = "" if name.endswith("gz") else "4|3"
    with pytest.warns(
        UserWarning, match=rf"{name} has some [{about}\d,]+ lines, which may not fit into memory: plan\.write"
    ):
        assert plan.run(path, trace=False).table()["count"].sum() == 400


def test_a_million_windows_a_record_are_told_and_refused(free: Limit) -> None:
    free(2**30)
    with pytest.raises(
        TooLarge,
        match=r"the memory would not be enough; got up to 50,000,000 windows, or 6\.98 GiB, where 1\.00 GiB are free; "
        "shorter windows, or fewer records at a time",
    ):
        hopping(10**6).run(records(50, 10**6))


def test_what_plainly_fits_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count the windows all times are sorted, which took a tumbling run five times as long as the run itself."""
    monkeypatch.setattr("sessionkit.engine.memory.most_windows", lambda *_: pytest.fail("counted"))
    assert len(hopping(100).run(records(50, 1)).table()) == 149


@pytest.mark.parametrize(("free_mib", "sorted_at_once"), [(120, [20, 20, 10]), (100, [50, 20, 20, 10])])
def test_windows_are_counted_together_only_where_those_of_pieces_would_not_fit(
    free: Limit, monkeypatch: pytest.MonkeyPatch, free_mib: int, sorted_at_once: list[int]
) -> None:
    """Of 100 million records, whose windows fit, to sort all times took half of the run."""
    counted: list[int] = []

    def most(windows: Any, batch: Any) -> float:
        counted.append(len(batch))
        return most_windows(windows, batch)

    monkeypatch.setattr("sessionkit.engine.memory._PIECE", 20)
    monkeypatch.setattr("sessionkit.engine.memory.most_windows", most)
    free(free_mib * 2**20)
    later = records(1, 1).set_column(1, "at", pa.array([1_700_010_000_000]))
    run = hopping(2 * 10**5).run(pa.concat_tables([records(49, 1), later]), trace=False)
    assert len(run.table()) == 400_048  # of the pieces there are 800,046, of 114 MiB
    assert sorted(counted, reverse=True) == sorted_at_once


def test_the_room_for_one_record_is_needed_even_where_none_counts(free: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionkit.engine.memory._PIECE", 20)
    free(2**27)
    plan = hopping(10**6)
    dropping = dataclasses.replace(plan, source=dataclasses.replace(plan.source, on_bad_time="drop"))
    with pytest.raises(TooLarge, match="got up to 1,000,000 windows"):
        dropping.run(pa.table({"key": ["ada"] * 50, "at": pa.nulls(50, pa.int64())}))


@pytest.mark.compiled
def test_windows_that_records_share_are_counted_once(free: Limit) -> None:
    free(64 * 2**20)
    run = hopping(10**5).run(records(50, 1))  # 5,000,000 if each had its own
    assert len(run.table()) == 100_049
    with pytest.raises(TooLarge, match="got up to 5,000,000 rows, one for each window of each record"):
        run.changelog()


def test_where_the_system_tells_nothing_it_is_tried(free: Limit) -> None:
    free(2**40)
    assert len(hopping(1_000).run(records(5, 1)).table()) == 1_004


def deployed_sliding() -> Any:
    return run_deployed(
        KEYED.windowed_by(sk.SlidingWindows(time_difference_ms=10**6, grace_ms=0)).count(), records(3_000, 1)
    )


def sliding_by_processor() -> Any:
    with processor_only():
        return deployed_sliding()


WAYS: dict[str, Callable[[], Any]] = {
    "a run by the processor": lambda: run_deployed(hopping(10**5), records(50, 1), caching=True),
    "a compiled deployment": lambda: run_deployed(hopping(10**6), records(50, 10**6)),
    "a run over a store": lambda: hopping(10**6).run(
        records(50, 10**6), store=sk.open_store("memory", "x", of="windows")
    ),
    "sliding windows by the processor": sliding_by_processor,
    "the changelog of a deployment of sliding windows": lambda: deployed_sliding().changelog(),
    "the changelog of sliding windows": lambda: (
        KEYED.windowed_by(sk.SlidingWindows(time_difference_ms=10**6, grace_ms=0))
        .count()
        .run(records(3_000, 1))
        .changelog()
    ),
    "an audit": lambda: sk.audit(hopping(10**6), records(50, 10**6)),
    "a sweep": lambda: sk.sweep(hopping(10**6), records(50, 10**6), grace_ms=[0, 1]),
    "chosen keys": lambda: hopping(10**6).run(records(50, 10**6), keys=["ada"]),
    "no trace": lambda: hopping(10**6).run(records(50, 10**6), trace=False),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_is_refused(free: Limit, way: str) -> None:
    free(64 * 2**20)
    with pytest.raises(TooLarge):
        WAYS[way]()


def test_no_records_make_no_windows(free: Limit) -> None:
    free(64 * 2**20)
    plan = KEYED.windowed_by(sk.TimeWindows(size="36500d", advance_ms=1, grace_ms=0)).count()
    assert len(plan.run(records(0, 1)).table()) == 0


@pytest.mark.parametrize("seed", range(40))
def test_the_number_told_is_that_of_windows_made_where_nothing_is_late(seed: int) -> None:
    rng, batch = np.random.default_rng(seed), draw(seed).batch()
    size = int(rng.integers(1, 60))
    windows = sk.TimeWindows(size_ms=size, advance_ms=int(rng.integers(1, size + 1)), grace_ms=10**6)
    made = run_kernel(windows, {}, batch, retention_ms=windows.retention_ms(None))
    told, exact = most_windows(windows, batch), len(made.window_columns.key)
    assert exact <= told
    if size % windows.advance_ms == 0 and batch.rejected is None and batch.timestamp_ms.min(initial=size) >= size:
        assert told == exact


def test_it_is_an_error_of_memory() -> None:
    assert issubclass(TooLarge, MemoryError) and issubclass(TooLarge, SessionkitError)
