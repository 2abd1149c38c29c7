"""Names that people guess are answered with the one that exists, or with why there is none."""

import copy
import sys
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base import guesses
from sessionkit.errors import UnknownName

CLICKS = pd.DataFrame({"user": ["ada", "bob"], "at": [0, 10_000], "amount": [1, 2]})
PLAN = (
    sk.group_by_key("user", timestamp="at", unit="ms")
    .windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))
    .count()
)
RUN = PLAN.run(CLICKS)
OWNERS: dict[str, tuple[Any, Any]] = {
    "run": (RUN, guesses.known()["meant"]["run"]),
    "plan": (PLAN, guesses.known()["meant"]["plan"]),
    "sk": (sk, guesses.known()["meant"]["sk"]),
}


@pytest.mark.parametrize(("owner", "name", "meant"), [
    ("run", "plot", "run.plane: The history of one key"), ("run", "to_pandas", "run.table: One row per window"),
    ("run", "tabel", "run.table: One row per window"),
    ("run", "late", "run.dropped: What was dropped, with the reason"),
    ("plan", "agg", "plan.aggregate: The plan with named aggregations"),
    ("plan", "windowd_by", "plan.windowed_by: The plan with these windows."),
    ("sk", "unique", "sk.collect: All values as a list"),
    ("sk", "count_if", 'sk.sum("won") of a column of truths: '), ("sk", "mode", "sk.top: The `n` most"),
    ("plan", "with_source", 'a plan of other columns begins anew, with sk.group_by_key("user", timestamp="at")'),
    ("plan", "count_distinct", 'plan.aggregate(count_distinct=sk.count_distinct("amount"))'),
    ("plan", "plot", "a run has pictures and explanations: run.plane()"), ("plan", "filter", "leave rows out before"),
    ("plan", "map_values", "change columns before"), ("plan", "groupby", "a plan of other columns begins anew"),
    ("run", "at", "results as of a moment are those of the records that had come by then"),
    ("run", "shape", "run.table: "), ("run", "html", "run.write_html: "), ("sk", "list", "sk.collect: "),
    ("sk", "argmax", "sk.latest: "), ("sk", "p95", "sk.quantile: "),
    ("plan", "max", 'plan.aggregate(max=sk.max("amount"))'),
    ("sk", "zzzzzz", "sk.aggregation(…) and sk.reduce(…) take functions of your own, and dir(sk) lists the names"),
    ("sk", "distinct", "sk.count_distinct: How many different values that are not null"),
    ("sk", "compare", "run.compare(other) compares two runs"),
    ("sk", "DayWindows", 'sk.CalendarWindows("day", timezone="Europe/Berlin", grace="1h")'),
    ("sk", "TumblingWindows", "sk.TimeWindows: "), ("sk", "sesionize", "sk.sessionize: "),
    ("sk", "UnlimitedWindows", "a window that never closes is a plain group by, and sessionkit has none"),
    ("sk", "read_csv", 'plan.run("clicks.csv") reads files itself'), ("run", "zzzzzz", "dir(run) lists the names"),
])  # fmt: skip
def test_a_name_that_does_not_exist_names_the_one_that_is_meant(owner: str, name: str, meant: str) -> None:
    """Python's own AttributeError before, which names nothing."""
    with pytest.raises(UnknownName) as raised:
        getattr(OWNERS[owner][0], name)
    assert str(raised.value).startswith(f"{owner} has no such name; got {name}; {meant}")
    assert isinstance(raised.value, AttributeError)


def test_a_report_is_a_command_or_a_page() -> None:
    """`sk.report` proposed `sk.Export`. (Once a module of that name is loaded, Python gives that.)"""
    said = str(guesses.unknown_name(sk, "sk", "report"))
    assert 'got report; run.write_html("clicks.html") writes a page, the command "sessionkit report clicks.csv"' in said


@pytest.mark.parametrize("owner", OWNERS)
def test_what_is_named_exists_and_what_is_guessed_does_not(owner: str) -> None:
    offered, guessed = dir(OWNERS[owner][0]), OWNERS[owner][1]
    assert set(guessed) <= set(offered)
    assert not {name for names in guessed.values() for name in names.split()} & set(offered)
    assert not set(" ".join(guesses.known()["without_counterpart"]).split()) & set(dir(sk))


def test_what_asks_by_hidden_names_is_answered_as_python_does() -> None:
    assert not hasattr(RUN, "_repr_png_") and not hasattr(PLAN, "__array__") and not hasattr(sk, "__wrapped__")
    with pytest.raises(AttributeError, match="has no attribute '_ipython_display_'") as raised:
        RUN._ipython_display_()
    assert not isinstance(raised.value, UnknownName)
    assert copy.deepcopy(PLAN) == PLAN
    assert sys.modules["sessionkit"] is sk
