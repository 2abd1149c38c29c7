"""A source partition as an application of its own: what a deployment did with all its records, as rows of a view."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.audits.audit import Audit, audit
from sessionkit.base.result_columns import AS_STORED
from sessionkit.deployed.deployment import Deployment, checked_restarts
from sessionkit.deployed.lives import LIFE
from sessionkit.engine.commit import alive
from sessionkit.records.batch import read_records
from sessionkit.records.row_names import rows_by_place
from sessionkit.steps.job import Job, fit
from sessionkit.steps.partition_run import BATCH_RECORDS, partitions, view_of
from sessionkit.steps.views import columns_of

if TYPE_CHECKING:
    from sessionkit.plan import Plan
    from sessionkit.run import Run

KAFKA_METRICS = "kafka_metrics "  # and the level


def run_deployed(plan: Plan, how: Deployment, table: pa.Table, **shown: Any) -> Run[pa.Table]:
    """The run of the records of one partition; restarts behind its last record do not come about.

    `shown` is what the batch of the records is to say of how results are shown.
    """
    with rows_by_place(table, plan.source, plan.source.offset):
        batch = read_records(table, plan.source, plan._value_columns(how.clock)).replace(**shown)
    return plan._run_deployed(batch, _reached(how, len(batch)))


def audited(plan: Plan, how: Deployment, table: pa.Table) -> Audit[pa.Table]:
    """The audit of the records of one partition, of which `run_deployed` is the run."""
    with rows_by_place(table, plan.source, plan.source.offset):
        return audit(plan, table, _reached(how, len(table)))


def _reached(how: Deployment, count: int) -> Deployment:
    """The deployment with the restarts that come about in so many records."""
    return dataclasses.replace(how, restarts=tuple(each for each in checked_restarts(how.restarts) if each.row < count))


def deployed_rows(job: Job, plan: Plan, how: Deployment, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the job's view, of one partition after another, each of which the task holds."""
    for number, tables in partitions(job, batches):
        run = run_deployed(plan, how, pa.concat_tables(tables), form=AS_STORED)
        for columns in _columns(job, number, run):
            if columns is not None:
                yield from fit(columns, job.schema).to_batches(max_chunksize=BATCH_RECORDS)


def audit_rows(job: Job, plan: Plan, how: Deployment, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of one partition after another a row with what is "told" or "safe", or a row a window."""
    for number, tables in partitions(job, batches):
        found = audited(plan, how, pa.concat_tables(tables))
        if job.view == "windows":
            rows = fit(found._columns(np.arange(len(found._verdicts))), job.schema)
        else:
            row = told(number, found) if job.view == "told" else {"partition": number, **found._safe._asdict()}
            rows = pa.Table.from_pylist([row], job.schema)
        yield from rows.to_batches(max_chunksize=BATCH_RECORDS)


def told(number: int, found: Audit[pa.Table]) -> dict[str, Any]:
    """What the audit of a partition found with its retention."""
    return {"partition": number, "counts": found._counts, "is_sure": found._is_sure, "remarks": found._remarks}


def _columns(job: Job, number: int, run: Run[pa.Table]) -> Iterator[Mapping[str, Any] | None]:
    """The columns of the view, in parts."""
    if job.view == "changelog":
        sent = columns_of(run.changelog())
        only_life = {LIFE: np.zeros(len(sent["offset"]), np.int64)} if LIFE in job.schema.names else {}
        yield {**only_life, **sent}
    elif job.view == "metrics":
        counts = run.metrics()
        yield {"partition": np.full(len(counts), number), "name": [*counts], "count": [*counts.values()]}
    elif job.view.startswith(KAFKA_METRICS):
        level: Any = job.view.removeprefix(KAFKA_METRICS)
        yield columns_of(run.kafka_metrics(level=level))
    elif job.view == "waiting":
        yield columns_of(run.suppress_buffer().table())
    elif job.view == "most_waiting":
        buffer = run.suppress_buffer()
        most = [buffer.most_records, buffer.most_bytes]
        yield {"partition": [number] * 2, "name": ["most", "bytes"], "count": most}
    else:  # all windows leave in one step
        view, outcome = view_of(job), run._outcome
        yield view.step(outcome, np.flatnonzero(alive(outcome)))
        if type(view).finish is not type(view).step:
            yield view.finish(outcome, np.empty(0, np.intp))
