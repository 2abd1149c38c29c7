"""`plan.run(data, keys=[…])` of many records: picked a step at a time, they are those that are picked at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.engine.chosen_keys import chosen_records
from sessionkit.errors import InvalidData, UnknownRecord
from sessionkit.records.batch import read_records
from sessionkit.records.keys import code_of_key
from sessionkit.steps import chosen
from sessionkit.steps.chosen import picked

KEYS = ["ada", "bob", "eve", "joe", None]
WINDOWS = {
    "sessions": sk.SessionWindows(inactivity_gap="30s", grace="10s"),
    "tumbling": sk.TimeWindows(size="30s", grace="5s"),
    "sliding": sk.SlidingWindows(time_difference="20s", grace="5s"),
}


def clicks(seed: int, count: int = 400) -> pd.DataFrame:
    """Records of a few keys, some without a key, a time or a value, some late, in three partitions."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.integers(0, 8_000, count)) - rng.integers(0, 60_000, count) * (rng.random(count) < 0.2)
    numbers = rng.integers(0, 3, count)
    return pd.DataFrame(
        {
            "key": rng.choice(np.array(KEYS, object), count),
            "at": pd.array(np.where(rng.random(count) < 0.03, None, at), "Int64"),
            "n": pd.array(np.where(rng.random(count) < 0.1, None, rng.integers(0, 9, count)), "Int64"),
            "partition": numbers,
            "offset": pd.Series(numbers).groupby(numbers).cumcount() * 2,
            "page": [f"page {row}" for row in range(count)],
        }
    )


def plan_of(kind: str, **how: Any) -> sk.Plan:
    first = sk.group_by_key("key", timestamp="at", unit="ms", on_bad_time="drop", **how)
    return first.windowed_by(WINDOWS[kind]).aggregate(n=sk.sum("n"))


def written(frame: pd.DataFrame, path: Path) -> str:
    frame.to_parquet(path, row_group_size=97)
    return str(path)


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("places", [{}, {"partition": "partition", "offset": "offset"}, {"partitions": 4}])
@pytest.mark.parametrize(
    "most", [1_000, pytest.param(64, marks=pytest.mark.thorough), pytest.param(7, marks=pytest.mark.thorough)]
)
def test_records_are_those_that_are_picked_at_once(
    tmp_path: Path, kind: str, places: dict[str, Any], most: int
) -> None:
    plan, wanted = plan_of(kind, label="page", **places), ["eve", "ada"]
    for seed in range(3):
        path = written(clicks(seed), tmp_path / f"{seed}.parquet")
        whole = read_records(path, plan.source, ("n",))
        want = chosen_records(whole, [code_of_key(whole.keys, key) for key in wanted], plan._complete_windows)
        got = picked(plan._reading(path, plan.source), wanted, None, most)
        assert (got.keys, got.frame, got.form, got.remarks) == (want.keys, want.frame, want.form, want.remarks)
        one, other = plan._run_batch(got), plan._run_batch(want)
        mine = one.trace.records()
        assert mine.equals(other.trace.records())
        for view in (sk.Run.table, sk.Run.changelog, sk.Run.dropped, sk.Run.losses):
            assert str(view(one)) == str(view(other))
        for number, offset in mine.select(["partition", "offset"]).to_pandas().to_numpy()[::7].tolist():
            assert str(one.explain(offset=offset, partition=number)) == str(
                other.explain(offset=offset, partition=number)
            )


@pytest.mark.parametrize("opened", [str, ds.dataset, pq.ParquetFile])
def test_a_run_of_many_records_picks_them_in_steps(
    tmp_path: Path, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, path = plan_of("sessions"), written(clicks(5), tmp_path / "clicks.parquet")
    want = plan.run(opened(path), keys=["bob"]).table()
    calls: list[int] = []
    monkeypatch.setattr(chosen, "STEP_RECORDS", 300)
    monkeypatch.setattr("sessionkit.plan.read_records", lambda *given, **how: calls.append(1))
    got = plan.run(opened(path), keys=["bob"]).table()
    assert type(got) is type(want)
    assert got.equals(want)
    assert not calls


def test_what_needs_all_records_and_text_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "STEP_RECORDS", 10)
    monkeypatch.setattr(chosen, "picked", None)
    frame = clicks(6).dropna()
    path = written(frame, tmp_path / "clicks.parquet")
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    in_order, text = plan_of("sessions", sort="timestamp"), str(tmp_path / "clicks.csv")
    assert in_order.run(path, keys=["bob"]).table()["n"].sum() == frame["n"][frame["key"] == "bob"].sum()
    assert len(plan_of("sessions").run(text, keys=["bob"]).table())


def test_what_is_wrong_is_told_by_its_row_and_place(tmp_path: Path) -> None:
    plan = plan_of("sessions", partition="partition", offset="offset")
    frame = clicks(7)
    reading = plan._reading(written(frame, tmp_path / "a.parquet"), plan.source)
    with pytest.raises(UnknownRecord, match="there is no record of this key; got 'zoe'; another key"):
        picked(reading, ["ada", "zoe"], None, 50)
    frame.loc[390, "offset"] = 1
    reading = plan._reading(written(frame, tmp_path / "b.parquet"), plan.source)
    with pytest.raises(InvalidData, match="offset 1"):
        picked(reading, ["ada"], None, 5)
    strict = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(WINDOWS["sessions"]).count()
    frame = frame[:60].assign(at=[*range(57), None, 58, 59])
    reading = strict._reading(written(frame, tmp_path / "c.parquet"), strict.source)
    with pytest.raises(InvalidData, match=r"row 57\b"):
        picked(reading, ["ada"], None, 50)
