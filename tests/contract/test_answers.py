"""Whatever a kind of window is, every public call gives an answer over it, or an error of sessionkit's own."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.errors import SessionkitError
from sessionkit.views.over_time.card_figure import card_figure
from sessionkit.windows import WindowKind
from tests.contract.kinds import EXAMPLES, KINDS, plan_over, records, rows_of
from tests.kinds import plan_of

Calls = dict[str, Callable[[], Any]]
# What is asked of an answer in its turn.
ASKED = (
    "table", "records", "words", "figure", "heat_map", "pareto", "counts", "differences", "_repr_html_", "__repr__",
)  # fmt: skip
# Of a run or a plan, but not here: what these tests do anyway, and Spark's.
LEFT_OUT = {"Plan": {"aggregate", "reduce", "stream"}, "Run": set[str]()}


def calls_of_run(plan: sk.Plan, table: pa.Table, folder: Path) -> Calls:
    """Each method of a run, by its name."""
    run, updates = plan.run(table), plan.emit("on_window_update")
    trace, first = run.trace, rows_of(run.table())[0]
    of_each = {name: np.flatnonzero(trace.decision == code) for name, code in NAMED.items()}
    explained = {
        name: partial(run.explain, **place(trace, int(rows[0]))) for name, rows in of_each.items() if len(rows)
    }
    calls: Calls = {f"explain {name}": call for name, call in explained.items()}
    times = {"start": "2013-10-30", "end": "2013-11-02"}
    labelled = plan_of(plan._complete_windows, partition="partition", offset="offset", label="value")
    return calls | {
        "explain a window": lambda: run.explain(key=first["key"], window_start=first["window_start_ms"], partition=0),
        "table": run.table, "changelog": run.changelog,
        "changelog with old values": lambda: updates.run(table).changelog(old_values=True),
        "suppress_buffer": lambda: updates.suppress("until_window_closes").run(table).suppress_buffer(),
        "emissions": lambda: run.emissions("ada", partition=0), "dropped": run.dropped,
        "dropped without grace": lambda: run.dropped(missing_grace=False), "losses": run.losses,
        "assign": lambda: run.assign(table), "merges": run.merges, "metrics": run.metrics,
        "kafka_metrics": lambda: run.kafka_metrics(level="debug"),
        "lineage": lambda: run.lineage(first["key"], first["window_start_ms"], partition=0), "latency": run.latency,
        "open_windows": run.open_windows, "compare": lambda: run.compare(longer(plan).run(table)),
        "summary": run.summary, "plane": lambda: run.plane("ada", partition=0).to_json(),
        "plane with its arrivals": lambda: run.plane("ada", partition=0, playback=True).to_json(),
        "lanes": lambda: run.lanes().to_json(),
        "lanes of a part": lambda: run.lanes(most=2, sort="drops", **times).to_json(),
        "drop_calendar": run.drop_calendar, "clock": run.clock, "partition_times": run.partition_times,
        "write_html": lambda: run.write_html(folder / "page.html"),
        "write_png": lambda: card_figure(run, None, None).to_json(), "all_lanes": lambda: run._all_lanes,
        "most_eventful_key": run.most_eventful_key, "remarks": run.remarks, "late_remarks": lambda: run._late_remarks,
        "steps": lambda: labelled.run(table).steps("ada"),
        "shown": run._repr_html_, "trace": lambda: (trace.check(), trace.records(), trace.windows()),
    }  # fmt: skip


def calls_of_plan(plan: sk.Plan, table: pa.Table, folder: Path) -> Calls:
    """Each method of a plan, by its name."""
    holds = plan._complete_windows.holds

    def over_a_store() -> Any:
        with sk.open_store("rocksdb", "kept", of=holds, directory=folder, retention="9d") as store:
            plan.run(table[:100], store=store)
            return plan.run(table[100:], store=store)

    return {
        "run without its trace": lambda: plan.run(table, trace=False),
        "run of some keys": lambda: plan.run(table, keys=["ada"]),
        "run in a deployment": lambda: plan.run(table, deployment=sk.Deployment()).deployed.lives,
        "run over a store": over_a_store, "windowed_by": lambda: plan.windowed_by(plan._complete_windows),
        "with_windows": lambda: longer(plan), "emit": lambda: plan.emit("on_window_update"),
        "suppress": lambda: plan.emit("on_window_update").suppress("until_time_limit", "1h").run(table).table(),
        "count": lambda: plan.windowed_by(plan._complete_windows).count(), "code": plan.code, "to_java": plan.to_java,
        "to_ksql": plan.to_ksql, "to_flink_sql": plan.to_flink_sql, "to_spark": plan.to_spark,
        "shown": lambda: (repr(plan), str(plan)),
        "write": lambda: plan.write(table, table=folder / "table", dropped=folder / "dropped"),
        "write of its decisions": lambda: asked_of(plan.write(table, records=folder / "decisions").trace),
        "write of its changelog": lambda: plan.write(table, changelog=folder / "changelog", records=folder / "records"),
    }  # fmt: skip


def asked_of(trace: Any) -> Any:
    return trace.losses(1), trace.dropped(most=9), trace


def calls_of_module(plan: sk.Plan, table: pa.Table, folder: Path) -> Calls:
    """Audits, advice and boards."""
    updates, lengths = plan.emit("on_window_update"), plan._complete_windows.arguments()[1]
    swept = {name: [ms, 2 * ms] for name, ms in lengths.items() if name.endswith("_ms")}

    def tuned() -> Any:
        board = sk.tune(plan, table)
        board.set(**{name: 2 * ms for name, (ms, _) in swept.items()})
        return board.run

    return {
        "audit": lambda: sk.audit(updates, table),
        "audit in memory": lambda: sk.audit(plan, table, sk.Deployment(store="memory", restarts=((100, "changelog"),))),
        "audit of suppress": lambda: sk.audit(updates.suppress("until_window_closes"), table).beside_emit_on_close(),
        "sweep": lambda: sk.sweep(plan, table, **swept),
        "suggest_gap": lambda: sk.suggest_gap(plan, table),
        "suggest_grace": lambda: sk.suggest_grace(plan, table),
        "tune": tuned,
        "play": lambda: sk.play(plan.run(table), "ada", partition=0),
        "browse": lambda: [sk.browse(plan.run(table), what) for what in ("table", "changelog", "dropped")],
    }


KAFKAS = {"run in a deployment", "audit", "audit in memory", "audit of suppress"}
EXPORTS = {"to_java", "to_ksql", "to_flink_sql", "to_spark"}
# What is refused of kinds that Kafka has not: what is Kafka's, what is written as code of others, pages of examples.
REFUSED = {
    "shifts": {*KAFKAS, *EXPORTS, "write_html"},
    "days": {*KAFKAS, *EXPORTS, "write_html", "merges", "lineage"},
    "calendar": {*KAFKAS, *EXPORTS, "merges", "lineage"},
    "tumbling moved": {*KAFKAS, "to_java", "to_ksql", "merges", "lineage"},
    "hopping moved": {*KAFKAS, "to_java", "to_ksql", "to_flink_sql", "merges", "lineage", "assign"},
}
NAMED = {"opened": OPENED, "added": ADDED, "merged": MERGED, "late": LATE}


def place(trace: Any, row: int) -> dict[str, Any]:
    """How a record is asked for."""
    batch = trace.batch
    return {"offset": int(batch.offset[row]), "partition": int(batch.partitions[batch.partition[row]])}


def longer(plan: sk.Plan) -> sk.Plan:
    """The plan with an hour more grace, or retention where there is none."""
    _, lengths = plan._complete_windows.arguments()
    name = "grace_ms" if "grace_ms" in lengths else "retention_ms"
    return plan.with_windows(**{name: lengths[name] + 3_600_000})


def answered(call: Callable[[], Any]) -> bool:
    """Calls, and asks the answer for all it can show; whether it was an answer, and not sessionkit's error."""
    try:
        answer = call()
    except SessionkitError:
        return False
    for one in answer if isinstance(answer, list | tuple) else [answer]:
        for name in ASKED:
            ask = getattr(one, name, None)
            if inspect.ismethod(ask) and type(one).__module__.startswith("sessionkit"):
                answered(ask)
    return True


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("calls_of", [calls_of_run, calls_of_plan, calls_of_module])
def test_each_call_is_answered(
    windows: WindowKind, calls_of: Callable[[sk.Plan, pa.Table, Path], Calls], tmp_path: Path
) -> None:
    foreign = {}
    for name, call in calls_of(plan_over(windows), records(1), tmp_path).items():
        try:
            answered(call)
        except Exception as error:
            foreign[name] = f"{type(error).__name__}: {error}"
    assert foreign == {}


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_known(name: str, tmp_path: Path) -> None:
    calls: Calls = {}
    for calls_of in (calls_of_run, calls_of_plan, calls_of_module):
        calls |= calls_of(plan_over(KINDS[name]), records(1), tmp_path)
    assert {called for called, call in calls.items() if not answered(call)} == REFUSED[name]


@pytest.mark.parametrize(("calls_of", "owner"), [(calls_of_run, sk.Run), (calls_of_plan, sk.Plan)])
def test_no_method_is_left_out(calls_of: Callable[..., Calls], owner: type, tmp_path: Path) -> None:
    calls = calls_of(plan_over(EXAMPLES["shifts"]), records(1), tmp_path)
    methods = {name for name in dir(owner) if name[0] != "_" and callable(getattr(owner, name))}
    assert methods - LEFT_OUT[owner.__name__] <= {name.split()[0] for name in calls}
