"""Numbers that a window adds up, in compiled loops: what does not fit is refused by the record that is too much."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.aggregations import Part
from sessionkit.errors import InvalidArgument, NumberOverflow
from tests.kinds import EACH_KIND, plan_of

LARGEST = 2**63 - 1
VIEWS: dict[str, Callable[[sk.Run], Any]] = {
    "table": lambda run: run.table(),
    "updates": lambda run: run.changelog(),
    "finals": lambda run: run.changelog(),
}


def records(values: list[int], times: list[int] | None = None) -> pa.Table:
    """Of one key; all within one window, unless times are given."""
    return pa.table({"key": ["a"] * len(values), "at": times or list(range(len(values))), "v": values})


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", EACH_KIND)
@pytest.mark.parametrize("values", [[LARGEST, 0, 1], [-LARGEST - 1, 0, -1], [LARGEST - 1, 1, 1]])
def test_the_record_that_is_too_much_is_named(kind: str, view: str, values: list[int]) -> None:
    strategy = "on_window_update" if view == "updates" else "on_window_close"
    plan = plan_of(EACH_KIND[kind], strategy, {"total": sk.sum("v")})
    with pytest.raises(NumberOverflow, match="an integer sum does not fit into 64 bits; got record 2; cast"):
        VIEWS[view](plan.run(records(values)))


@pytest.mark.parametrize("kind", EACH_KIND)
def test_it_is_named_by_its_place_in_the_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are folded in chunks: the place is that in the run, not that in the chunk."""
    monkeypatch.setattr("sessionkit.windows.feed.CHUNK", 2)
    plan = plan_of(EACH_KIND[kind], "on_window_close", {"total": sk.sum("v")})
    with pytest.raises(NumberOverflow, match="got record 5; cast"):
        plan.run(records([LARGEST, 0, 0, 0, 0, 1], times=[0] * 6)).table()


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_window_that_a_store_brought_is_added_to(kind: str) -> None:
    plan = plan_of(EACH_KIND[kind], "on_window_update", {"total": sk.sum("v")})
    with sk.open_store("memory", "sums", of=EACH_KIND[kind].holds) as store:
        plan.run(records([LARGEST - 5, 2]), store=store)
        run = plan.run(records([3], times=[2]), store=store)
        assert run.table()["total"].to_pylist()[0] == LARGEST
        with pytest.raises(NumberOverflow):
            plan.run(records([1], times=[3]), store=store).changelog()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_the_first_record_can_be_too_much_for_a_window_that_a_store_brought(kind: str, view: str) -> None:
    strategy = "on_window_update" if view == "updates" else "on_window_close"
    plan = plan_of(EACH_KIND[kind], strategy, {"total": sk.sum("v")})
    with sk.open_store("memory", "sums", of=EACH_KIND[kind].holds) as store:
        plan.run(records([LARGEST]), store=store)
        with pytest.raises(NumberOverflow, match="got record 0; cast"):
            VIEWS[view](plan.run(records([1], times=[1]), store=store))


def test_a_part_names_a_loop_that_there_is() -> None:
    with pytest.raises(InvalidArgument, match=r"the loop of a part .*'add_up'"):
        Part("total", "add_up")  # type: ignore[arg-type]
