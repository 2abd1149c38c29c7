"""`plan.write` gives the rows of `plan.run`, wherever its steps are cut, of whatever input, over any store."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.steps import write as steps
from tests.interpreted import fewer
from tests.kinds import EACH_KIND

SEEDS = range(fewer(25))
STRATEGIES = ("on_window_update", "on_window_close")
# Key columns, and what makes one.
KEYS: dict[str, Any] = {
    "text": (("user",), None),
    "integers": (("number",), None),
    "several columns": (("user", "number"), "@"),
}


def drawn(seed: int) -> pa.Table:
    """Records of interleaved partitions: out of order, some with a null key, a time that is none, or no value."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 120))
    at = np.arange(size) * int(rng.choice([1, 3, 9])) + rng.integers(-60, 12, size)  # some are before 1970
    partition = rng.choice([0, 1, 5][: int(rng.integers(1, 4))], size)
    offset = np.empty(size, np.int64)
    for number in (0, 1, 5):
        rows = np.flatnonzero(partition == number)
        offset[rows] = np.cumsum(rng.integers(1, 4, len(rows)))
    return pa.table(
        {
            "user": pa.array(rng.choice(["ada", "bob", "é", ""], size).tolist(), mask=rng.random(size) < 0.1),
            "number": pa.array(rng.integers(-3, 3, size), mask=rng.random(size) < 0.1),
            "at": pa.array(at, mask=rng.random(size) < 0.05),
            "partition": partition,
            "offset": offset,
            "value": pa.array(rng.integers(0, 9, size), mask=rng.random(size) < 0.1),
        }
    )


def plan_of(kind: str, strategy: Any, key: str = "text", *, has_offset: bool = True) -> sk.Plan:
    names, sep = KEYS[key]
    grouped = sk.group_by_key(
        *names, sep=sep, timestamp="at", unit="ms", on_bad_time="drop", partition="partition",
        offset="offset" if has_offset else None,
    )  # fmt: skip
    results = {"n": sk.count(), "total": sk.sum("value"), "mean": sk.mean("value"), "all": sk.collect("value"),
               "newest": sk.latest("value"), "different": sk.count_distinct("value")}  # fmt: skip
    return grouped.windowed_by(EACH_KIND[kind]).emit(strategy).aggregate(**results)


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def in_closing_order(table: pa.Table) -> bool:
    """Within a partition the ends of closed windows rise, and what is open comes behind them."""
    for number in set(table["partition"].to_pylist()):
        own = table.filter(pa.compute.equal(table["partition"], number))
        closed = [row["window_end"] for row in own.to_pylist() if row["status"] == "closed"]
        if closed != sorted(closed) or own["status"].to_pylist() != ["closed"] * len(closed) + ["open"] * (
            len(own) - len(closed)
        ):
            return False
    return True


