"""Plans without a key column: every answer is that of a constant key whose column is taken away."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt, SessionkitError, StoreMismatch, UnknownRecord
from tests.kinds import each_kind

KINDS = each_kind(60_000)
EMITS: tuple[Any, ...] = ("on_window_update", "on_window_close")
SOURCE: dict[str, Any] = {"timestamp": "at", "partition": "partition", "offset": "offset", "label": "page"}


def clicks(count: int = 120) -> pa.Table:
    """Clicks in two partitions, a third of them up to 25 minutes behind."""
    dice = np.random.default_rng(7)
    at_ms = 1_700_000_000_000 + np.cumsum(dice.integers(0, 200_000, count))
    at_ms -= dice.integers(0, 1_500_000, count) * (dice.random(count) < 0.3)
    return pa.table({
        "all": ["x"] * count, "at": pa.array(at_ms).cast(pa.timestamp("ms", "UTC")), "n": dice.integers(0, 9, count),
        "page": [f"p{number % 5}" for number in range(count)], "partition": np.arange(count) % 2,
        "offset": np.arange(count) // 2,
    })  # fmt: skip


CLICKS = clicks()


def both(windows: Any, emit: Any = "on_window_update", **source: Any) -> tuple[sk.Plan, sk.Plan]:
    """The same plan without a key, and with one that is the same in all rows."""
    named = {"count": sk.count(), "total": sk.sum("n")}
    starts = (sk.group_by_key(**SOURCE | source), sk.group_by_key("all", **SOURCE | source))
    keyless, keyed = (each.windowed_by(windows).emit(emit).aggregate(**named) for each in starts)
    return keyless, keyed


def rows(table: Any) -> dict[str, list[Any]]:
    """The columns, but the key."""
    table = pa.table(table) if not isinstance(table, pd.DataFrame) else pa.Table.from_pandas(table)
    return {name: table[name].to_pylist() for name in table.column_names if name != "all"}


TABLES: dict[str, Callable[[sk.Run], Any]] = {
    "table": lambda run: run.table(), "changelog": lambda run: run.changelog(), "dropped": lambda run: run.dropped(),
    "losses": lambda run: run.losses(), "emissions": lambda run: run.emissions(partition=0).table(),
    "latency": lambda run: run.latency().table(), "open windows": lambda run: run.open_windows().table(),
    "clock": lambda run: run.clock().table(),
}  # fmt: skip
OF_SESSIONS: dict[str, Callable[[sk.Run], Any]] = {
    "merges": lambda run: run.merges(ids="hash").drop_columns(["earlier_id", "later_id", "session_id"]),
    "assigned": lambda run: run.assign(CLICKS),
}


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_that_of_a_constant_key(kind: str, emit: Any) -> None:
    keyless, keyed = (plan.run(CLICKS) for plan in both(KINDS[kind], emit))
    for name, ask in (TABLES | (OF_SESSIONS if kind == "session" else {})).items():
        got = ask(keyless)
        assert rows(got) == rows(ask(keyed)), name
        assert name == "assigned" or not {"all", "key"} & {*got.column_names}, name
    assert keyless.metrics() == keyed.metrics()
    assert len(keyless.dropped()) and str(keyless) == str(keyed) and keyless.remarks() == keyed.remarks()


@pytest.mark.parametrize("frame", [pa.Table.to_pandas, pl.from_arrow], ids=["pandas", "polars"])
def test_frames_of_each_kind_have_no_key_column(frame: Callable[[pa.Table], Any]) -> None:
    keyless, keyed = (plan.run(frame(CLICKS)) for plan in both(KINDS["session"]))
    for name in ("table", "changelog", "dropped", "losses"):
        got = getattr(keyless, name)()
        assert type(got) is type(getattr(keyed, name)())
        assert rows(got) == rows(getattr(keyed, name)()), name
        assert "all" not in got.columns


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_keeps_the_windows_under_empty_bytes(kind: str, tmp_path: Path) -> None:
    plan, of = both(KINDS[kind])[0], "sessions" if kind == "session" else "windows"
    whole = plan.run(CLICKS)
    stores = [sk.open_store("memory", "a", of=of), sk.open_store("rocksdb", "b", of=of, directory=tmp_path)]
    for store in stores:
        parts = [plan.run(part, store=store) for part in (CLICKS.slice(0, 70), CLICKS.slice(70))]
        sent = pa.concat_tables([part.changelog() for part in parts])
        assert sent.equals(whole.changelog())
        assert sum(len(part.dropped()) for part in parts) == len(whole.dropped())
        still_open = whole.table().filter(pa.compute.equal(whole.table()["status"], "open"))
        last = parts[1].table().filter(pa.compute.equal(parts[1].table()["status"], "open"))
        assert last.equals(still_open)
        assert {window.key for window in store.all()} == {b""}
        with pytest.raises(StoreMismatch, match="got keys '', not 'all'"):
            both(KINDS[kind])[1].run(CLICKS, store=store)
        store.close()


def test_files_are_written_without_a_key(tmp_path: Path) -> None:
    pq.write_table(CLICKS, tmp_path / "clicks.parquet")
    for name, plan in zip(("keyless", "keyed"), both(KINDS["session"]), strict=True):
        folders = {view: tmp_path / name / view for view in ("table", "changelog", "dropped")}
        plan.write(tmp_path / "clicks.parquet", **folders)  # type: ignore[arg-type]
    for view in ("table", "changelog", "dropped"):
        keyless, keyed = (pq.read_table(tmp_path / name / view) for name in ("keyless", "keyed"))
        assert "all" not in keyless.column_names
        assert rows(keyless) == rows(keyed)


def test_settings_are_advised_as_of_a_constant_key() -> None:
    keyless, keyed = both(KINDS["session"])
    gaps, graces = (tuple(ask(plan, CLICKS) for plan in (keyless, keyed)) for ask in (sk.suggest_gap, sk.suggest_grace))
    assert gaps[0].gap_ms == gaps[1].gap_ms
    assert "pauses (of all records) have" in gaps[0].words()[0]
    assert graces[0].grace_ms == graces[1].grace_ms
    tried = [sk.sweep(plan, CLICKS, inactivity_gap=["3m", "5m"]).table() for plan in (keyless, keyed)]
    assert tried[0].equals(tried[1])


def test_words_and_pictures_say_all_records(tmp_path: Path) -> None:
    run = both(KINDS["session"])[0].run(CLICKS)
    merge = run.merges().slice(0, 1).to_pylist()[0]
    at = {"window_start": merge["window_start"], "partition": merge["partition"]}
    assert str(run.explain(**at)).startswith("Session of all records (partition 0), ")
    assert str(run.lineage(None, **at)).startswith("Session of all records, ")
    assert "all records" not in str(run.explain(offset=3, partition=0))
    assert repr(run.emissions(partition=0)).startswith("What went downstream for all records in partition 0: ")
    assert str(run.steps(None)).startswith("All records: ")
    assert ">All records: " in run.plane(partition=0).layout.title.text
    lanes = run.lanes()
    assert {*lanes.layout.yaxis.ticktext} == {"<b>all records · 0</b>", "<b>all records · 1</b>"}
    assert ">all records · " in lanes.layout.title.text
    page = run.write_html(tmp_path / "page.html", hide_keys=True).read_text(encoding="utf-8")
    assert '"keys":["all records"]' in page and '"hasKeys":false' in page
    assert repr(sk.play(run)).startswith("Player: all records, ")


def test_a_plan_comes_back_from_its_code_and_a_pickle() -> None:
    plan = sk.group_by_key(timestamp="at", timezone="UTC").windowed_by(KINDS["session"]).count()
    assert repr(plan).splitlines()[1] == '    sk.group_by_key(timestamp="at", timezone="UTC")'
    assert eval(repr(plan), {"sk": sk}) == plan == pickle.loads(pickle.dumps(plan))  # noqa: S307


def test_no_records_have_no_key() -> None:
    run = both(KINDS["session"])[0].run(CLICKS.slice(0, 0))
    assert run.table().num_rows == 0
    with pytest.raises(UnknownRecord, match="the run has no key; got no records"):
        run.most_eventful_key()


PLAN = both(KINDS["session"])[0]
REFUSED: dict[str, tuple[Callable[[], object], type[SessionkitError], str]] = {
    "a deployment": (lambda: PLAN.run(CLICKS, deployment=sk.Deployment()), NotBuilt, "by a key; got no key column"),
    "an audit": (lambda: sk.audit(PLAN, CLICKS), NotBuilt, r'such as df\["all"\] = "all"'),
    **{
        name: (getattr(PLAN, name), NotBuilt, "the same in all rows as the key")
        for name in ("to_java", "to_ksql", "to_flink_sql", "to_spark")
    },
    "keys": (lambda: PLAN.run(CLICKS, keys=["x"]), InvalidArgument, r"no keys to choose from; got keys=\['x'\]"),
    "a key": (lambda: PLAN.run(CLICKS).plane("x"), InvalidArgument, "this plan has no keys; got 'x'; None"),
    "partitions by key": (
        lambda: sk.group_by_key(timestamp="at", partitions=3),
        InvalidArgument,
        "partitions= places records by their key; got no key column",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_key_says_so(name: str) -> None:
    ask, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said):
        ask()
