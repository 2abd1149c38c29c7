"""What the tests of tumbling, hopping and sliding windows share: records, plans over them, runs, changelogs."""

import ast
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from tests import kinds
from tests.deployments import run_by
from tests.kinds import in_ms, plan_of

Row = tuple[str | None, int | None, int | None]  # key, time, value
both_rules = pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
FOR_EVER = 10**9


def _forgets_on_zero(key: str, value: int, aggregate: int) -> int | None:
    return None if value == 0 else (aggregate or 0) + value


FORGETS_ON_ZERO = sk.aggregation(
    initializer=int, aggregator=_forgets_on_zero, merger=lambda key, a, b: a + b, value="v"
)


def table_of(rows: list[Row]) -> pa.Table:
    return kinds.table_of(rows, key=pa.string(), time=pa.int64(), v=pa.int64())


def plan_over(windows: Any, emit: str = "on_window_update", **named: Any) -> sk.Plan:
    """A plan of a count, or of these results."""
    return plan_of(windows, emit, named or {"n": sk.count()}, timestamp="time", on_bad_time="drop")


def run_of(
    windows: Any, rows: list[Row], emit: str = "on_window_update", rules: str = "sessionkit", **named: Any
) -> sk.Run:
    retention = in_ms(FOR_EVER) if rules == "kafka" else None  # long enough for the store to forget nothing
    run = run_by(plan_over(windows, emit, **named), table_of(rows), rules=rules, retention=retention)
    run.trace.check()
    return run


def windows_in(plan: sk.Plan) -> Any:
    """The windows that the code of a plan makes, read without running it: one call with plain literals."""
    kind = type(plan.windows).__name__
    calls = [node for node in ast.walk(ast.parse(repr(plan))) if isinstance(node, ast.Call)]
    call = next(call for call in calls if getattr(call.func, "attr", None) == kind)
    assert not call.args
    return getattr(sk, kind)(**{str(each.arg): ast.literal_eval(each.value) for each in call.keywords})
