"""`Plan` says what to do and holds no data; `Run` is what happened, and every view of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from sessionkit import aggregations as agg
from sessionkit.aggregations import Aggregation
from sessionkit.commit import commit
from sessionkit.contracts import EMIT_STRATEGIES, RULES, WINDOW_KINDS, SessionStore, one_of
from sessionkit.durations import Duration, show_duration
from sessionkit.engine import Outcome, no_sessions, run_kernel
from sessionkit.errors import InvalidArgument, NotKept, UnknownRecord, problem
from sessionkit.grace import missing_grace_ms
from sessionkit.processing import Forwarded, run_processor
from sessionkit.records import read_records
from sessionkit.source import Source
from sessionkit.text import escape_html, html_block, keyword_arguments, literal, plural, shorten
from sessionkit.trace import LATE, Trace
from sessionkit.views import tables
from sessionkit.views.explain import Explanation, explain_record
from sessionkit.windows.session import SessionWindows

if TYPE_CHECKING:
    import plotly.graph_objects as go

Theme = Literal["light", "dark"]


def group_by_key(
    *keys: str,
    timestamp: str,
    sep: str | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    ambiguous: str = "raise",
    nonexistent: str = "raise",
    partition: str | None = None,
    offset: str | None = None,
    partitions: int | None = None,
    on_bad_time: str = "refuse",
    sort: bool = False,
) -> Plan:
    """The start of a plan: which columns are the key and the event time, and how records lie in partitions.

    Args:
        keys: the key column; several are joined to one text by `sep`.
        timestamp: the event time: a timestamp column, or integers with `unit`.
        unit: of plain numbers as times: "s", "ms", "us" or "ns".
        timezone: of timestamps without a zone, such as "UTC"; `ambiguous` and `nonexistent` ("earliest", "latest")
            say what to do with times that a change of the clocks doubles or skips.
        partition, offset: columns that say where a record stands; each partition has its own stream time. Without
            them there is one partition and the order of rows is the order of arrival. Spark needs both.
        partitions: treat the records as a topic with so many partitions; keys go where Kafka's partitioner puts them.
        on_bad_time: "refuse" raises on null and negative times, "drop" counts them as dropped.
        sort: sort by `offset` first instead of refusing records that are out of order.
    Raises:
        InvalidArgument: a choice contradicts another.
    Example:
        >>> sk.group_by_key("user", timestamp="at")
        sk.group_by_key("user", timestamp="at")
    """
    return Plan(
        Source(
            keys=keys,
            timestamp=timestamp,
            sep=sep,
            unit=unit,
            timezone=timezone,
            ambiguous=ambiguous,
            nonexistent=nonexistent,
            partition=partition,
            offset=offset,
            partitions=partitions,
            on_bad_time=on_bad_time,
            sort=sort,
        )
    )


@dataclass(frozen=True, repr=False)
class Plan:
    """What to compute, as an immutable value; `repr(plan)` is the code that builds it.

    Example:
        >>> plan = (
        ...     sk.group_by_key("user", timestamp="at")
        ...     .windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))
        ...     .emit("on_window_close")
        ...     .aggregate(visits=sk.count(), spent=sk.sum("amount"))
        ... )
    """

    source: Source
    windows: SessionWindows | None = None
    strategy: str = "on_window_update"
    aggregations: tuple[tuple[str, Aggregation], ...] = ()

    def windowed_by(self, windows: SessionWindows) -> Plan:
        """The plan with these windows."""
        if type(windows).__name__ not in WINDOW_KINDS:
            want = 'sk.SessionWindows(inactivity_gap="30s", grace="10s")'
            raise InvalidArgument(problem("windowed_by takes windows", repr(windows), want))
        return dataclasses.replace(self, windows=windows)

    def with_windows(self, *, inactivity_gap: Duration | None = None, grace: Duration | None = None) -> Plan:
        """The plan with one or both durations changed.

        Example:
            >>> plan.with_windows(grace="1h").windows
            SessionWindows(inactivity_gap="30s", grace="1h")
        """
        windows = self._windows()
        gap = windows.inactivity_gap_ms if inactivity_gap is None else inactivity_gap
        return self.windowed_by(SessionWindows(inactivity_gap=gap, grace=windows.grace_ms if grace is None else grace))

    def emit(self, strategy: str) -> Plan:
        """The plan with results "on_window_update" (each change, Kafka's default) or "on_window_close" (finals only).

        Source:
            KIP-825; EmitStrategy.
        """
        return dataclasses.replace(self, strategy=one_of("emit", strategy, EMIT_STRATEGIES))

    def aggregate(self, **named: Any) -> Plan:
        """The plan with named aggregations, all computed in one pass.

        Instead of names, `initializer=`, `aggregator=`, `merger=` (and `value=`) give one aggregation of your own, as
        in Kafka; its column is called "aggregate".
        """
        if "initializer" in named:
            named = {"aggregate": agg.aggregation(**named)}
        for name, aggregation in named.items():
            if not isinstance(aggregation, Aggregation):
                want = f"{name}=sk.count(), sk.sum(column), sk.reduce(function, column), …"
                raise InvalidArgument(problem(f"{name} must be an aggregation", repr(aggregation), want))
            if name in tables.RESULT_COLUMNS:
                raise InvalidArgument(
                    problem("this name is taken by a column of the results", repr(name), "another name")
                )
        return dataclasses.replace(self, aggregations=tuple(named.items()))

    def count(self) -> Plan:
        """The plan with the number of records of each window, in column "count"."""
        return self.aggregate(count=agg.count())

    def reduce(self, function: Callable[[Any, Any], Any], value: str | Sequence[str]) -> Plan:
        """The plan with values combined pairwise, in column "reduce"."""
        return self.aggregate(reduce=agg.reduce(function, value))

    def run(
        self,
        data: Any,
        *,
        rules: str = "sessionkit",
        store: SessionStore | None = None,
        retention: Duration | None = None,
        trace: bool = True,
    ) -> Any:
        """Runs the plan over a frame, a file, or a Spark DataFrame.

        Args:
            data: pandas, polars, pyarrow or any frame with the Arrow stream protocol; the path of a Parquet or CSV
                file; or a Spark DataFrame (then every view of the run is one, too).
            rules: "sessionkit" loses nothing to a store; "kafka" does what Kafka Streams 4.3.1 does with an in-memory
                store of this retention, also where that forgets results.
            store: keeps the state for the next run; without it a run starts and ends by itself.
            retention: how long a session can be found again; gap + grace, the smallest allowed, if not given.
            trace: False keeps only the windows, to save memory; then there is nothing to explain or draw.
        Returns:
            A `Run`; for a Spark DataFrame a `SparkRun` with the same views.
        """
        one_of("rules", rules, RULES)
        self.check()
        if store is not None and not hasattr(store, "find_sessions"):
            want = 'such as sk.open_store("memory", "clicks-store")'
            raise InvalidArgument(problem("store must be a store", shorten(repr(store)), want))
        if type(data).__module__.startswith("pyspark."):
            from sessionkit.spark import SparkRun

            return SparkRun.start(self, data, rules=rules, store=store, retention=retention)
        windows = self._windows()
        batch = read_records(data, self.source, self.value_columns())
        named = dict(self.aggregations)
        if rules == "kafka" and store is not None:
            retention = self._store_retention(store, retention)
        retention_ms = windows.retention_ms(retention)
        if rules == "sessionkit":
            outcome = run_kernel(
                windows, named, batch, retention_ms=retention_ms, store=store, keep_trace=trace or store is not None
            )
            if store is not None:
                commit(outcome, store, retention_ms)
            return Run(self, outcome)
        options = {"rules": rules, "retention_ms": retention_ms, "emit": self.strategy, "store": store}
        outcome, forwarded, refused = run_processor(windows, named, batch, **options)  # type: ignore[arg-type]
        if store is not None:  # the processor wrote its sessions as it went
            nothing = no_sessions(outcome.keys.type, tuple(named))
            store.commit(nothing, nothing, outcome.snapshots)
        return Run(self, outcome, forwarded=forwarded, refused=tuple(refused))

    @staticmethod
    def _store_retention(store: Any, retention: Duration | None) -> int:
        """Under Kafka's rules the store expires by itself, so its retention is the one that counts."""
        if store.retention_ms is None or retention is not None:
            got = f"store with {store.retention_ms} ms, retention={retention!r}"
            want = "open the store with retention=, and leave it out here"
            raise InvalidArgument(problem('under rules="kafka" a store brings its own retention', got, want))
        return int(store.retention_ms)

    def value_columns(self) -> tuple[str, ...]:
        """The columns that the aggregations read."""
        return tuple(dict.fromkeys(column for _, aggregation in self.aggregations for column in aggregation.columns))

    def check(self) -> None:
        """Refuses a plan that is not complete.

        Raises:
            InvalidArgument: it has no windows or no aggregation.
        """
        self._windows()
        if not self.aggregations:
            raise InvalidArgument(problem("the plan has no aggregation", repr(self), ".count() or .aggregate(…)"))

    def _windows(self) -> SessionWindows:
        if self.windows is None:
            want = '.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))'
            raise InvalidArgument(problem("the plan has no windows", repr(self), want))
        return self.windows

    def code(self) -> list[str]:
        """The calls that build this plan, one a line."""
        defaults = {f.name: f.default for f in dataclasses.fields(Source)}
        options = {
            name: value for name, value in vars(self.source).items() if name != "keys" and value != defaults[name]
        }
        arguments = [*map(literal, self.source.keys), *(f"{name}={literal(value)}" for name, value in options.items())]
        lines = [f"sk.group_by_key({', '.join(arguments)})"]
        if self.windows is not None:
            lines.append(f".windowed_by(sk.{self.windows!r})")
        if self.strategy != "on_window_update":
            lines.append(f'.emit("{self.strategy}")')
        if self.aggregations:
            named = keyword_arguments({name: f"sk.{aggregation!r}" for name, aggregation in self.aggregations})
            lines.append(f".aggregate({', '.join(named)})")
        return lines

    def __repr__(self) -> str:
        lines = self.code()
        return lines[0] if len(lines) == 1 else "(\n    " + "\n    ".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        return html_block(f"<pre>{escape_html(self)}</pre>")


@dataclass(frozen=True, repr=False)
class Run:
    """What happened: every view of one run of a plan, as frames of the kind that was given.

    Example:
        >>> run = plan.run(monday)
        >>> run
        Run: 3 records in 2 sessions (0 closed, 2 open) · 0 merges · 0 dropped · gap 30 s, grace 10 s
    """

    plan: Plan
    outcome: Outcome
    forwarded: Sequence[Forwarded] | None = None  # rules="kafka": what the processor sent on
    refused: tuple[int, ...] = ()  # rules="kafka": records whose session was forwarded, though the store refused it

    @cached_property
    def _table(self) -> Mapping[str, tables.Column]:
        return tables.window_table(self.outcome, tables.table_rows(self.outcome))

    def table(self) -> Any:
        """One row a window: key, window_start_ms, window_end_ms, the aggregations, status, partition.

        Ordered by partition, key bytes and start. A window that no record has closed has status "open".
        """
        return tables.frame_of(self._table, self.outcome.batch.frame)

    def changelog(self) -> Any:
        """What goes downstream, in order: updates and tombstones, or finals, as the plan's emit strategy says.

        `offset` is that of the record after which it went; a tombstone's values are null.
        """
        return tables.frame_of(self._changelog, self.outcome.batch.frame)

    @cached_property
    def _changelog(self) -> Mapping[str, tables.Column]:
        if self.forwarded is not None:
            return tables.forwarded_table(self.outcome, self.forwarded)
        view = tables.updates if self.plan.strategy == "on_window_update" else tables.finals
        return view(self.outcome, self.trace)

    @property
    def trace(self) -> Trace:
        """Every decision.

        Raises:
            NotKept: the run was started with `trace=False`.
        """
        if self.outcome.kept_trace is None:
            raise NotKept(problem("this run kept no trace", "trace=False", "run it again without trace=False"))
        return self.outcome.kept_trace

    def dropped(self, *, missing_grace: bool = True) -> Any:
        """The records that count in no window, with the reason; late ones with the grace that would have kept them.

        Args:
            missing_grace: False leaves out `missing_grace_ms` and `enough_grace_ms`, which cost a replay of the
                record's key each.
        """
        trace = self.trace
        table = tables.dropped_records(trace)
        if missing_grace:
            rows = np.flatnonzero(~trace.accepted)
            late = trace.decision[rows] == LATE
            missing = np.zeros(len(rows), np.int64)
            missing[late] = missing_grace_ms(trace, self._windows, rows[late])
            table = table.append_column("missing_grace_ms", pa.array(missing, mask=~late))
            table = table.append_column("enough_grace_ms", pa.array(missing + self._windows.grace_ms, mask=~late))
        return tables.frame_of({name: table[name] for name in table.column_names}, self.outcome.batch.frame)

    def metrics(self) -> dict[str, int]:
        """Counters by Kafka's names (`dropped-records-total`, `window-aggregate-final-emit-total`, …) and our own."""
        finals = 0
        if self.plan.strategy == "on_window_close":
            kept = self.outcome.kept_trace is not None
            finals = len(self._changelog["offset"]) if kept else int(self.outcome.closed.sum())
        return tables.metrics(self.outcome, finals, len(self.refused))

    def explain(self, *, offset: int, partition: int | None = None) -> Explanation:
        """Why the record at `offset` opened, joined, bridged or was dropped, in words.

        Raises:
            UnknownRecord: it is not in this run, or there are several partitions and none is named.
        """
        return explain_record(self.trace, self._windows, self.trace.index_of(offset, partition))

    def plane(
        self, key: Any = None, *, partition: int | None = None, theme: Theme = "light", **options: Any
    ) -> go.Figure:
        """The history of one key: event time across, arrival upward. Without `key`, of the most eventful one."""
        from sessionkit.views.charts import plane

        key = self.most_eventful_key() if key is None else key
        if key not in self.outcome.keys.to_pylist():
            raise UnknownRecord(problem("this key is not in the run", repr(shorten(key)), "a key of run.table()"))
        return plane(self.trace, self._windows, key, partition=partition, theme=theme, **options)

    def lanes(self, *, theme: Theme = "light", **options: Any) -> go.Figure:
        """The sessions of many keys, a lane each."""
        from sessionkit.views.charts import lanes

        return lanes(self.trace, self._windows, theme=theme, **options)

    def most_eventful_key(self) -> Any:
        """The key with most drops, merges and rescues; of equal ones the first in the data."""
        trace = self.trace
        weight = 3 * (trace.decision == LATE) + 3 * (trace.decision == 3) + 2 * trace.late_but_kept
        weight = np.where(trace.batch.key >= 0, weight, 0)
        if not len(trace.keys):
            raise UnknownRecord(problem("the run has no key", "no records", "run the plan on some"))
        score = np.bincount(np.maximum(trace.batch.key, 0), weights=weight, minlength=len(trace.keys))
        return trace.keys[int(np.argmax(score))].as_py()

    @property
    def _windows(self) -> SessionWindows:
        assert self.plan.windows is not None
        return self.plan.windows

    def summary(self) -> str:
        """The run in one line of numbers."""
        m = self.metrics()
        parts = [
            f"{plural(m['process-total'], 'record')} in {plural(m['windows'], 'session')} "
            f"({m['windows-closed']:,} closed, {m['windows-open']:,} open)",
            plural(m["windows-merged"], "merge"),
            f"{m['dropped-records-total']:,} dropped",
        ]
        w = self._windows
        return f"{' · '.join(parts)} · gap {show_duration(w.inactivity_gap_ms)}, grace {show_duration(w.grace_ms)}"

    def __repr__(self) -> str:
        return f"Run: {self.summary()}"

    def _repr_html_(self) -> str:
        from sessionkit.views.html import run_html

        return run_html(self.summary(), self._table)
