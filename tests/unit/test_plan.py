"""Plans: built step by step, shown as the code that builds them, refused when not whole; runs and their views."""

import dataclasses
import inspect
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotKept, UnknownRecord

WINDOWS = sk.SessionWindows(inactivity_gap="30s", grace="10s")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
CLICKS = pd.DataFrame(
    {
        "user": ["ada", "bob", "ada", "eve", "bob", "ada"],
        "at": [0, 10_000, 20_000, 100_000, 11_000, 130_000],
        "amount": [1.5, 2.0, None, 4.0, 8.0, 16.0],
    }
)


def longest(older: str, newer: str) -> str:
    return max(older, newer, key=len)


def toy(**options: Any) -> sk.Plan:
    return sk.group_by_key("user", timestamp="at", unit="ms", **options).windowed_by(WINDOWS)


# ---- the code of a plan


def rebuilt(plan: sk.Plan) -> sk.Plan:
    names = {"sk": sk, "longest": longest, "max": max}
    other = eval(repr(plan), {"__builtins__": {}}, names)  # noqa: S307 - the test of what repr promises
    assert isinstance(other, sk.Plan)
    return other


def test_code() -> None:
    plan = (
        sk.group_by_key("carrier", "origin", timestamp="scheduled", sep="@", timezone="UTC", offset="offset")
        .windowed_by(sk.SessionWindows(inactivity_gap="1h 30m", grace_ms=90_500))
        .emit("on_window_close")
        .aggregate(visits=sk.count(), spent=sk.sum("amount"))
    )
    assert repr(plan) == (
        "(\n"
        '    sk.group_by_key("carrier", "origin", timestamp="scheduled", sep="@", timezone="UTC", offset="offset")\n'
        '    .windowed_by(sk.SessionWindows(inactivity_gap="1h30m", grace="1m30s500ms"))\n'
        '    .emit("on_window_close")\n'
        "    .aggregate(visits=sk.count(), spent=sk.sum('amount'))\n"
        ")"
    )
    assert rebuilt(plan) == plan
    assert hash(rebuilt(plan)) == hash(plan)


@given(
    keys=st.lists(TEXT, min_size=1, max_size=3, unique=True), names=st.lists(TEXT, min_size=0, max_size=3, unique=True),
    timestamp=TEXT, sep=TEXT,
    options=st.fixed_dictionaries(
        {},
        optional={
            "unit": st.sampled_from(["s", "ms", "us", "ns"]),
            "timezone": TEXT,
            "ambiguous": st.sampled_from(["raise", "earliest", "latest", "infer"]),
            "separator": st.sampled_from([";", "\t"]),
            "header": st.booleans(),
            "format": st.sampled_from(["%d/%m/%Y %H:%M", "2024 %b %d"]),
            "partition": TEXT,
            "offset": TEXT,
            "on_bad_time": st.sampled_from(["refuse", "drop", "partition_time"]),
        },
    ),
    gap=st.integers(0, 2**61), grace=st.integers(0, 2**61),
    emit=st.sampled_from(["on_window_update", "on_window_close"]), column=TEXT,
)  # fmt: skip
def test_any_plan_is_rebuilt_from_its_code(
    keys: list[str],
    names: list[str],
    timestamp: str,
    sep: str,
    options: dict[str, Any],
    gap: int,
    grace: int,
    emit: str,
    column: str,
) -> None:
    options.pop("unit" if "format" in options else "format", None)
    plan = sk.group_by_key(*keys, timestamp=timestamp, sep=sep, **options)
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=gap, grace_ms=grace)).emit(emit)
    named = {name: make(column) for name, make in zip(names, (sk.sum, sk.mean, sk.collect), strict=False)}
    try:
        plan = plan.aggregate(**named)
    except InvalidArgument:  # a name of a result column, or "initializer"
        return
    assert rebuilt(plan) == plan
    assert repr(rebuilt(plan)) == repr(plan)


