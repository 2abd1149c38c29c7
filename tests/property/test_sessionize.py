"""`sessionize` is the plan, and what plain pandas finds, on random frames of each kind."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from tests.frames_with_sessions import GAP_MS, GRACE_MS, by_the_plan, drawn, in_one_form, in_plain_pandas
from tests.interpreted import fewer

FRAMES = fewer(2_000)
WAYS = {"everything is there": None, "in order of arrival": f"{GRACE_MS}ms"}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return drawn(FRAMES)


def expected(rows: pd.DataFrame, grace: str | None) -> pd.DataFrame:
    if grace is None:
        return in_plain_pandas(rows)
    plan = sk.group_by_key("key", timestamp="at", partition="frame", offset="offset")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap=f"{GAP_MS}ms", grace=grace)).count()
    return by_the_plan(rows, plan.run(rows))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.* came too late and were dropped:UserWarning")
@pytest.mark.parametrize("grace", WAYS.values(), ids=WAYS)
def test_it_is_what_the_plan_and_plain_pandas_say(rows: pd.DataFrame, grace: str | None) -> None:
    """Each frame alone, by turns as pandas, polars and pyarrow."""
    kinds = (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows, preserve_index=False))
    ends = np.searchsorted(rows["frame"], np.arange(FRAMES + 1))
    found: list[list[Any]] = [[], [], []]
    for number, (lo, hi) in enumerate(pairwise(ends.tolist())):
        kind = number % 3
        given = kinds[kind].slice(lo, hi - lo) if kind else rows.iloc[lo:hi]
        result = sk.sessionize(given, "key", "at", f"{GAP_MS}ms", grace)
        assert type(result) is type(given)
        found[kind].append(result)
    frames = [pd.concat(found[0]), pl.concat(found[1]).to_pandas(), pa.concat_tables(found[2]).to_pandas()]
    together = pd.concat(frames).sort_values(["frame", "offset"])
    pd.testing.assert_frame_equal(in_one_form(together), expected(rows, grace))
    assert together["at"].tolist() == rows["at"].tolist()
    assert found[0][3].index.equals(rows.index[rows["frame"] == 9])


def test_without_a_grace_it_is_the_plan_that_waits_for_ever(rows: pd.DataFrame) -> None:
    plan = sk.group_by_key("key", timestamp="at", partition="frame", offset="offset")
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap=f"{GAP_MS}ms", grace="100 days")).count().run(rows)
    pd.testing.assert_frame_equal(by_the_plan(rows, run), in_plain_pandas(rows))


def test_order_does_not_matter_without_a_grace(rows: pd.DataFrame) -> None:
    some = rows[rows["frame"] < 200]
    mixed = some.sample(frac=1, random_state=19)
    columns = {"partition": "frame", "at": "at", "by": "key", "gap": f"{GAP_MS}ms"}
    one, other = (sk.sessionize(frame, **columns).sort_index() for frame in (some, mixed))  # type: ignore[arg-type]
    ties = some.duplicated(["frame", "key", "at"], keep=False)  # rows of one time take their places by row
    pd.testing.assert_frame_equal(one.drop(columns="position_in_session"), other.drop(columns="position_in_session"))
    assert (one["position_in_session"] == other["position_in_session"])[~ties & some["key"].notna()].all()
