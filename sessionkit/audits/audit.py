"""What a Kafka Streams deployment of a plan would lose, send twice or keep too long, and which retention cures it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.audits.by_effects import ByEffects, tells_effects
from sessionkit.audits.by_kernels import ByKernels, kernels_know
from sessionkit.audits.noticing import ByProcessor, cache_in_effect, depends_on_retention
from sessionkit.audits.retentions import Losing, Path, Replayed, Safe, safe_retentions
from sessionkit.audits.settings import Settings, check_audited, settings_of
from sessionkit.audits.sides import Sides, Windows, no_windows, sent_by_all, windows_in, windows_of
from sessionkit.audits.suppressed import SuppressAudit
from sessionkit.audits.verdicts import (
    AS_IT_SHOULD,
    LOST,
    VERDICTS,
    WAITING,
    Compared,
    holders_of,
    verdicts_on,
    wrong_in,
    wrong_of,
)
from sessionkit.audits.words import AuditInWords
from sessionkit.base.arrays import Longs
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.decisions import LATE
from sessionkit.base.process import release_unused, without_collections
from sessionkit.base.progress import progress
from sessionkit.deployed.deployment import Deployment
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import InvalidArgument, problem
from sessionkit.plan import Plan, plan_and_data
from sessionkit.records.batch import RecordBatch, is_spark_frame, read_records
from sessionkit.records.frames import ArrowData, Frame, PandasData, PolarsFrame, SparkFrame
from sessionkit.run import Run
from sessionkit.stores.contract import Store
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views import tables
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from sessionkit.spark.views.summaries import SparkAudit


@answers_calls("audit")
@dataclass(frozen=True, repr=False, kw_only=True)
class Audit(AuditInWords, Pictured, Generic[Frame]):
    """A plan in a deployment, compared with the same plan on a store that forgets nothing.

    Example:
        >>> audit = sk.audit(plan.emit("on_window_close"), monday, sk.Deployment(store="memory"))
        >>> audit.counts()["lost"]
        0
        >>> audit.is_clean, audit.loses_nothing, len(audit.table()), len(audit.differences())
        (True, True, 0, 0)
        >>> audit.safe_retentions_ms, audit.smallest_retention_ms, audit.unknown_retentions_ms
        ([(40000, None)], 40000, [])
        >>> audit.recommended_retention_ms == audit.cure.settings.retention_ms
        True
        >>> figure, words = audit.figure(), audit.words()
    """

    settings: Settings
    expected: Run[Frame]
    run: Run[Frame]  # the run by Kafka's rules
    _replay: Callable[[int], Audit[Frame]]  # the same deployment with another retention
    _searched: Callable[[int], Replayed]  # what another one depends on, and loses
    _most_replays: Callable[[], int]  # of a search
    _noticed: Mapping[Hashable, Noticed]  # observations on which results depend, by part of the records
    _losing: Callable[[Windows], Losing]  # the parts of which these results are wrong
    _waiting: Windows  # in the store or in the buffer of suppress, from which nothing takes them any more

    # ---- its findings

    @property
    def _plan(self) -> Plan:
        return self.expected.plan

    @cached_property
    def _counts(self) -> dict[str, int]:
        found, metrics = Counter(self._verdicts.tolist()), self.run.metrics()
        compared = self._compared
        return {
            "expected": int(compared.expected.is_there.sum()),
            "sent": int(compared.sent.times.sum()),
            **{verdict.replace(" ", "_").lower(): found.get(verdict, 0) for verdict in VERDICTS},
            "waiting": int((compared.among(WAITING) & (self._verdicts == LOST)).sum()),
            "lost_in_larger": len(holders := holders_of(compared, self._verdicts)),
            "larger": len(set(holders)),
            "dropped_records": metrics["records-dropped"] + metrics["dropped-expired"],
            "late_but_counted": self._late_but_counted,
            "final_but_kept": self._held_final_count,
        }

    @cached_property
    def _is_sure(self) -> bool:
        kept_ms, paths = self.settings.retention_ms, (Path(each) for each in self._noticed.values())
        return all(path.sure_from_ms <= kept_ms and path.at_most_ms == FOREVER_MS for path in paths)

    @property
    def _remarks(self) -> list[str]:
        return self.expected._late_remarks

    def table(self) -> Frame:
        """One row per window: bounds, verdict, how often it was sent, how late, the right value, Kafka's value."""
        return self._frame(np.arange(len(self._verdicts)))

    def differences(self) -> Frame:
        """The rows of `table()` that are not as they should be."""
        return self._frame(np.flatnonzero(self._verdicts != AS_IT_SHOULD))

    @cached_property
    def _safe(self) -> Safe:
        lowest_ms = self.expected.plan._complete_windows.retention_ms(None)
        with progress("looking for a retention that loses nothing"):
            return safe_retentions(lowest_ms, self._replayed_with, self._most_replays())

    def _replayed_with(self, retention_ms: int) -> Replayed:
        """The observations that the results depended on, and the parts of the records of which some are wrong."""
        if retention_ms != self.settings.retention_ms:
            return self._searched(retention_ms)
        return Replayed(self._noticed, self._losing(wrong_of(self._compared, self._verdicts)))

    @property
    def _replayed(self) -> Replayed:
        """The same of this audit alone, of which nothing is kept; part by part, as that takes less memory."""
        whole = self._by_rows
        wrong = wrong_in(self._sides) if whole is None else wrong_of(whole, verdicts_on(whole))
        return Replayed(self._noticed, self._losing(wrong))

    def beside_emit_on_close(self) -> SuppressAudit[Frame]:
        """The final results of suppress beside those that emit-on-close sends, both on a store that forgets nothing.

        What the deployment does to the results of suppress is in the audit itself.

        Raises:
            InvalidArgument: the plan has no `suppress("until_window_closes")`.
        Source:
            KIP-328, KIP-825; KTableSuppressProcessorSupplier.
        Example:
            >>> audit = sk.audit(waves.suppress("until_window_closes"), flights, sk.Deployment.plain())
            >>> audit.beside_emit_on_close().words()[0]
            'With suppress instead of emit-on-close 72 results of 4,435 differ.'
        """
        plan = self.expected.plan
        if plan._suppression is None or not plan._suppression.is_final:
            want = 'plan.suppress("until_window_closes")'
            raise InvalidArgument(problem("this plan has no final results of suppress", repr(plan), want))
        on_close = plan.suppress(None).emit("on_window_close")
        outcome = self.expected._outcome
        return SuppressAudit(on_close._run_batch(outcome.batch, retention_ms=outcome.retention_ms), self.expected)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The results over time: those that came as they should, and those that did not."""
        from sessionkit.audits.figure import audit_figure

        title, _, found = self.words()[0].partition(": ")
        rest = [found[:1].upper() + found[1:], *self.words()[1:2]]  # why it is so is a text to read
        ends_ms = self._compared.windows.end_ms
        return audit_figure(
            title, rest, ends_ms, self._verdicts.tolist(), VERDICTS, timezone=self.expected.timezone, theme=theme
        )

    # ---- how it is found

    @property
    def _lives(self) -> Sequence[Run]:
        """The runs of Kafka's task, each from a start of it on."""
        return () if self.run.deployed is None else self.run.deployed.lives

    @property
    def _sides(self) -> Sides:
        return Sides.of((self.expected,), self._lives, self._sent_again, self._waiting)

    @cached_property
    def _compared(self) -> Compared:
        return self._by_rows or Compared.of(self._sides)

    @property
    def _by_rows(self) -> Compared | None:
        """What is compared, where both sides made the same windows."""
        return Compared.by_rows(self.expected, self._lives, self._sent_again, self._waiting)

    @cached_property
    def _verdicts(self) -> npt.NDArray[np.object_]:
        """How each window that is compared came out."""
        return verdicts_on(self._compared)

    @property
    def _sent_again(self) -> Windows:
        """Sessions that a record re-opened after they had been sent as final: the larger one is sent as well."""
        trace = self.expected.trace
        if not isinstance(trace, SessionTrace) or self.expected.plan._strategy == "on_window_update":
            return no_windows(self.expected)
        return windows_of(self.expected, trace.reopenings.window, trace.reopenings.start_ms, trace.reopenings.end_ms)

    def _columns(self, rows: Longs) -> dict[str, Any]:
        return self._compared.columns(rows, ("verdict", self._verdicts), "kafka")

    def _frame(self, rows: Longs) -> Frame:
        return tables.frame_of(self._columns(rows), self.expected._outcome.batch)

    @cached_property
    def _held_final_count(self) -> int:
        windows, count, done = self.expected.plan._complete_windows, 0, self.run.deployed
        seen_ms = None if done is None else done.seen_ms
        for partition, snapshot in self.expected._outcome.snapshots.items():
            close_ms = snapshot.stream_time_ms - windows.close_lag_ms
            if seen_ms is not None:
                count += int((seen_ms[partition] < close_ms).sum())
                continue
            with without_collections():
                last_ms = [windows.last_instant_ms(each) for each in store_at_end(self.run).all(partition=partition)]
            count += sum(ms < close_ms for ms in last_ms)
        return count

    @cached_property
    def _late_but_counted(self) -> int:
        """How many records are late, and count in Kafka, as its stream time starts anew with each life of the task."""
        kafka = np.concatenate([life.trace.decision for life in self._lives])
        return int(((self.expected.trace.decision == LATE) & (kafka != LATE)).sum())