def test_names_that_python_does_not_take() -> None:
    plan = toy().aggregate(**{"per cent": sk.count(), "class": sk.first("v"), "ok": sk.last("v")})
    assert repr(plan).endswith(
        """.aggregate(**{"per cent": sk.count()}, **{"class": sk.first('v')}, ok=sk.last('v'))\n)"""
    )
    assert rebuilt(plan) == plan


def test_functions_with_a_name_are_rebuilt() -> None:
    plan = toy().reduce(longest, "v")
    words = pd.DataFrame({"user": ["ada"] * 2, "at": [0, 1], "v": ["long", "longer"]})
    assert repr(rebuilt(plan)) == repr(plan)
    assert rebuilt(plan).run(words).table().equals(plan.run(words).table())


def test_a_plan_without_anything_is_one_line() -> None:
    plan = sk.group_by_key("user", timestamp="at")
    assert repr(plan) == 'sk.group_by_key("user", timestamp="at")'
    assert repr(plan.windowed_by(WINDOWS)).count("\n") == 3


def test_equal_plans() -> None:
    assert toy().count() == toy().count()
    assert toy().count() != toy().aggregate(n=sk.count())
    assert toy().aggregate(n=sk.sum("a")) != toy().aggregate(n=sk.sum("b"))
    assert sk.reduce(longest, "v") != sk.reduce(lambda older, newer: older, "v")
    assert sk.count() != "count()"


# ---- steps


def test_a_plan_does_not_change() -> None:
    start = sk.group_by_key("user", timestamp="at")
    windowed = start.windowed_by(WINDOWS)
    assert start.windows is None
    assert windowed.count()._aggregations != windowed._aggregations == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        start._strategy = "on_window_close"  # type: ignore[misc]


def test_with_windows() -> None:
    plan = toy().count()
    assert plan.with_windows(grace="0s").windows == sk.SessionWindows(inactivity_gap="30s", grace=0)
    assert plan.with_windows(inactivity_gap="1m").windows == sk.SessionWindows(inactivity_gap="1m", grace="10s")
    assert plan.with_windows() == plan
    with pytest.raises(InvalidArgument, match="the plan has no windows"):
        sk.group_by_key("user", timestamp="at").with_windows(grace="0s")


def test_shortcuts() -> None:
    assert toy().count() == toy().aggregate(count=sk.count())
    assert [name for name, _ in toy().reduce(longest, "v")._aggregations] == ["reduce"]
    own = toy().aggregate(initializer=int, aggregator=lambda k, v, a: a + 1, merger=lambda k, a, b: a + b)
    assert [name for name, _ in own._aggregations] == ["aggregate"]
    assert own.run(CLICKS).table()["aggregate"].tolist() == [2, 1, 1, 1]


def test_value_columns_are_named_once() -> None:
    plan = toy().aggregate(a=sk.sum("x"), b=sk.mean("y"), c=sk.min("x"), d=sk.count())
    assert plan._value_columns() == ("x", "y")


