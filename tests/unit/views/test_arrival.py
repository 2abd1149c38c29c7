"""Where `first` and `last`, which go by arrival, are not what event time would choose, a run says so once."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import TooLarge
from sessionkit.views import words
from tests.deployments import run_deployed
from tests.kinds import plan_of

NOW = 1_767_225_600_000
KINDS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap_ms=4, grace_ms=20),
    "tumbling": sk.TimeWindows(size_ms=10, grace_ms=20),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=3, grace_ms=20),
    "sliding": sk.SlidingWindows(time_difference_ms=6, grace_ms=20),
}
NAMED = {"first": sk.first("v"), "last": sk.last("v"), "again": sk.last("v"), "earliest": sk.earliest("v"),
         "latest": sk.latest("v")}  # fmt: skip


def records(order: str) -> pd.DataFrame:
    """Records of two keys in order, with the keys one after another, or some late; some values are missing."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"key": rng.choice(["a", "b"], 200), "at": NOW + np.sort(rng.integers(0, 300, 200)),
                          "v": rng.choice(["x", "y", "z", None], 200)})  # fmt: skip
    arrived = frame["at"] + rng.choice([0, 0, 4, 9], 200)
    return frame.sort_values("key", kind="stable") if order == "by key" else frame.iloc[np.argsort(arrived)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [True, False])
def test_it_says_in_how_many_windows(kind: str, kept: bool) -> None:
    run = plan_of(KINDS[kind], named=NAMED).run(records("late"), trace=kept)
    table, said = run.table().fillna(""), [each for each in run.remarks() if "arrival" in each]
    noun = {"session": "sessions"}.get(kind, "windows")
    expected = []
    for name, other in (("first", "earliest"), ("last", "latest")):
        count = (table[name] != table[other]).sum()
        expected.append(
            f"sk.{name}('v') goes by arrival: in {count} of {len(table)} {noun}, where records came late, the {other} "
            f"value by event time is another, as sk.{other}('v') has it."
        )
        assert count
    assert said == expected
    assert all(each in repr(run) for each in said)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_looked_for_where_the_records_of_each_key_are_in_order(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "run_kernel", None)
    frame = records("by key")
    for data in (frame, frame.sort_values("at", kind="stable")):
        assert not [each for each in plan_of(KINDS[kind], named=NAMED).run(data).remarks() if "arrival" in each]
    unasked = plan_of(KINDS[kind], named={"latest": sk.latest("v"), "all": sk.collect("v")})
    assert not [each for each in unasked.run(records("late")).remarks() if "arrival" in each]


def test_equal_values_are_not_told_apart_whatever_their_type() -> None:
    for value in ([1], {"a": 1}, "x", 2.5, pd.Timestamp("2026-01-01", tz="UTC")):
        table = pa.table({"key": ["a"] * 2, "at": [NOW + 2, NOW + 1], "v": [value] * 2})
        assert plan_of(KINDS["session"], named=NAMED).run(table).remarks() == []


def test_windows_of_earlier_runs_and_of_a_deployment_are_left_out() -> None:
    """What they held before has no times; a deployment's store forgets by rules of its own."""
    store, plan = sk.open_store("memory", "kept", of="sessions"), plan_of(KINDS["session"], named={"v": sk.last("v")})
    frame = pd.DataFrame({"key": "a", "at": [NOW + 2, NOW + 1], "v": ["x", "y"]})
    assert len(plan.run(frame, store=store).remarks()) == 1
    assert plan.run(frame, store=store).remarks() == []
    assert run_deployed(plan, frame, retention="1s").remarks() == []


def test_where_memory_is_short_the_run_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise TooLarge("full")

    run = plan_of(KINDS["session"], named=NAMED).run(records("late"))
    monkeypatch.setattr(words, "run_kernel", full)
    assert not [each for each in run.remarks() if "arrival" in each]


def test_rows_that_are_to_be_sorted_get_that_advice_alone() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"key": rng.choice(["a", "b"], 900), "at": NOW + np.arange(900)[::-1], "v": np.arange(900)})
    said = plan_of(KINDS["session"], named=NAMED).run(frame).remarks()
    assert len(said) == 1 and "the newest row stands first" in said[0]
