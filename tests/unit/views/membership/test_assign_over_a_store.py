"""`run.assign` over a store: the records of earlier runs are among the rows of a window, and come first."""

from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.stores.typed_bytes import Layout
from tests.deployments import run_by

WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap_ms=10, grace_ms=30),
    "tumbling": sk.TimeWindows(size_ms=20, grace_ms=30),
}
KEYED = sk.group_by_key("user", timestamp="at", unit="ms")
STORES = ("memory", "rocksdb")


def records(seed: int, count: int = 80) -> pd.DataFrame:
    rng, now, rows = Random(seed), 0, []
    for _ in range(count):
        now += rng.choice([0, 1, 3, 12])
        rows.append((rng.choice("abc"), max(0, now - rng.choice([0, 0, 0, 15]))))
    return pd.DataFrame(rows, columns=["user", "at"])


def open_store(kind: str, windows: Any, folder: Path, **options: Any) -> Any:
    place = {"directory": folder} if kind == "rocksdb" else {}
    return sk.open_store(kind, "assigned", of=windows.holds, **place, **options)


def expected(plan: sk.Plan, data: pd.DataFrame, cut: int, windows: Any) -> pd.DataFrame:
    """Rows of the windows at the end of a single run, and the place of each record among those that arrived by then."""
    whole = plan.run(data).assign(data)
    noun = windows.noun
    earlier = whole.iloc[:cut].groupby(f"{noun}_id").size()
    part = whole.iloc[cut:].copy()
    order = part.sort_values("at", kind="stable").groupby(f"{noun}_id").cumcount() + 1
    return pd.DataFrame(
        {
            "rows": part[f"{noun}_rows"],
            "position": order.reindex(part.index) + part[f"{noun}_id"].map(earlier).fillna(0),
        }
    ).astype("Int64")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", WINDOWS)
def test_rows_and_positions_count_what_came_before(name: str, kind: str, tmp_path: Path) -> None:
    """Three records of one session, the third in the next day's run: `table` said 3, `assign` 1 and position 1."""
    windows = WINDOWS[name]
    plan = KEYED.windowed_by(windows).count()
    for seed in range(12):
        data, cut = records(seed), Random(seed).randrange(1, 79)
        with open_store(kind, windows, tmp_path / str(seed)) as store:
            plan.run(data[:cut], store=store)
            run = plan.run(data[cut:], store=store)
            found = run.assign(data[cut:])
        told = expected(plan, data, cut, windows)
        assert found[f"{windows.noun}_rows"].astype("Int64").equals(told["rows"]), seed
        assert found[f"position_in_{windows.noun}"].astype("Int64").equals(told["position"]), seed
        counts = run.table().set_index(["user", "window_start"])["count"]
        kept = found[~found["late"]]
        of_table = counts.loc[list(zip(kept["user"], kept[f"{windows.noun}_start"], strict=True))]
        assert kept[f"{windows.noun}_rows"].tolist() == of_table.tolist()


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", WINDOWS)
def test_it_is_so_under_the_rules_of_kafka_and_after_a_store_was_opened_again(
    name: str, kind: str, tmp_path: Path
) -> None:
    windows, data = WINDOWS[name], records(3)
    plan = KEYED.windowed_by(windows).count()
    found = []
    for rules in ("sessionkit", "kafka"):
        store = open_store(kind, windows, tmp_path / rules, retention="1h")
        run_by(plan, data[:40], store=store, rules=rules)
        if kind == "rocksdb":
            store.close()
            store = open_store(kind, windows, tmp_path / rules, retention="1h")
        found.append(run_by(plan, data[40:], store=store, rules=rules).assign(data[40:]))
        store.close()
    assert found[0].equals(found[1])


@pytest.mark.parametrize("name", WINDOWS)
def test_what_an_older_store_does_not_know_is_empty_and_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, data = WINDOWS[name], pd.DataFrame({"user": ["a", "a", "b"], "at": [0, 1, 2]})
    plan = KEYED.windowed_by(windows).count()

    def without_rows(layout: Layout, stored: Any) -> tuple[Any, ...]:
        times = () if layout.has_end else (stored.timestamp_ms,)
        return (*times, stored.opened_by, stored.closed_by, stored.aggregate)

    with monkeypatch.context() as before:
        before.setattr(Layout, "fields_of", without_rows)
        before.setattr("sessionkit.stores.rocksdb.columns.pack_fields", lambda *_: None)
        with open_store("rocksdb", windows, tmp_path) as store:
            plan.run(data[:1], store=store)
    with open_store("rocksdb", windows, tmp_path) as store:
        run = plan.run(data[1:], store=store)
        found = run.assign(data[1:])
        assert found[f"{windows.noun}_rows"].tolist() == [pd.NA, 1]
        assert found[f"position_in_{windows.noun}"].tolist() == [pd.NA, 1]
        assert run.table()["count"].tolist() == [2, 1]
        noun = windows.noun
        told = f"The store does not say how many records 1 {noun} had before: `assign` leaves that empty."
        assert run.remarks() == [told]
        assert plan.run(data[:0], store=store).remarks() == []
