"""The tuner: settings, counts, a snapshot, and what each of them costs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.widgets.tuner import LADDER_MS, Tuner, ladder, plan_code
from tests.kinds import each_kind, plan_of, shown_in_ms

MINUTE = 60_000


def clicks(count: int = 400, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.integers(0, 90_000, count)) - (rng.random(count) < 0.4) * rng.integers(0, 15 * MINUTE, count)
    return pd.DataFrame(
        {"user": rng.choice(["ana", "bo", "cy", "dee"], count), "at": np.maximum(at, 0), "price": rng.random(count)}
    )


def spent_in(windows: Any) -> sk.Plan:
    return plan_of(windows, named={"spent": sk.sum("price")}, key="user")


SESSIONS = sk.SessionWindows(inactivity_gap="5m", grace="2m")
KINDS = each_kind(MINUTE)


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_a_fresh_run(kind: str) -> None:
    data, plan = clicks(), spent_in(KINDS[kind])
    tuner = Tuner(plan, data)
    for grace in ("0s", "7m", "2m"):
        tuner.set(grace=grace)
        counts = {count.name: count.value for count in tuner.counts()}
        fresh = plan.with_windows(grace=grace).run(data)
        records = fresh.trace.records().to_pandas()
        assert counts["dropped"] == (records["decision"] == "dropped").sum()
        assert counts[f"{plan.windows.noun}s"] == len(fresh.table())
        assert counts["sent"] == len(fresh.changelog())
        assert counts["until final"] == fresh.plan.windows.close_lag_ms
        if kind == "session":
            assert counts["merges"] == fresh.metrics()["windows-merged"]
            assert counts["late but kept"] == int(fresh.trace.late_but_kept.sum())


def test_a_snapshot_stands_beside_the_counts() -> None:
    tuner = Tuner(spent_in(SESSIONS), clicks())
    assert all(count.before is None for count in tuner.counts())
    before = [count.value for count in tuner.counts()]
    tuner.keep()
    tuner.set(grace="20m")
    assert [count.before for count in tuner.counts()] == before
    assert [count.value for count in tuner.counts()] != before


def test_the_emit_strategy_changes_what_is_sent_alone() -> None:
    tuner = Tuner(spent_in(SESSIONS), clicks())
    updates = tuner.counts()
    tuner.emit("on_window_close")
    finals = tuner.counts()
    assert [one.value for one in updates[:-1]] == [other.value for other in finals[:-1]]
    assert finals[-1].value == len(tuner.plan.run(clicks()).changelog()) < updates[-1].value


def test_what_is_refused_changes_nothing() -> None:
    tuner = Tuner(spent_in(KINDS["hopping"]), clicks())
    before = tuner.plan
    with pytest.raises(InvalidArgument, match="advance"):
        tuner.set(advance="1h")
    assert tuner.plan is before


def test_the_grid_holds_the_settings_of_now() -> None:
    for grace in ("0s", "90s"):
        plan = spent_in(SESSIONS).with_windows(grace=grace)
        tuner = Tuner(plan, clicks())
        cell = tuner.sweep().cell(**{f"{name}_ms": ms for name, ms in tuner.settings.items()})
        counts = {count.name: count.value for count in tuner.counts()}
        assert (cell.windows, cell.merges, cell.dropped) == (counts["sessions"], counts["merges"], counts["dropped"])


def test_a_ladder_has_its_value_and_rises() -> None:
    for value, span in ((0, None), (90_001, None), (MINUTE, ("0s", "1h")), (7, ("1s", "2s"))):
        steps = ladder(value, value or MINUTE, span, "grace")
        assert value in steps
        assert steps == sorted(set(steps))
        if span is None:
            assert steps[0] == 0
            assert steps[-1] <= 30 * (value or MINUTE)
    assert ladder(MINUTE, MINUTE, None, "inactivity_gap")[0] == 2_000
    assert list(LADDER_MS) == sorted(set(LADDER_MS))


def test_a_span_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ends before it starts"):
        ladder(MINUTE, MINUTE, ("1h", "1m"), "grace")


def test_a_spark_frame_is_refused_with_what_to_do() -> None:
    class DataFrame:
        __module__ = "pyspark.sql.classic.dataframe"

    with pytest.raises(InvalidArgument, match="limit"):
        Tuner(spent_in(SESSIONS), DataFrame())


def test_the_code_makes_the_plan_again() -> None:
    plan = spent_in(SESSIONS).emit("on_window_close")
    names: dict[str, Any] = {}
    exec(plan_code(plan), names)  # noqa: S102
    assert shown_in_ms(names["plan"]) == plan
