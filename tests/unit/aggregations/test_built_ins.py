"""Aggregations as a user writes them: their code, their columns, what is refused; reduce and functions of one's own."""

import functools
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import AggregationFailed, InvalidArgument
from tests.deployments import run_by

API: Any = sk  # for arguments that a type checker would refuse
WINDOWS = sk.SessionWindows(inactivity_gap_ms=3, grace_ms=100)


def plan() -> sk.Plan:
    return sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(WINDOWS)


def noted(seen: list[Any], value: Any, result: Any = 0) -> Any:
    """`result`, with `value` kept in `seen`."""
    seen.append(value)
    return result


def records(values: list[Any], times: list[int] | None = None, **more: list[Any]) -> pd.DataFrame:
    times = list(range(len(values))) if times is None else times
    return pd.DataFrame({"user": ["ada"] * len(values), "at": times, "v": pd.Series(values, dtype=object), **more})


@pytest.mark.parametrize(("aggregation", "code", "columns"), [
    (sk.count(), "count()", ()), (sk.sum("amount"), "sum('amount')", ("amount",)),
    (sk.mean('it"s'), "mean('it\"s')", ('it"s',)), (sk.reduce(max, "v"), "reduce(max, 'v')", ("v",)),
    (sk.reduce(max, ["v", "w"]), "reduce(max, ['v', 'w'])", ("v", "w")),
    (sk.reduce(lambda a, b: a, ("v",)), "reduce(<lambda>, ('v',))", ("v",)),
    (sk.reduce(functools.partial(max), "v"), "reduce(partial, 'v')", ("v",)),
    (sk.aggregation(initializer=str, aggregator=max, merger=max),
     "aggregation(initializer=str, aggregator=max, merger=max, value=())", ()),
])  # fmt: skip
def test_code_and_columns(aggregation: Any, code: str, columns: tuple[str, ...]) -> None:
    assert (repr(aggregation), aggregation.columns) == (code, columns)