def cut_by(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    for name in ("STEP_RECORDS", "TRACED_RECORDS"):
        monkeypatch.setattr(steps, name, most)


def written(plan: sk.Plan, data: Any, folder: Path, **more: Any) -> tuple[sk.Written, dict[str, pa.Table]]:
    made = plan.write(data, **{name: folder / name for name in steps.TARGETS}, **more)
    tables = {name: pq.read_table(path) for name, path in made.folders.items()}
    assert made.rows == {name: len(table) for name, table in tables.items()}
    return made, tables


def check(run: sk.Run, tables: dict[str, pa.Table]) -> None:
    """All rows, and but for the table in the same order."""
    assert tables["changelog"].equals(run.changelog())
    assert tables["dropped"].equals(run.dropped(missing_grace=False))
    assert tables["records"].equals(run.trace.records())
    assert tables["table"].schema.equals(run.table().schema)
    assert rows_of(tables["table"]) == rows_of(run.table())
    assert in_closing_order(tables["table"])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_any_cut_gives_the_rows_of_a_run(
    kind: str, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:
        data, rng = drawn(seed), np.random.default_rng(seed)
        plan = plan_of(kind, strategy, list(KEYS)[seed % 3], has_offset=bool(seed % 2))
        run = plan.run(data)
        cut_by(monkeypatch, int(rng.integers(1, 40)))
        made, tables = written(plan, data, tmp_path / str(seed))
        check(run, tables)
        assert made.record_count == len(data)
        assert made.dropped_count == run.metrics()["records-dropped"]
        assert made.merges == run.metrics()["windows-merged"]
        # the table alone takes another way, without a trace, and does not depend on the cuts either
        cut_by(monkeypatch, int(rng.integers(1, 40)))
        plan.write(data, table=tmp_path / f"{seed} alone")
        alone = pq.read_table(tmp_path / f"{seed} alone")
        assert rows_of(alone) == rows_of(run.table())
        for number in (0, 1, 5):
            own = [t.filter(pa.compute.equal(t["partition"], number)) for t in (alone, tables["table"])]
            assert own[0].equals(own[1])


@pytest.mark.parametrize("kind", EACH_KIND)
def test_runs_over_one_store_go_on_from_each_other(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By turns in one run and in steps: the same results, and the same store."""
    of = "sessions" if kind == "session" else "windows"
    for seed in SEEDS:
        data, rng = drawn(seed), np.random.default_rng(seed)
        plan = plan_of(kind, STRATEGIES[seed % 2], list(KEYS)[seed % 3])
        stores = [sk.open_store("memory", name, of=of) for name in ("at-once", "in-steps")]
        ends = np.sort(rng.integers(0, len(data) + 1, 2)).tolist()
        for part, (lo, hi) in enumerate(zip([0, *ends], [*ends, len(data)], strict=True)):
            piece = data.slice(lo, hi - lo)
            run = plan.run(piece, store=stores[0])
            cut_by(monkeypatch, int(rng.integers(1, 40)))
            if part == 1 and seed % 3 == 0:
                plan.run(piece, store=stores[1])
            else:
                _, tables = written(plan, piece, tmp_path / f"{seed} {part}", store=stores[1])
                assert tables["changelog"].equals(run.changelog())
                assert tables["records"].equals(run.trace.records())
                shown, met = set(rows_of(tables["table"])), set(rows_of(run.table()))
                assert shown <= met and all("'open'" in row for row in met - shown)
            for number in (0, 1, 5):
                first, second = (list(store.all(partition=number)) for store in stores)
                assert first == second
                assert stores[0].snapshot(number) == stores[1].snapshot(number)


def test_files_of_every_kind_give_what_a_run_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet in small row groups, CSV, JSON lines and Arrow, plain and packed, several of them, and in folders."""
    for seed in SEEDS:
        data = drawn(seed)
        if not len(data):
            continue
        folder = tmp_path / str(seed)
        for name, path in files_of(data, folder).items():
            plan = plan_of(list(EACH_KIND)[seed % 4], STRATEGIES[seed % 2], list(KEYS)[seed % 3])
            run = plan.run(path, frame="arrow")
            cut_by(monkeypatch, 1 + seed)
            made, tables = written(plan, path, folder / f"out {name}")
            check(run, tables)
            assert made.remarks() == run.remarks()[: len(made.remarks())]


def files_of(data: pa.Table, folder: Path) -> dict[str, Any]:
    """The records in files of each kind."""
    half, found = len(data) // 2, dict[str, Any]()
    frame = data.to_pandas(integer_object_nulls=True)
    (folder / "parts").mkdir(parents=True)
    pq.write_table(data, folder / "all.parquet", row_group_size=11)
    for part, rows in enumerate([data.slice(0, half), data.slice(half)]):
        pq.write_table(rows, folder / "parts" / f"{part}.parquet", row_group_size=7)
    found |= {"parquet": folder / "all.parquet", "folder": folder / "parts"}
    found["list"] = sorted((folder / "parts").iterdir())
    for ending in ("csv", "csv.gz"):
        frame.to_csv(folder / f"all.{ending}", index=False)
        found[ending] = folder / f"all.{ending}"
    for ending in ("jsonl", "jsonl.gz"):
        frame.to_json(folder / f"all.{ending}", orient="records", lines=True)
        found[ending] = folder / f"all.{ending}"
    with pa.OSFile(str(folder / "all.arrow"), "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
        writer.write_table(data, max_chunksize=9)
    return {**found, "arrow": folder / "all.arrow"}