def store_at_end(run: Run) -> Store:
    """Kafka's store at the end, behind its cache."""
    assert run._store is not None, "a deployment has one"
    return run._store


@overload
def audit(plan: Plan, data: SparkFrame, deployment: Deployment | None = None) -> SparkAudit: ...
@overload
def audit(plan: Plan, data: PandasData, deployment: Deployment | None = None) -> Audit[pd.DataFrame]: ...
@overload
def audit(plan: Plan, data: PolarsFrame, deployment: Deployment | None = None) -> Audit[pl.DataFrame]: ...
@overload
def audit(plan: Plan, data: ArrowData, deployment: Deployment | None = None) -> Audit[pa.Table]: ...


@called_as("sk.audit(plan, data, sk.Deployment())")
def audit(plan: Plan, data: Any, deployment: Deployment | None = None) -> Audit | SparkAudit:
    """Runs the plan as Kafka Streams would in this deployment, and says where its results are not what they should be.

    The first sentences of the audit say what it supposed.

    Args:
        plan: the plan, with its emit strategy.
        data: what `plan.run` takes. With Python functions, of sliding windows with restarts or behind a full cache,
            where a cache that can be full is lost in a restart, and of up to 200,000 records with restarts or where
            suppress counts bytes, the records are replayed one by one, some 20,000 a second. Each partition of a Spark
            DataFrame is an application of its own, which a task audits; the audit is a `SparkAudit` then, with what
            they come to.
        deployment: by default one with Kafka's own defaults. The rules of both stores are simulated in memory.
    Raises:
        InvalidArgument: a store of your own, restarts that are no rows of the records, a streaming DataFrame, or a
            plan that names no partition and offset columns for a DataFrame.
        NotBuilt: a restart of another kind than "disk", or windows that Kafka has not, such as calendar windows.
    Source:
        KIP-825, KIP-328, KIP-63; StreamsConfig; the store rules of Kafka Streams 4.4.0.
    Example:
        >>> sk.audit(plan.emit("on_window_close"), monday).words()[0]
        "RocksDB store, retention 40 s (both Kafka's defaults): no window becomes final on these records."
    """
    plan, data = plan_and_data(plan, data, "audit")
    how = Deployment() if deployment is None else deployment
    check_audited(plan, how)
    if is_spark_frame(data):
        return plan.run(data, deployment=how)._audit(how)
    batch = read_records(data, plan.source, plan._value_columns(how.clock))
    settings = settings_of(plan, how, len(batch))
    with progress("auditing"):
        return _Replays(plan, batch, settings).with_retention(settings.retention_ms)


