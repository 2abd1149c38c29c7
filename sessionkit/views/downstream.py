"""What a run sends downstream: its changelog, the results of one key, and what suppress holds back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import InvalidArgument, problem
from sessionkit.views import tables

if TYPE_CHECKING:
    from sessionkit.engine.processor_run import Deployed
    from sessionkit.suppression.stage import Suppressor
    from sessionkit.views.emissions import Emissions
    from sessionkit.views.kafka_metrics import Held


class Suppressed(NamedTuple):
    """What suppress let go, and its buffers."""

    sent: Mapping[str, tables.Column]
    stage: Suppressor


@answers_calls("buffer")
@dataclass(frozen=True, repr=False)
class SuppressBuffer:
    """What waits in the buffers of suppress at the end of a run.

    `most_records` is the most that a partition's buffer held at once: what `max_records` would have to allow.

    Example:
        >>> buffer = waves.suppress("until_window_closes").run(flights).suppress_buffer()
        >>> buffer.most_records, len(buffer.table())
        (90, 14)
    """

    most_records: int
    _columns: Mapping[str, tables.Column]
    _run: Any

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once: what `max_bytes` would have to allow.

        An entry weighs its windowed key, its value, the ones that it replaces, as Kafka's serializers write them
        (several results as JSON), and 33 bytes. They are counted result by result, so that this takes a while.
        """
        from sessionkit.engine.deployment import Deployment

        run = self._run
        if run.deployed is None:
            how = Deployment(retention_ms=run.outcome.retention_ms, emit=run.plan.strategy, kafka=False)
            run = run.plan.run_deployed(run.outcome.batch, None, how)
        return max((buffer.most_size for buffer in run.deployed.buffers), default=0)

    def table(self) -> Any:
        """The results that wait, as rows of `run.changelog()`: by partition, in the order in which they would go out.

        `offset` is that of the record which each came with.
        """
        return tables.frame_of(self._columns, self._run.outcome.batch)

    def __repr__(self) -> str:
        waiting = len(self._columns["offset"])
        verb = "waits" if waiting == 1 else "wait"
        most = f"no partition held more than {self.most_records:,} at once"
        return f"buffer of suppress: {plural(waiting, 'result')} {verb}; {most}"

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}; <code>.table()</code> has them.</p>")


class _Sends(Protocol):
    """What a run has that these views need."""

    @property
    def plan(self) -> Any: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def deployed(self) -> Deployed | None: ...
    @property
    def _changelog(self) -> Mapping[str, tables.Column]: ...
    @property
    def _suppressed(self) -> Suppressed: ...
    def _changelog_with(self, *, old_values: bool) -> Mapping[str, tables.Column]: ...
    def _check_trace(self) -> None: ...
    def _key(self, given: Any) -> Any: ...
    def most_eventful_key(self) -> Any: ...


class Downstream:
    """What `Run` inherits: what it sent, what it would have sent for one key, and what waits."""

    def changelog(self: _Sends, *, old_values: bool = False) -> Any:
        """What goes downstream, in order: updates and tombstones, or finals, as the plan's emit strategy says.

        `offset` is that of the record that caused it; a tombstone's values are null.

        Args:
            old_values: also shows the value that each value replaces, in a column with the prefix `old_`.
        Raises:
            InvalidArgument: a result already has that name.
        Example:
            >>> plan.run(monday).changelog()["what"].tolist()
            ['update', 'tombstone', 'update', 'update']
        """
        results = self.outcome.folds
        if old_values and self.plan.suppression is not None:
            want = "leave it out; the values that suppress sends replace those that it sent before"
            raise InvalidArgument(problem("with suppress no old values are sent", "old_values=True", want))
        if old_values and (clash := [name for name in results if f"old_{name}" in results]):
            got, want = f"{clash[0]!r} and {f'old_{clash[0]}'!r}", "another name for the second"
            raise InvalidArgument(problem("a column would appear twice beside the replaced values", got, want))
        columns = self._changelog_with(old_values=True) if old_values else self._changelog
        return tables.frame_of(columns, self.outcome.batch)

    @property
    def changelog_columns(self: _Sends) -> Mapping[str, tables.Column]:
        """The columns of `changelog()`, as Arrow or NumPy arrays, whatever the kind of frame."""
        return self._changelog

    @cached_property
    def _changelog(self: _Sends) -> Mapping[str, tables.Column]:
        return self._changelog_with(old_values=False)

    def _changelog_with(self: _Sends, *, old_values: bool) -> Mapping[str, tables.Column]:
        if self.deployed is not None:
            return tables.forwarded_table(self.outcome, self.deployed.forwarded, old_values=old_values)
        if self.plan.suppression is not None:
            return self._suppressed.sent
        self._check_trace()
        return tables.changelog(self.outcome, self.plan.strategy, old_values=old_values)

    @cached_property
    def _suppressed(self: _Sends) -> Suppressed:
        from sessionkit.suppression.stage import Suppressor

        self._check_trace()
        plan: Any = self.plan
        stage = Suppressor(plan.suppression, plan.complete_windows, dict(plan.aggregations))
        return Suppressed(stage.step(tables.changelog(self.outcome, plan.strategy)), stage)

    def suppress_buffer(self: _Sends) -> SuppressBuffer:
        """What waits in the buffers of suppress at the end of the run, and the most that did.

        Raises:
            InvalidArgument: the plan has no suppress.
        Example:
            >>> run = waves.suppress("until_window_closes").run(flights)
            >>> run.suppress_buffer()
            buffer of suppress: 14 results wait; no partition held more than 90 at once
        """
        if self.plan.suppression is None:
            want = 'plan.suppress("until_window_closes"), or plan.suppress("until_time_limit", "10s")'
            raise InvalidArgument(problem("this plan holds no results back", "no suppress", want))
        if self.deployed is None:
            stage = self._suppressed.stage
            assert stage.waiting is not None
            return SuppressBuffer(stage.most_records, stage.waiting.columns, self)
        buffers = self.deployed.buffers
        held = [result for buffer in buffers for result in buffer.held()]
        most_records = max((buffer.most_records for buffer in buffers), default=0)
        columns = tables.forwarded_table(self.outcome, held, old_values=False)
        return SuppressBuffer(most_records, columns, self)

    def _held_by_suppress(self: _Sends) -> Held:
        from sessionkit.views.kafka_metrics import Held

        sent, numbers = np.asarray(self._changelog["partition"]), self.outcome.batch.partitions.tolist()
        if self.deployed is None:
            return Held(sent, {number: (most, None) for number, most in self._suppressed.stage.most_in_each.items()})
        buffers = zip(numbers, self.deployed.buffers, strict=True)
        return Held(sent, {number: (buffer.most_records, buffer.most_size) for number, buffer in buffers})

    @called_as('run.emissions("ada")')
    def emissions(self: _Sends, key: Any = None, *, partition: int | None = None) -> Emissions:
        """What went downstream for one key, and what is pending: which results were retracted, which are still to come.

        Without `key`, it shows the key with the most events.

        Raises:
            UnknownRecord: the run holds no such key, or several partitions hold it and none is named.
            InvalidArgument: no such partition.
            NotKept: the run was started with `trace=False`.
        Source:
            KIP-825 (emit strategies); SessionTupleForwarder's tombstones.
        Example:
            >>> run = plan.run(monday)
            >>> run.emissions("ada").table()["what"].tolist()
            ['update', 'tombstone', 'update', 'pending']
        """
        from sessionkit.views.emissions import emissions_of

        chosen = self.most_eventful_key() if key is None else self._key(key)
        return emissions_of(self, chosen, partition, chosen=key is None)
