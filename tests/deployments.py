"""Deployments as tests name them: what is not named is as simple as it can be, or in an audit as Kafka has it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa

import sessionkit as sk
from sessionkit.deployed.compiled import run as compiled_run
from sessionkit.records.batch import read_records
from sessionkit.stores.registry import kind_of
from sessionkit.stores.sizes import RECORD_BYTES

CLOCK = "wall clock"  # the column
AN_ENTRY = 8 + 8 + 8 + 1 + RECORD_BYTES  # of a cache: three references, a flag, and where its record was
A_WINDOW = AN_ENTRY + (8 + 1 + 8 + 4) + (8 + 8)  # key: segment, "a", start, number; value: timestamp, count
A_SESSION = AN_ENTRY + (8 + 1 + 8 + 8) + 8  # key: segment, "a", end, start; value: count


@contextmanager
def processor_only() -> Iterator[None]:
    """Inside, the processor plays every deployment, also those that kernels can play."""
    with patch.object(compiled_run, "runs_compiled", lambda *_: False):
        yield


@contextmanager
def lives_by_kernels() -> Iterator[list[bool]]:
    """Inside, a list that has one more entry for each life that kernels have played."""
    played: list[bool] = []
    original = compiled_run.run_compiled

    def noted(*asked: Any) -> Any:
        done = original(*asked)
        played.extend([True] * (done is not None))
        return done

    with patch.object(compiled_run, "run_compiled", noted):
        yield played


def run_deployed(plan: sk.Plan, data: Any, *, store: Any = None, wall_clock: Any = None, **told: Any) -> sk.Run:
    """The plan in a plain deployment but for what is told, by a clock of times or a function if one is given."""
    more = {name: told.pop(name) for name in ("keys", "trace", "frame") if name in told}
    how = sk.Deployment.plain(store="memory" if store is None else kind_of(store), **told)
    if wall_clock is None:
        run: sk.Run = plan.run(data, store=store, deployment=how, **more)
        return run
    return plan._run_deployed(read_records(data, plan.source, plan._value_columns()), how, store, clock=wall_clock)


def run_by(plan: sk.Plan, data: Any, *, rules: str = "sessionkit", **told: Any) -> sk.Run:
    """The plan in a plain deployment, by the rules of "kafka", or without one."""
    if rules == "kafka":
        return run_deployed(plan, data, **told)
    run: sk.Run = plan.run(data, **told)
    return run


def audit_deployed(plan: sk.Plan, data: Any, *, wall_clock: Any = None, **told: Any) -> sk.Audit:
    """The audit of a deployment with these settings, by a clock of times or a function if one is given."""
    if wall_clock is None:
        return sk.audit(plan, data, sk.Deployment(**told))
    times = [wall_clock() for _ in range(len(data))] if callable(wall_clock) else list(wall_clock)
    is_arrow = isinstance(data, pa.Table)
    timed = data.append_column(CLOCK, pa.array(times)) if is_arrow else pd.DataFrame(data).assign(**{CLOCK: times})
    return sk.audit(plan, timed, sk.Deployment(**told, clock=CLOCK))
