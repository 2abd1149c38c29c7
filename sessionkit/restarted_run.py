"""`RestartedRun`: what an application of Kafka Streams did that was stopped and started again, life by life."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.base.calls import answers_calls, not_offered
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.deployed.deployment import Deployment
from sessionkit.deployed.processor_run import Deployed, memory_store
from sessionkit.deployed.restarts import Restart, Restarts, check_processing, checked_restarts
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.run import Run
from sessionkit.stores.contract import PlanStore
from sessionkit.stores.locking import alone_with
from sessionkit.views.tables import frame_of
from sessionkit.views.words import drops_in_words

if TYPE_CHECKING:
    from sessionkit.plan import Plan

LIFE = "life"


@answers_calls("run", elsewhere=(Run, "run.lives[-1]"))
@not_offered("restarts")
@dataclass(frozen=True, repr=False)
class RestartedRun:
    """What `plan.run(…, rules="kafka", restarts=[17, (40, "changelog"), (90, "killed")])` gives: a `Run` for each life.

    After each of these rows the application is stopped, and started again. No start knows the stream time of the life
    before, so late records count until newer ones have moved it on. No final result that was sent before the last
    commit is sent again.

    - A row alone, or with "disk": the store is found as it was. On disk it has not observed any time yet, so nothing
      expires until the next put. A store in memory is always restored from its changelog.
    - "changelog": the disk is lost, or another machine takes over. The store is restored from its changelog: what has
      expired by the largest time that was ever put is not there.
    - "killed": the application crashes right after the record, with `processing="at_least_once"`. Its cache is lost,
      and the records since the last commit (see `commit_every`) are read again and count again. All that the store and
      the task had written is taken to have reached the broker; of a real crash the last of it may be missing.

    What suppress holds back waits in the next life, too, after a kill as it was at the last commit; its clock starts
    anew.

    What a broker deletes from a changelog by its wall clock, and transactions ("exactly_once_v2"), are not modelled.

    Source:
        StreamTask, ProcessorStateManager; AbstractRocksDBSegmentedBytesStore, InMemorySessionStore; KIP-1035.
    Example:
        >>> run = plan.run(monday, rules="kafka", restarts=[1])
        >>> run
        RestartedRun: 3 records in 2 lives · started again after row 1 (disk) · 0 dropped
        >>> [len(life.changelog()) for life in run.lives], run.summary() in repr(run)
        ([3, 1], True)
    """

    lives: tuple[Run, ...]
    restarts: tuple[Restart, ...]

    def changelog(self) -> Any:
        """What all lives sent downstream, in order, as `Run.changelog` shows it, with the number of the life, from 0.

        After a kill it has the results of the records that were read again twice.

        Raises:
            InvalidArgument: a key or a result is called "life".
        Example:
            >>> plan.run(monday, rules="kafka", restarts=[1]).changelog()["life"].tolist()
            [0, 0, 0, 1]
        """
        batch = self.lives[0].outcome.batch
        parts = [dict(life.changelog_columns) for life in self.lives]
        names = [*parts[0], *(name for name, _ in (batch.form.keys if batch.form is not None else ()))]
        if LIFE in names:
            raise InvalidArgument(problem("a column would appear twice beside the lives", f"{LIFE!r}", "another name"))
        lengths = [len(part["offset"]) for part in parts]
        columns = {name: _joined([part[name] for part in parts]) for name in parts[0]}
        return frame_of({**columns, LIFE: np.repeat(np.arange(len(parts)), lengths)}, batch)

    def metrics(self) -> dict[str, int]:
        """The counters of `Run.metrics` over all lives; Kafka's own begin at 0 with each life.

        What a life holds of windows is not added up; `run.lives[-1].metrics()` has it.

        Example:
            >>> plan.run(monday, rules="kafka", restarts=[1]).metrics()["process-total"]
            3
        """
        each = [life.metrics() for life in self.lives]
        return {name: sum(one[name] for one in each) for name in each[0] if not name.startswith("windows")}

    def summary(self) -> str:
        """The run in one line of numbers."""
        counts = self.metrics()
        when = ", ".join(f"row {restart.row:,} ({restart.kind})" for restart in self.restarts)
        return (
            f"{plural(counts['process-total'], 'record')} in {len(self.lives):,} lives · started again after {when} · "
            f"{drops_in_words(counts)}"
        )

    def __repr__(self) -> str:
        return f"RestartedRun: {self.summary()}"

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}; <code>.lives</code> has a run for each.</p>")


def _joined(columns: list[Any]) -> Any:
    """One column after another; those of Python objects stay such."""
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return pa.concat_arrays(arrays)


def run_lives(
    plan: Plan, batch: RecordBatch, store: PlanStore | None, how: Deployment, told: Restarts | None, processing: str
) -> RestartedRun | Run:
    """Runs the plan under Kafka's rules, life by life; what a life has committed stays if a later one fails.

    A life that is killed commits nothing at its end: the next one begins behind the last record that was committed.

    Raises:
        NotBuilt: the processing guarantee is not modelled.
        InvalidArgument: the restarts are not rows, rising, or a used store is to be rebuilt from its changelog.
    """
    check_processing(processing)
    restarts = () if told is None else checked_restarts(told, len(batch))
    if not restarts:
        return plan.run_deployed(batch, store, how)
    _check(store, restarts)
    windows = plan.complete_windows
    state = memory_store(windows, how.retention_ms) if store is None else store
    lives: list[Run] = []
    first, buffers = 0, how.buffers
    with alone_with(store):
        for restart in [*restarts, None]:
            stop = len(batch) if restart is None else restart.row + 1
            kind = None if restart is None else restart.kind
            part = dataclasses.replace(how.part(first, stop), restart=kind, buffers=buffers)
            run = plan.run_deployed(batch.slice(first, stop), state, part)
            lives.append(run)
            done = _deployed(run)
            first, buffers = first + done.committed_count, done.buffers_left
            if kind is not None:
                state.restart_task(kind)
    return RestartedRun(tuple(lives), restarts)


def _deployed(run: Run) -> Deployed:
    assert run.deployed is not None, "a run under Kafka's rules has one"
    return run.deployed


def _check(store: PlanStore | None, restarts: tuple[Restart, ...]) -> None:
    if store is None or all(restart.kind != "changelog" for restart in restarts):
        return
    if len(store):
        want = 'an empty store, or restarts of the kind "disk"'
        raise InvalidArgument(problem("what a changelog holds is known from its beginning only", shorten(store), want))