@pytest.mark.parametrize(("call", "telling"), [
    (lambda: API.sum(5), 'an aggregation takes names of columns; got 5; text, such as sk.sum("amount")'),
    (lambda: API.first(None), "an aggregation takes names of columns; got None"),
    (lambda: API.reduce(max, 5), "an aggregation takes names of columns; got 5"),
    (lambda: API.reduce(max, ["v", 5]), "an aggregation takes names of columns; got 5"),
    (lambda: API.reduce(max, ()), "reduce needs a value; got (); the column whose values are combined"),
    (lambda: API.reduce("max", "v"), "function must be a function; got 'max'; define it with def, or pass a lambda"),
    (lambda: API.aggregation(initializer=0, aggregator=max, merger=max), "initializer must be a function; got 0"),
    (lambda: API.aggregation(initializer=int, aggregator=None, merger=max), "aggregator must be a function; got None"),
    (lambda: API.aggregation(initializer=int, aggregator=max, merger=[]), "merger must be a function; got []"),
])  # fmt: skip
def test_refused(call: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert telling in str(caught.value)


def test_reduce_takes_the_first_value_as_it_is() -> None:
    calls = []

    def join(older: str, newer: str) -> str:
        calls.append((older, newer))
        return older + newer

    run = plan().reduce(join, "v").run(records(["a", "b", "c"]))
    assert run.table()["reduce"].tolist() == ["abc"]
    assert calls == [("a", "b"), ("ab", "c")]


def test_reduce_of_two_sessions_is_older_then_newer_then_the_value() -> None:
    run = plan().reduce(lambda older, newer: f"({older}{newer})", "v").run(records(["n", "o", "b"], [6, 0, 3]))
    assert run.table()["reduce"].tolist() == ["((on)b)"]


def test_reduce_starts_anew_after_a_null() -> None:
    run = plan().reduce(lambda older, newer: None if newer == "clear" else older + newer, "v")
    assert run.run(records(["a", "clear", "b"])).table()["reduce"].tolist() == ["b"]
    seen: list[Any] = []
    plan().reduce(lambda older, newer: noted(seen, (older, newer), "x"), "v").run(records([None, "a", None, "b"]))
    assert seen == [("a", None), ("x", "b")]


def test_reduce_of_several_columns_gets_dicts() -> None:
    def cheaper(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return other if other["price"] < one["price"] else one

    run = plan().reduce(cheaper, ["v", "price"]).run(records(["a", "b", "c"], price=[3, 1, 2]))
    assert run.table()["reduce"].tolist() == [{"v": "b", "price": 1}]


def test_an_initializer_that_is_not_neutral_shows_once_for_every_touch() -> None:
    """As in Kafka: initializer(), then merger(key, aggregate, found) for each session met, then the aggregator."""
    run = plan().aggregate(
        initializer=lambda: "i",
        aggregator=lambda key, value, aggregate: f"{aggregate}{value}",
        merger=lambda key, older, newer: f"({older}+{newer})",
        value="v",
    )
    assert run.run(records(["a"])).table()["aggregate"].tolist() == ["ia"]
    assert run.run(records(["a", "b"])).table()["aggregate"].tolist() == ["(i+ia)b"]
    assert run.run(records(["n", "o", "b"], [6, 0, 3])).table()["aggregate"].tolist() == ["((i+io)+in)b"]


def test_functions_get_the_key() -> None:
    keys: list[Any] = []
    plan().aggregate(
        initializer=int,
        aggregator=lambda key, value, aggregate: noted(keys, key),
        merger=lambda key, a, b: noted(keys, key),
    ).run(records([1, 2]))
    assert keys == ["ada"] * 3


def test_without_value_a_function_gets_none() -> None:
    seen: list[Any] = []
    plan().aggregate(initializer=int, aggregator=lambda k, v, a: noted(seen, v), merger=lambda k, a, b: 0).run(
        records([1, 2])
    )
    assert seen == [None, None]


@pytest.mark.parametrize(
    "values", [[{1}, {2}, {1, 3}], [(1, "a"), (2,), ()], [[1], [2, 3], []], [{"a": 1}, {"b": 2}, {}]]
)
def test_objects_are_handed_over_as_they_are(values: list[Any]) -> None:
    seen: list[Any] = []
    run = plan().aggregate(
        initializer=list, aggregator=lambda k, v, a: [*a, v], merger=lambda k, a, b: [*a, *b], value="v"
    )
    assert run.run(records(values)).table()["aggregate"].tolist() == [values]
    plan().aggregate(
        initializer=int, aggregator=lambda k, v, a: noted(seen, v), merger=lambda k, a, b: 0, value=["v", "at"]
    ).run(records(values))
    assert seen == [{"v": value, "at": at} for at, value in enumerate(values)]


@pytest.mark.parametrize(("aggregation", "telling"), [
    (sk.reduce(lambda a, b: a / b, "v"),
     "reduce(<lambda>, 'v') failed at record of key 'ada' at partition 0, offset 1, time 1"),
    (sk.aggregation(initializer=dict, aggregator=lambda k, v, a: a["x"], merger=max),
     "at partition 0, offset 0, time 0; got KeyError: 'x'; nothing of this run was committed"),
    (sk.aggregation(initializer=lambda: 1 / 0, aggregator=max, merger=max),
     "got ZeroDivisionError: division by zero; nothing of this run was committed"),
    (sk.aggregation(initializer=int, aggregator=lambda k, v, a: v, merger=lambda k, a, b: a.nope, value="v"),
     "failed at record of key 'ada' at partition 0, offset 1, time 1; got AttributeError"),
])  # fmt: skip
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_a_function_that_raises(aggregation: Any, telling: str, rules: str) -> None:
    with pytest.raises(AggregationFailed) as caught:
        run_by(plan().aggregate(result=aggregation), records([1, 0, 2]), rules=rules)
    assert telling in str(caught.value)
    assert isinstance(caught.value.__cause__, Exception)
