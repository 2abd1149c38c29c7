"""Plans travel to other processes, as joblib, dask and multiprocessing send them: pickled."""

import pickle
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.aggregations import BUILT_INS
from tests.kinds import EACH_KIND
from tests.optional import nearly

RECORDS = pd.DataFrame({"key": ["ada", "bob", "ada", "ada"], "at": [0, 1, 2, 900], "n": [3, 1, 2, 5]})
KEYED = sk.group_by_key("key", timestamp="at", unit="ms")


def longer(older: Any, newer: Any) -> Any:
    return max(older, newer)


def add(key: Any, value: Any, aggregate: int) -> int:
    return aggregate + value


def join(key: Any, older: int, newer: int) -> int:
    return older + newer


GIVEN: dict[str, tuple[Any, ...]] = {"count": (), "quantile": ("n", 0.9), "top": ("n", 2)}
NAMED: dict[str, sk.aggregations.Aggregation] = {
    **{name: make(*GIVEN.get(name, ("n",))) for name, make in BUILT_INS.items() if hasattr(sk, name)},
    **nearly("n"),
    "near": sk.quantile("n", 0.9, approx=True),
    "reduced": sk.reduce(longer, "n"),
    "own": sk.aggregation(initializer=int, aggregator=add, merger=join, value="n"),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_aggregation_comes_back(name: str) -> None:
    """A lambda of ours could not be pickled."""
    plan = KEYED.windowed_by(EACH_KIND["session"]).aggregate(result=NAMED[name])
    again = pickle.loads(pickle.dumps(plan))
    assert repr(again) == repr(plan)
    assert again.run(RECORDS).table().equals(plan.run(RECORDS).table())
    assert name == "reduced" or again == plan


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_plan_comes_back_whatever_its_windows(kind: str) -> None:
    plan = KEYED.windowed_by(EACH_KIND[kind]).aggregate(visits=sk.count(), total=sk.sum("n"))
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and hash(again) == hash(plan)
    assert again.run(RECORDS).table().equals(plan.run(RECORDS).table())