@pytest.mark.parametrize(("step", "telling"), [
    (lambda plan: plan.windowed_by(5), "windowed_by takes windows; got 5; sk.SessionWindows(inactivity_gap="),
    (lambda plan: plan.windowed_by(sk.SessionWindows), "windowed_by takes windows; got <class"),
    (lambda plan: plan.windowed_by("30s"), "windowed_by takes windows; got '30s'"),
    (lambda plan: plan.emit("close"), "emit must be a known choice; got 'close'; one of 'on_window_update', 'on_"),
    (lambda plan: plan.emit(None), "emit must be a known choice; got None"),
    (lambda plan: plan.emit(["on_window_close"]), "emit must be a known choice; got ['on_window_close']"),
    (lambda plan: plan.aggregate(n=sk.count), "n must be an aggregation; got <function count"),
    (lambda plan: plan.aggregate(n="count"), "n must be an aggregation; got 'count'; n=sk.count(), sk.sum(column)"),
    (lambda plan: plan.aggregate(key=sk.count()), "this name is taken by a column of the results; got 'key'; another"),
    (lambda plan: plan.aggregate(status=sk.count()), "this name is taken by a column of the results; got 'status'"),
    (lambda plan: plan.aggregate(stream_time_ms=sk.count()), "by a column of the results; got 'stream_time_ms'"),
    (lambda plan: plan.aggregate(closes_at_ms=sk.last("v")), "by a column of the results; got 'closes_at_ms'"),
    (lambda plan: plan.run(CLICKS), "the plan has no windows; got sk.group_by_key("),
    (lambda plan: plan.windowed_by(WINDOWS).run(CLICKS), "the plan has no aggregation; got ("),
    (lambda plan: plan.windowed_by(WINDOWS).aggregate().run(CLICKS), "the plan has no aggregation"),
])  # fmt: skip
def test_steps_that_are_refused(step: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        step(sk.group_by_key("user", timestamp="at", unit="ms"))
    assert telling in str(caught.value)


@pytest.mark.parametrize(("options", "telling"), [
    ({"deployment": "kafka"}, "deployment takes a deployment; got 'kafka'; sk.Deployment(), with Kafka's own defaults"),
    ({"deployment": sk.Deployment(), "retention": "1h"}, "with a deployment its retention counts; got retention='1h'"),
    ({"deployment": sk.Deployment(), "store": sk.open_store("memory", "s", retention="1h")},
     "a store must be of the deployment's kind; got "),
    ({"deployment": sk.Deployment.plain(retention="2h"), "store": sk.open_store("memory", "s", retention="1h")},
     "a deployed store brings its own retention; got a store with retention 1 h, and a deployment with 2h"),
    ({"retention": "39s"}, "retention must cover the windows; got 39 s; at least inactivity_gap + grace = 40 s"),
    ({"retention": "long"}, "retention must be a duration; got 'long'"),
    ({"retention": -1}, "retention must be 0 ms or more; got -1; "),
    ({"store": "clicks-store"},
     "store must be a store of sessions; got 'clicks-store'; such as sk.open_store(\"memory\", "),
    ({"store": {}}, "store must be a store of sessions; got {}"),
])  # fmt: skip
def test_runs_that_are_refused(options: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        toy().count().run(CLICKS, **options)
    assert telling in str(caught.value)


@pytest.mark.parametrize(
    ("gap", "grace", "telling"),
    [
        (-1, 0, 'inactivity_gap must be 0 ms or more; got -1; inactivity_gap="0s" is allowed'),
        (0, "-5ms", "grace must be 0 ms or more; got -5 ms ('-5ms'); grace=\"0s\" is allowed"),
        ("soon", 0, "inactivity_gap must be a duration; got 'soon'"),
        (0, None, 'grace must be given; got neither grace nor grace_ms; grace="5m" or other text'),
        (7200, 0, 'inactivity_gap needs a unit; got 7200; "7200ms" for milliseconds, "7200s" for seconds, "7200m" for'),
        (f"{2**62}ms", "1ms", "inactivity_gap and grace together must be at most 2**62 ms; got 4611686018427387905 ms"),
    ],
)
def test_windows_that_are_refused(gap: Any, grace: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        sk.SessionWindows(inactivity_gap=gap, grace=grace)
    assert telling in str(caught.value)


def test_calls_have_few_parameters() -> None:
    names = ["data", "store", "retention", "trace", "keys", "deployment", "frame"]
    assert [*inspect.signature(sk.Plan.run).parameters] == ["self", *names]
    assert len(inspect.signature(sk.audit).parameters) <= 5


@pytest.mark.parametrize(
    ("kind", "length"),
    [(sk.SessionWindows, "inactivity_gap"), (sk.TimeWindows, "size"), (sk.SlidingWindows, "time_difference")],
)
def test_a_choice_with_consequences_has_no_default(kind: Any, length: str) -> None:
    with pytest.raises(InvalidArgument, match="grace must be given; got neither grace nor grace_ms; "):
        kind(**{length: "5m"})
    with pytest.raises(InvalidArgument, match="too many positional arguments"):
        kind("5m", "1m")


# ---- runs


def test_what_goes_in_comes_out() -> None:
    for data, kind in (
        (CLICKS, pd.DataFrame),
        (pl.from_pandas(CLICKS), pl.DataFrame),
        (pa.Table.from_pandas(CLICKS), pa.Table),
    ):
        run = toy().count().run(data)
        for view in (run.table(), run.changelog(), run.dropped()):
            assert isinstance(view, kind)


def test_the_views_agree() -> None:
    run = toy().aggregate(n=sk.count(), spent=sk.sum("amount")).run(CLICKS)
    table = run.table()
    assert table.columns.tolist() == ["user", "window_start", "window_end", "n", "spent", "status", "partition"]
    assert table[["user", "n", "spent"]].to_numpy().tolist() == [
        ["ada", 2, 1.5],
        ["ada", 1, 16.0],
        ["bob", 1, 2.0],
        ["eve", 1, 4.0],
    ]
    assert run.dropped()["offset"].tolist() == [4]
    m = run.metrics()
    assert m["process-total"] == m["dropped-records-total"] + run.trace.accepted.sum() == len(CLICKS)
    assert m["windows"] == len(table)
    assert repr(run) == (
        "Run: 6 records in 4 sessions (2 closed, 2 open) · 0 merges · 1 dropped · gap 30 s, grace 10 s"
    )


def test_without_a_trace() -> None:
    run = toy().count().emit("on_window_close").run(CLICKS, trace=False)
    assert run.table().equals(toy().count().run(CLICKS).table())
    assert repr(run).startswith("Run: 6 records in 4 sessions")
    for view in (run.changelog, run.dropped, lambda: run.explain(offset=0), lambda: run.trace, run.plane, run.lanes):
        with pytest.raises(NotKept, match="this run kept no trace; got trace=False; run it again without trace=False"):
            view()


def test_emit_strategies_see_the_same_windows() -> None:
    updates = toy().count().run(CLICKS)
    finals = toy().count().emit("on_window_close").run(CLICKS)
    assert updates.table().equals(finals.table())
    assert updates.changelog()["what"].value_counts().to_dict() == {"update": 5, "tombstone": 1}
    assert finals.changelog()["what"].tolist() == ["final"] * 2


def test_dropped_records_say_how_much_grace_was_missing() -> None:
    dropped = toy().count().run(CLICKS).dropped()
    assert dropped["missing_grace_ms"].tolist() == [49_000]  # 100 s - 30 s - 10 s - 11 s
    assert dropped["enough_grace_ms"].tolist() == [59_000]
    assert len(toy().with_windows(grace_ms=59_000).count().run(CLICKS).dropped()) == 0
    assert len(toy().with_windows(grace_ms=58_999).count().run(CLICKS).dropped()) == 1
    assert "missing_grace_ms" not in toy().count().run(CLICKS).dropped(missing_grace=False)


def test_the_most_eventful_key() -> None:
    assert toy().count().run(CLICKS).most_eventful_key() == "bob"
    with pytest.raises(UnknownRecord, match="the run has no key"):
        toy().count().run(CLICKS.head(0)).most_eventful_key()


def test_of_keys_with_one_window_each_the_most_eventful_has_most_records() -> None:
    views = pd.DataFrame({"user": ["ada", "bob", "bob", "eve"], "at": pd.to_datetime([0, 1, 2, 3], unit="s", utc=True)})
    plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(inactivity_gap="1m", grace="0s"))
    assert plan.count().run(views).most_eventful_key() == "bob"


def test_a_count_under_a_name_is_answered_with_the_call_for_it() -> None:
    with pytest.raises(InvalidArgument, match=re.escape("named: plan.aggregate(n=sk.count())")):
        toy().count("visits")  # type: ignore[call-arg]


def test_no_records() -> None:
    run = toy().count().run(CLICKS.head(0))
    assert (len(run.table()), len(run.changelog()), len(run.dropped())) == (0, 0, 0)
    assert repr(run).startswith("Run: 0 records in 0 sessions (0 closed, 0 open) · 0 merges · 0 dropped")
    assert run.trace.counts() == {}
    run.trace.check()


def test_state_goes_from_run_to_run() -> None:
    whole = toy(offset="o").count().run(CLICKS.assign(o=np.arange(6)))
    with sk.open_store("memory", "clicks-store") as store:
        plan = toy(offset="o").count()
        first = plan.run(CLICKS.assign(o=np.arange(6)).head(3), store=store)
        second = plan.run(CLICKS.assign(o=np.arange(6)).tail(3), store=store)
        logs = pd.concat([first.changelog(), second.changelog()], ignore_index=True)
        assert logs.equals(whole.changelog())
        assert "was loaded from the store" in plan.run(
            CLICKS.assign(o=np.arange(6, 12)).tail(1).assign(at=1), store=store
        ).explain(offset=11)


# ---- a plan and its records, in the calls that take both

CALLS = {
    "sweep": lambda *given: sk.sweep(*given, grace=["0s", "1min"]),
    "suggest_gap": sk.suggest_gap,
    "suggest_grace": sk.suggest_grace,
    "audit": sk.audit,
    "tune": sk.tune,
}


@pytest.mark.parametrize("name", CALLS)
def test_plan_and_data_are_told_apart_in_any_order(name: str) -> None:
    plan, call = toy().count(), CALLS[name]
    # a widget has a class of its own, by the name of its board
    assert type(call(CLICKS, plan)).__qualname__ == type(call(plan, CLICKS)).__qualname__
    if name != "tune":
        assert repr(call(CLICKS, plan)) == repr(call(plan, CLICKS))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_plan_is_refused_with_the_right_call(name: str) -> None:
    for two, got in (((CLICKS, CLICKS), "DataFrame and DataFrame"), ((toy(), toy()), "Plan and Plan")):
        with pytest.raises(
            InvalidArgument, match=rf"^sk\.{name} takes a plan and its records; got {got}; sk\.{name}\(plan, data\)"
        ):
            CALLS[name](*two)


# ---- the start of a window, as a moment

NIGHT = pd.DataFrame(
    {"user": "ada", "at": pd.to_datetime([f"2024-07-02 00:10:{second}" for second in ("00", "40", "20")])}
)
MIDNIGHT_MS = 1_719_871_800_000


@pytest.mark.parametrize("start", [
    "2024-07-02 00:10", "2024-07-01T22:10Z", pd.Timestamp("2024-07-02 00:10"),
    pd.Timestamp("2024-07-02 00:10", tz="Europe/Berlin"), np.datetime64("2024-07-02T00:10"), MIDNIGHT_MS,
])  # fmt: skip
def test_a_window_is_named_by_the_moment_at_which_it_starts(start: Any) -> None:
    """In the zone of the plan, or in that of the column."""
    local = sk.group_by_key("user", timestamp="at", timezone="Europe/Berlin").windowed_by(WINDOWS).count()
    aware = sk.group_by_key("user", timestamp="at").windowed_by(WINDOWS).count()
    for run in (local.run(NIGHT), aware.run(NIGHT.assign(at=NIGHT["at"].dt.tz_localize("Europe/Berlin")))):
        assert run.timezone == "Europe/Berlin"
        expected = repr(run.explain(key="ada", window_start=MIDNIGHT_MS))
        assert repr(run.explain(key="ada", window_start=start)) == expected
        assert repr(run.lineage("ada", start)) == repr(run.lineage("ada", window_start=MIDNIGHT_MS))
        drawn = [run.lanes(**span).to_json() for span in ({"start": start}, {"start": MIDNIGHT_MS})]
        assert drawn[0] == drawn[1]


def test_records_without_a_zone_are_told_in_utc() -> None:
    run = toy().count().run(CLICKS)
    assert run.timezone == "UTC"
    assert repr(run.explain(key="ada", window_start="1970-01-01")) == repr(run.explain(key="ada", window_start=0))
