"""Mistakes that anyone makes with a new library: each is answered with the right call, and never from inside."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, SessionkitError

CLICKS = pd.DataFrame({"user": ["ada", "bob", "ada"], "at": [0, 10_000, 20_000], "amount": [1, 2, 3]})
WINDOWS = sk.SessionWindows(inactivity_gap="30s", grace="10s")
KEYED = sk.group_by_key("user", timestamp="at", unit="ms", times="ms")
PLAN = KEYED.windowed_by(WINDOWS).count()
RUN = PLAN.run(CLICKS)

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a gap without its name": (lambda: sk.SessionWindows("2h"), 'SessionWindows(inactivity_gap="30m", grace="5m")'),
    "no grace": (lambda: sk.SessionWindows(inactivity_gap="2h"), "missing a required argument: 'grace'"),
    "another name for the gap": (lambda: sk.SessionWindows(gap="2h", grace="1h"), "sk.SessionWindows(inactivity_gap="),
    "a gap that is no length": (
        lambda: sk.SessionWindows(inactivity_gap="x", grace=0),
        "inactivity_gap must be a durat",
    ),
    "a size without its name": (lambda: sk.TimeWindows("1h"), 'sk.TimeWindows(size="1h", grace="5m")'),
    "no grace of a size": (lambda: sk.TimeWindows(size="1h"), "missing a required argument: 'grace'"),
    "a difference without its name": (lambda: sk.SlidingWindows("1h"), "sk.SlidingWindows(time_difference="),
    "until without a retention": (lambda: sk.SessionWindows.until(inactivity_gap="1h"), 'retention="1d"'),
    "no time": (lambda: sk.group_by_key("user"), 'sk.group_by_key("user", timestamp="at")'),
    "the time as a second key": (lambda: sk.group_by_key("user", "at"), "missing a required argument: 'timestamp'"),
    "windows as a text": (lambda: KEYED.windowed_by("2h"), "windowed_by takes windows; got '2h'"),
    "no windows": (KEYED.windowed_by, "plan.windowed_by(sk.SessionWindows("),
    "the class of windows": (lambda: KEYED.windowed_by(sk.TimeWindows), "windowed_by takes windows"),
    "counts of a column": (lambda: sk.count("amount"), "sk.count(), which counts all records"),
    "a sum of nothing": (sk.sum, 'sk.sum("amount")'),
    "a sum of two columns": (lambda: sk.sum("a", "b"), 'sk.sum("amount")'),
    "an aggregation without a name": (lambda: PLAN.aggregate(sk.count()), "plan.aggregate(visits=sk.count()"),
    "a function without its column": (lambda: sk.reduce(max), 'sk.reduce(function, "page")'),
    "a plan's count of a column": (lambda: KEYED.windowed_by(WINDOWS).count("amount"), "plan.count(); of a column"),
    "an emit strategy of its own": (lambda: PLAN.emit("final"), "on_window_close"),
    "no emit strategy": (PLAN.emit, 'plan.emit("on_window_close")'),
    "nothing to run": (PLAN.run, "plan.run(data)"),
    "an option that is not there": (lambda: PLAN.run(CLICKS, cache=True), "got an unexpected keyword argument 'cache'"),
    "an offset without its name": (lambda: RUN.explain(13), "run.explain(offset=13)"),
    "nothing to explain": (RUN.explain, "explain"),
    "a lineage without a start": (lambda: RUN.lineage("ada"), "lineage takes a key and a start"),
    "another length": (lambda: PLAN.with_windows(gap="1h"), "has no such parameter; got 'gap'"),
    "a length without its name": (lambda: PLAN.with_windows("1h"), 'plan.with_windows(grace="1h")'),
    "no records to sweep": (lambda: sk.sweep(PLAN, grace=["0s"]), "sk.sweep(plan, data, grace="),
    "no values to sweep": (lambda: sk.sweep(PLAN, CLICKS), "a sweep needs values"),
    "the records twice": (lambda: sk.suggest_gap(CLICKS, CLICKS), "sk.suggest_gap(plan, data)"),
    "no plan to suggest for": (lambda: sk.suggest_grace(CLICKS), "sk.suggest_grace(plan, data"),
    "no records to audit": (lambda: sk.audit(PLAN), "sk.audit(plan, data)"),
    "no run to compare with": (RUN.compare, "run.compare(other_run)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_the_right_call(name: str) -> None:
    make, said = MISTAKES[name]
    with pytest.raises(SessionkitError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_inside_stays_what_it_is() -> None:
    def add(key: object, value: object, count: int) -> int:
        return count + len(value)  # type: ignore[arg-type]

    own = sk.aggregation(initializer=int, aggregator=add, merger=lambda key, a, b: a + b, value="amount")
    with pytest.raises(SessionkitError, match="has no len"):
        KEYED.windowed_by(WINDOWS).aggregate(own=own).run(CLICKS).table()


def test_a_call_that_is_right_keeps_its_signature() -> None:
    with pytest.raises(InvalidArgument, match=r"^SessionWindows cannot be called like this; got too many positional"):
        sk.SessionWindows("2h")
    assert repr(sk.SessionWindows(inactivity_gap="2h", grace="0s")) == 'SessionWindows(inactivity_gap="2h", grace="0s")'
