"""Rules of sessions are what plain Python says, on random frames of each kind."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.session_rules import order
from tests.frames_with_rules import ADDED, drawn, in_plain_python, rules_drawn, with_short_minutes
from tests.interpreted import fewer

FRAMES = fewer(5_000)
pytestmark = pytest.mark.filterwarnings("ignore:starts_when applies|ends_when applies|gap=:UserWarning")


def check(found: pd.DataFrame, truth: pd.DataFrame, rules: dict[str, Any]) -> None:
    ids = [None if pd.isna(each) else int(each) for each in found["session_id"]]
    assert ids == [None if pd.isna(each) else each for each in truth["session"]]
    for name in ADDED:
        if name in found:
            given = found[name].astype(object)
            assert given.where(given.notna(), None).tolist() == truth[name].where(truth[name].notna(), None).tolist()
    cuts = {*rules} - {"gap", "until"}
    assert ("session_ended_by" in found) == bool(cuts)


@pytest.mark.thorough
def test_rules_are_what_plain_python_says() -> None:
    """Each frame alone, by turns as pandas, polars and pyarrow; rows in any order of time."""
    rows = drawn(FRAMES)
    ends = np.searchsorted(rows["frame"], np.arange(FRAMES + 1))
    for number, (lo, hi) in enumerate(pairwise(ends.tolist())):
        given, rules = rows.iloc[lo:hi], rules_drawn(number)
        kind = (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas)[number % 3]
        zone = given["zone"].iloc[0] if len(given) else "UTC"
        result = sk.sessionize(kind(given), "key", "at", timezone=zone, offset="offset", **rules)
        found = result if number % 3 == 0 else result.to_pandas()
        for name in ("session_start", "session_end"):
            found[name] = found[name].dt.tz_convert("UTC")
        check(found, in_plain_python(given, rules), rules)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_and_lengths_may_be_finer_than_a_millisecond(unit: str, tmp_path: Path) -> None:
    frames = fewer(300)
    rows = drawn(frames, seed=28)
    for number in range(frames):
        given, rules = with_short_minutes(rows[rows["frame"] == number], rules_drawn(number), unit)
        truth = in_plain_python(given, rules)
        if number % 20 == 0 and len(given):
            given.astype({"place": "float64"}).to_parquet(tmp_path / "in.parquet")
            sk.sessionize(tmp_path / "in.parquet", "key", "at", offset="offset", **rules, out=tmp_path / str(number))
            found = pd.read_parquet(tmp_path / str(number))
            assert str(found["session_start"].dtype) == f"datetime64[{unit}, UTC]"
            check(found, truth, rules)
        kind = (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas)[number % 3]
        result = sk.sessionize(kind(given), "key", "at", offset="offset", **rules)
        check(result if number % 3 == 0 else result.to_pandas(), truth, rules)


def test_order_decides_only_among_equal_times() -> None:
    rows = drawn(60)
    rows = rows[~rows.duplicated(["frame", "key", "at"], keep=False)]
    for number in range(60):
        own, rules = rows[rows["frame"] == number], rules_drawn(number)
        one, other = (
            sk.sessionize(frame, "key", "at", timezone="UTC", **rules).sort_index()
            for frame in (own, own.sample(frac=1, random_state=number))
        )
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_any_number_of_threads_finds_the_same(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = drawn(60)
    for number in range(60):
        own, rules = rows[rows["frame"] == number], rules_drawn(number)
        alone = sk.sessionize(own, "key", "at", timezone="UTC", offset="offset", **rules)
        with monkeypatch.context() as there:
            there.setattr(order, "MANY_ROWS", 1)
            there.setenv("SESSIONKIT_THREADS", str(threads))
            together = sk.sessionize(own, "key", "at", timezone="UTC", offset="offset", **rules)
        pd.testing.assert_frame_equal(alone, together)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("few", [1, 8, 10**6])
def test_late_rows_find_their_place_however_they_are_read(
    few: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = drawn(60)
    monkeypatch.setenv("SESSIONKIT_THREADS", str(threads))
    for number in range(60):
        own, rules = rows[rows["frame"] == number].drop(columns="zone"), rules_drawn(number)
        own = own.assign(place=own["place"].astype("float64"), partition=np.arange(len(own)) % (1 + number % 2))
        options = {"by": "key", "at": "at", "timezone": "UTC", "partition": "partition", **rules}
        by_slot = sk.sessionize(own, offset="offset", **options)
        with monkeypatch.context() as there:
            there.setattr(order, "MANY_ROWS", 1)
            there.setattr(order, "_FEW_LATE", few)
            pd.testing.assert_frame_equal(by_slot, sk.sessionize(own, **options))