class _Replays:
    """The audits of a plan with any retention, none of which it holds; functions in functions would hold each other."""

    def __init__(self, plan: Plan, batch: RecordBatch, settings: Settings) -> None:
        caching, depends = settings.deployment.caching, depends_on_retention(plan, settings)
        if depends and settings.is_cached:
            caching = cache_in_effect(plan.suppress(None), batch, settings)
        self._plan, self._batch, self._settings = plan, batch, settings
        self._how = dataclasses.replace(settings.deployment, caching=caching, retention=None)
        self._notices: Any
        if not depends or kernels_know(plan, batch, settings, caching):
            self._notices = ByKernels(plan, batch, settings, caching=caching, depends=depends)
        elif tells_effects(plan, batch, settings, caching):
            self._notices = ByEffects(plan, batch, settings, caching=caching)
        else:
            self._notices = ByProcessor(plan, batch, settings, caching)

    def with_retention(self, retention_ms: int, known: Outcome | None = None) -> Audit:
        """The audit with this retention; `known` is what our own rules come to."""
        notices, run = self._notices, self._run(retention_ms)
        if self._plan._complete_windows.holds == "windows":
            known = notices.known(retention_ms)
        return self._compared_with(run, self._batch, retention_ms, notices.losing, known)

    def _run(self, retention_ms: int) -> Run:
        run = self._plan._run_deployed(self._batch, self._how, self._notices.store(retention_ms))
        self._notices.take(run)
        return run

    def _expected(self, batch: RecordBatch, retention_ms: int, known: Outcome | None) -> Run:
        # Kafka's store has lost what lies `retention` behind, our state keeps it one millisecond longer
        kept_ms, ours = max(self._settings.default_retention_ms, retention_ms - 1), _with_room(self._plan)
        return ours._run_batch(batch, retention_ms=kept_ms) if known is None else Run(ours, known)

    def _searched(self, retention_ms: int) -> Replayed:
        notices = self._notices
        if isinstance(notices, ByEffects):
            retention_ms = notices.smallest_like(retention_ms)
        few = notices.few(retention_ms)
        if few is None:
            release_unused(len(self._batch))  # what is compared leaves much behind
            if self._sends_updates:
                return self._updates_replayed(retention_ms)
            return self.with_retention(retention_ms, notices.known(retention_ms))._replayed
        run = notices.run_few(few, retention_ms)
        return self._compared_with(run, few.batch, retention_ms, notices.losing_of_few)._replayed

    @property
    def _sends_updates(self) -> bool:
        """Whether updates of sessions are all that is sent."""
        plan = self._plan
        is_of_updates = plan._strategy == "on_window_update" and plan._suppression is None
        return is_of_updates and plan._complete_windows.holds != "windows"

    def _updates_replayed(self, retention_ms: int) -> Replayed:
        """The same of updates: the run is let go before what should be is made, as each of them takes much memory."""
        notices, run = self._notices, self._run(retention_ms)
        noticed = notices.noticed(retention_ms, run)
        sent = sent_by_all(run.deployed.lives)  # type: ignore[union-attr]  # it was deployed
        del run
        release_unused(len(self._batch))
        expected = self._expected(self._batch, retention_ms, notices.known(retention_ms))
        none = no_windows(expected)  # that a record opens again after their end, or that wait
        wrong = wrong_in(Sides.beside(sent, (expected,), none, none))
        return Replayed(noticed, notices.losing(wrong, noticed, retention_ms))

    def _compared_with(
        self,
        run: Run,
        batch: RecordBatch,
        retention_ms: int,
        losing: Callable[..., Losing],
        known: Outcome | None = None,
    ) -> Audit:
        expected = self._expected(batch, retention_ms, known)
        if self._plan._suppression is not None:
            waiting = windows_in(run.suppress_buffer()._columns)
        else:
            waiting = self._notices.waiting(expected, run)
        return Audit(
            settings=dataclasses.replace(self._settings, retention_ms=retention_ms),
            expected=expected,
            run=run,
            _replay=self.with_retention,
            _searched=self._searched,
            _most_replays=self._notices.most_replays,
            _noticed=(noticed := self._notices.noticed(retention_ms, run)),
            _losing=lambda wrong: losing(wrong, noticed, retention_ms),
            _waiting=waiting,
        )


def _with_room(plan: Plan) -> Plan:
    """The plan with a buffer of suppress that is never full, where a full one would stop the application."""
    if plan._suppression is None or not plan._suppression.can_fail:
        return plan
    without_limit = dataclasses.replace(plan._suppression, most_records=None, most_bytes=None)
    return dataclasses.replace(plan, _suppression=without_limit)
