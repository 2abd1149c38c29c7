"""Time and sliding windows that both sides of an audit made are compared row by row, without their touches."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits import noticing
from sessionkit.audits.verdicts import Compared
from sessionkit.plan import Plan
from tests.deployments import audit_deployed, lives_by_kernels
from tests.kinds import EACH_KIND, plan_of

KEPT_BY_START = [kind for kind, windows in EACH_KIND.items() if windows.holds == "windows"]
HOW: list[dict[str, Any]] = [
    {"caching": False},
    {"caching": False, "store": "memory", "emit_interval": "40ms"},
    {"caching": "400B", "emit_interval": "40ms"},
    {"caching": True, "store": "memory"},
]


def records(seed: int, count: int = 150) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = np.maximum(np.arange(count) * 4 - rng.integers(0, 60, count), 0)
    columns = {"key": rng.choice([*"abcdé"], count).tolist(), "at": at, "n": rng.integers(0, 9, count)}
    return pa.table({**columns, "partition": rng.integers(0, 2, count)})


@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", KEPT_BY_START)
def test_rows_are_compared_as_windows_are(kind: str, emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, by_rows = plan_of(EACH_KIND[kind], named={"n": sk.sum("n")}).emit(emit), 0
    for seed, how in enumerate(HOW):
        table = records(seed)
        one = audit_deployed(plan, table, **how)
        by_rows += one._by_rows is not None
        found = one.counts(), one.table(), one.differences(), one.safe_retentions_ms, one.words()
        monkeypatch.setattr(Compared, "by_rows", lambda *_: None)
        other = audit_deployed(plan, table, **how)
        again = other.counts(), other.table(), other.differences(), other.safe_retentions_ms, other.words()
        monkeypatch.undo()
        assert found[0] == again[0], seed
        assert found[1].equals(again[1]), seed
        assert found[2].equals(again[2]), seed
        assert found[3:] == again[3:], seed
    assert by_rows > 1


@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", KEPT_BY_START)
def test_an_audit_without_a_cache_goes_through_no_touches(
    kind: str, emit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of windows that overlap much there are far more of them than records."""
    plan, table = plan_of(EACH_KIND[kind], named={"n": sk.count()}).emit(emit), records(5)
    with lives_by_kernels() as by_kernels:
        wanted = audit_deployed(plan, table, caching=False).words()
    assert by_kernels

    def touches(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(type(EACH_KIND[kind]), "touches", touches)
    audit = audit_deployed(plan, table, caching=False)
    assert audit.words() == wanted
    assert len(audit.table()) == audit.counts()["expected"]
    if emit == "on_window_close":
        assert len(audit.run.changelog()) == audit.counts()["sent"]


def test_of_sliding_windows_a_search_plays_all_records_only_where_some_are_on_the_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record that is late by the whole grace asks for a window that the smallest retention hides."""
    played: list[int] = []
    real = Plan._run_deployed

    def noted(plan: Plan, batch: Any, how: Any, store: Any) -> Any:
        played.append(len(batch))
        return real(plan, batch, how, store)

    monkeypatch.setattr(Plan, "_run_deployed", noted)
    plan = plan_of(sk.SlidingWindows(time_difference_ms=10, grace_ms=20)).emit("on_window_close")
    runs = {}
    for last_ms in (36, 35):  # the store has a window from 65 on, and these ask for one from 26 or 25 on
        table = pa.table({"key": ["a"] * 5, "at": [0, 5, 64, 65, last_ms], "n": [1] * 5, "partition": [0] * 5})
        audit = audit_deployed(plan, table, store="memory", retention="1h")
        played.clear()
        assert audit.safe_retentions_ms[-1][1] is None
        runs[last_ms] = len(played)
    assert runs[36] == 0
    assert runs[35] > 0


def test_a_cache_that_is_full_at_once_is_measured_on_the_first_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noticing, "MEASURED_FIRST", 40)
    measured: list[int] = []
    real = noticing._measured

    def noted(plan: Plan, batch: Any) -> int:
        measured.append(len(batch))
        return real(plan, batch)

    monkeypatch.setattr(noticing, "_measured", noted)
    plan, table = plan_of(sk.SessionWindows(inactivity_gap_ms=8, grace_ms=20), named={"n": sk.count()}), records(7)
    assert audit_deployed(plan, table, caching="400B").counts()["expected"] > 0
    assert measured == [40]
    measured.clear()
    assert audit_deployed(plan, table, caching="10MB").counts()["expected"] > 0
    assert measured == [40, 150]
