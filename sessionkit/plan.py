"""`Plan`: what to do, as a value that holds no data."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from sessionkit.aggregations import built_ins as agg
from sessionkit.aggregations.contract import Aggregation, columns_read
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration, as_duration, show_duration
from sessionkit.base.text import escape_html, html_block, keyword_arguments, literal, one_of
from sessionkit.engine.commit import commit
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.errors import InvalidArgument, NotBuilt, problem, shorten
from sessionkit.records.batch import RecordBatch, is_spark_frame, read_records, without_null_values
from sessionkit.records.frames import ArrowData, FrameKind, PandasData, PolarsFrame, SparkFrame, checked_frame
from sessionkit.records.keys import code_of_key
from sessionkit.records.source import Source, check_as_kafka, written_down
from sessionkit.run import Run
from sessionkit.stores.contract import EMIT_STRATEGIES, EmitStrategy, PlanStore, TaskStore
from sessionkit.stores.locking import alone_with
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.stores.registry import kind_of, such_as
from sessionkit.suppression.settings import Suppression, Until, WhenFull, suppression
from sessionkit.windows.contract import WINDOW_KINDS, WindowKind, changed_windows

if TYPE_CHECKING:
    import datetime as dt
    from typing import TypedDict, Unpack

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from sessionkit.deployed.deployment import Clock, Deployment, Life
    from sessionkit.exports.export import Export
    from sessionkit.exports.request import KeyType, TimestampIn
    from sessionkit.records.source import Ahead, Ambiguous, Nonexistent, OnBadTime, TimeUnit
    from sessionkit.spark.batch_run import SparkRun, StreamRun
    from sessionkit.steps.reading import Reading
    from sessionkit.steps.write import WriteJob
    from sessionkit.steps.written import Written

    class _More(TypedDict, total=False):  # of `Plan.run`, but `frame`
        store: PlanStore | None
        retention: Duration | None
        trace: bool
        keys: Iterable[Any] | None
        deployment: Deployment | None


@answers_calls("plan")
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
        >>> len(plan.run(monday).table()), plan.count().code()[-1], plan.reduce(max, "amount").code()[2]
        (2, '.aggregate(count=sk.count())', '.emit("on_window_close")')
    """

    source: Source
    windows: WindowKind | None = None
    _strategy: EmitStrategy = "on_window_update"
    _aggregations: tuple[tuple[str, Aggregation], ...] = ()
    _suppression: Suppression | None = None

    @called_as('plan.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="5m"))')
    def windowed_by(self, windows: WindowKind) -> Plan:
        """The plan with these windows."""
        if type(windows) not in WINDOW_KINDS:
            want = 'sk.SessionWindows(inactivity_gap="30s", grace="10s")'
            raise InvalidArgument(problem("windowed_by takes windows", repr(windows), want))
        zone = getattr(windows, "__dict__", {}).get("timezone")  # of calendar windows; __slots__ have none
        return dataclasses.replace(self, windows=windows, source=dataclasses.replace(self.source, shown_in=zone))

    @called_as('plan.with_windows(grace="1h"); plan.windowed_by(…) takes other windows')
    def with_windows(self, /, **changed: Duration | int) -> Plan:
        """The plan with some parameters of its windows changed; `grace="1h"` or `grace_ms=3_600_000`, as in the class.

        Example:
            >>> plan.with_windows(grace="1h").windows
            SessionWindows(inactivity_gap="30s", grace="1h")
        """
        return self.windowed_by(changed_windows(self._complete_windows, changed))

    @called_as('plan.emit("on_window_close")')
    def emit(self, strategy: EmitStrategy) -> Plan:
        """The plan with results "on_window_update" (each change, Kafka's default) or "on_window_close" (finals only).

        Source:
            KIP-825; EmitStrategy.
        """
        return dataclasses.replace(self, _strategy=one_of("emit", strategy, EMIT_STRATEGIES))

    @called_as('plan.suppress("until_window_closes"), plan.suppress("until_time_limit", "10s")')
    def suppress(
        self,
        until: Until | None,
        wait: Duration | None = None,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: WhenFull | None = None,
    ) -> Plan:
        """The plan with updates that wait in a buffer, where a later one takes the place of an earlier one.

        "until_window_closes" sends one final result a window: by the timestamps of the results, once the grace (of
        sessions gap and grace) is over. "until_time_limit" sends the newest update once results are `wait` newer. None
        takes the buffer off.

        Args:
            max_records, max_bytes: what fits into the buffer of a partition; by default any number.
            when_full: with a time limit "emit_early" (the oldest go out; the default) or "shut_down", which
                "until_window_closes" always does: the run ends with `BufferFull`.
        Source:
            KIP-328; Suppressed, KTableSuppressProcessorSupplier.
        Example:
            >>> waits = plan.suppress("until_window_closes", max_records=1_000)
            >>> waits.run(monday).changelog()["what"].tolist(), waits.run(monday).suppress_buffer()
            ([], buffer of suppress: 3 results wait; no partition held more than 3 at once)
        """
        settings = suppression(until, wait, max_records, max_bytes, when_full)
        return dataclasses.replace(self, _suppression=settings)

    @called_as('plan.aggregate(visits=sk.count(), spent=sk.sum("amount"))')
    def aggregate(self, /, **named: Any) -> Plan:
        """The plan with named aggregations, all computed in one pass.

        Instead of names, `initializer=`, `aggregator=`, `merger=` (and `value=`) give one aggregation of your own, as
        in Kafka; its column is called "aggregate".
        """
        checked = agg.named_aggregations(named, self.source.taken_names)
        return dataclasses.replace(self, _aggregations=tuple(checked.items()))

    @called_as(
        'plan.count(); of a column: plan.aggregate(amounts=sk.collect("amount")); named: plan.aggregate(n=sk.count())'
    )
    def count(self) -> Plan:
        """The plan with the number of records of each window, in column "count"."""
        return self.aggregate(count=agg.count())

    @called_as('plan.reduce(function, "page")')
    def reduce(self, function: Callable[[Any, Any], Any], value: str | Sequence[str]) -> Plan:
        """The plan with values combined one after another, in column "reduce"."""
        return self.aggregate(reduce=agg.reduce(function, value))

    @overload
    def run(self, data: SparkFrame, *, frame: None = None, **more: Unpack[_More]) -> SparkRun: ...
    @overload
    def run(self, data: Any, *, frame: Literal["pandas"], **more: Unpack[_More]) -> Run[pd.DataFrame]: ...
    @overload
    def run(self, data: Any, *, frame: Literal["polars"], **more: Unpack[_More]) -> Run[pl.DataFrame]: ...
    @overload
    def run(self, data: Any, *, frame: Literal["arrow"], **more: Unpack[_More]) -> Run[pa.Table]: ...
    @overload
    def run(self, data: PandasData, *, frame: None = None, **more: Unpack[_More]) -> Run[pd.DataFrame]: ...
    @overload
    def run(self, data: PolarsFrame, *, frame: None = None, **more: Unpack[_More]) -> Run[pl.DataFrame]: ...
    @overload
    def run(self, data: ArrowData, *, frame: None = None, **more: Unpack[_More]) -> Run[pa.Table]: ...
    @overload
    def run(self, data: Any, *, frame: FrameKind | None, **more: Unpack[_More]) -> Run: ...

    @called_as("plan.run(data)")
    def run(
        self,
        data: Any,
        *,
        store: PlanStore | None = None,
        retention: Duration | None = None,
        trace: bool = True,
        keys: Iterable[Any] | None = None,
        deployment: Deployment | None = None,
        frame: FrameKind | None = None,
    ) -> Run | SparkRun:
        """Runs the plan over a frame, a file, or a Spark DataFrame.

        Args:
            data: a frame of pandas, polars (also lazy), pyarrow (also a Dataset or ParquetFile) or any with the Arrow
                stream protocol; a path or URL of a file, folder or glob, or a list of them (Parquet, CSV, TSV, JSON,
                Feather); an open binary file; a list of dicts; a dict of columns; or a Spark DataFrame.
            store: keeps the state for the next run. A run in another thread waits until the one that has it has ended.
            retention: how long a window can be found again; if not given that of the store, or the smallest allowed.
            trace: False keeps only the windows, to save memory; then there is nothing to explain or draw.
            keys: only the records of these keys (of several columns tuples, or the joined text), with the results that
                they have among all others. Of more than 2 million records in Parquet files or a Dataset they are picked
                in steps, so that the file need not fit into memory. Not with a store, suppress or a deployment; on
                Spark: `run.of`.
            deployment: does what Kafka Streams 4.4.0 does when it is so configured, also where its store forgets;
                without one nothing is lost. Its retention counts; a store must be of its kind, and have the same one.
            frame: the kind of the results, "pandas", "polars" or "arrow"; by default that of the data, or pandas.
        Returns:
            A `Run`; for a Spark DataFrame a `SparkRun`, whose views are DataFrames. A stream takes `plan.stream`.
        Example:
            >>> len(waves.run(flights, keys=["AA@LGA"]).table())
            52
        """
        self._check_run(store, deployment, retention)
        named = None if keys is None else self._checked_keys(keys, data, store, deployment)
        frame = checked_frame(frame, on_spark=is_spark_frame(data))
        if is_spark_frame(data):
            from sessionkit.spark.batch_run import start

            if deployment is not None:
                self._deployed_retention_ms(deployment, store)  # which refuses what is none
            return start(self, data, deployment, store, retention)
        if deployment is not None:
            self._deployed_retention_ms(deployment, store)  # said before the records are read
            return self._run_deployed(self._read(data, frame, None, deployment.clock), deployment, store)
        retention_ms = self._kept_ms(retention, store)
        return self._run_batch(self._read(data, frame, named), store=store, retention_ms=retention_ms, trace=trace)

    @called_as('plan.write(data, table="sessions")')
    def write(
        self,
        data: Any,
        *,
        table: str | Path | None = None,
        changelog: str | Path | None = None,
        dropped: str | Path | None = None,
        records: str | Path | None = None,
        store: PlanStore | None = None,
        overwrite: bool = False,
    ) -> Written:
        """Runs the plan over data of any length, in steps of bounded memory, and writes the results as Parquet.

        Each result goes to a folder of its own, which takes its place in one rename once all of it is written. Of files
        how far it came is noted every 50 million records beside the first folder, and the same call goes on from there,
        but where functions of Python aggregate, which cannot be compared.

        The types of columns of text files are those of their first rows, so types= is of use there. JSON arrays and
        logs parted by spaces are read at once.

        Args:
            data: as in `run`, but of Spark. Files, datasets and readers of Arrow are read piece by piece.
            table: `run.table()`, within a partition in the order in which windows closed; those that are open come
                last.
            changelog: `run.changelog()`.
            dropped: `run.dropped(missing_grace=False)`.
            records: `run.trace.records()`; `trace` of the result, or `sk.open_trace`, reads what is asked for of it.
            store: keeps the state for the next run; committed once, after the folders are in their places. Its windows
                that no record could meet or close are not in the table.
            overwrite: replaces a folder that holds what `write` wrote and nothing else.
        Returns:
            A `Written`: the folders, what is in them, and what was counted.
        Raises:
            InvalidArgument: no folder is named, or there is something in its place.
            NotBuilt: the plan sorts its records, suppresses results, or goes by what lies between records.
            WriteFailed: the disk is full or read-only; nothing is in its place then.
            InvalidData, UnsupportedData, MissingColumn: as `run`; also a text file whose later rows are of another type
                than its first, or functions whose results have several types.
        Example:
            >>> plan.write(monday, table="sessions", changelog="changes").rows
            {'table': 2, 'changelog': 4}
        """
        from sessionkit.steps.write import TARGETS, write

        named = {"table": table, "changelog": changelog, "dropped": dropped, "records": records}
        paths = {name: Path(os.path.expanduser(path)) for name in TARGETS if (path := named[name]) is not None}
        return write(self._write_job(data, paths, store, overwrite=overwrite))

    def _write_job(self, data: Any, paths: dict[str, Path], store: PlanStore | None, *, overwrite: bool) -> WriteJob:
        from sessionkit.steps.reading import check_source
        from sessionkit.steps.write import WriteJob

        self._check_run(store, None, None)
        if is_spark_frame(data):
            want = "plan.run(df).table().write.parquet(…), as Spark's own tasks write"
            raise InvalidArgument(problem("write takes local records", "a Spark DataFrame", want))
        if not paths:
            raise InvalidArgument(problem("write needs a folder for its results", "none", 'such as table="sessions"'))
        if self._suppression is not None:
            want = 'plan.suppress(None), with .emit("on_window_close") for final results alone; or plan.run'
            raise NotBuilt(problem("results that wait are not written in steps", self._suppression.code(), want))
        check_source(self.source)
        reading = self._reading(data, dataclasses.replace(self.source, label=None))
        empty = self._run_batch(reading.none)
        views: dict[str, Callable[[], pa.Table]] = {
            "table": empty.table,
            "changelog": empty.changelog,
            "dropped": partial(empty.dropped, missing_grace=False),
            "records": empty.trace.records,
        }
        return WriteJob(
            plan=repr(self),
            reading=reading,
            aggregations=dict(self._aggregations),
            strategy=self._strategy,
            retention_ms=self._kept_ms(None, store),
            schemas={name: views[name]().schema for name in paths},
            paths=paths,
            store=store,
            bound=self._bound(),
            overwrite=overwrite,
        )

    @called_as("plan.stream(df)")
    def stream(self, df: SparkFrame, *, retention: Duration | None = None) -> StreamRun:
        """Runs the plan over a streaming DataFrame of Spark, micro-batch after micro-batch, with exact results.

        Args:
            df: what `spark.readStream` gives, also through `sk.from_kafka`.
            retention: how long a window can be found again; if not given that of the store, or the smallest allowed.
        Returns:
            A `StreamRun`: its views are streaming DataFrames, and its `write` starts a query (docs/spark.md).
        Raises:
            InvalidArgument: the DataFrame is no stream, or the plan does not name a partition and an offset column.
            NotBuilt: idle partitions. SparkUnavailable: the workers' Python cannot run sessionkit.
        Example:
            >>> run = plan.stream(spark.readStream.schema(schema).parquet("clicks"))  # doctest: +SKIP
        """
        if not is_spark_frame(df):
            what, want = "a stream is a DataFrame of Spark", "spark.readStream.…; or plan.run(data), for other records"
            raise InvalidArgument(problem(what, type(df).__name__, want))
        from sessionkit.spark.batch_run import start_stream

        self._check()
        return start_stream(self, df, retention)

    def _checked_keys(self, keys: Iterable[Any], data: Any, store: object, deployment: object) -> list[Any]:
        from sessionkit.engine.chosen_keys import checked_keys

        asked = {
            "store=": store is not None,
            "deployment=": deployment is not None,
            "suppress": self._suppression is not None,
        }
        return checked_keys(self.source, keys, data, [name for name, is_given in asked.items() if is_given])

    def _read(
        self, data: Any, frame: FrameKind | None, keys: list[Any] | None, clock: str | None = None
    ) -> RecordBatch:
        if keys is not None:
            from sessionkit.engine.chosen_keys import chosen_records
            from sessionkit.steps.chosen import is_long, may_be_picked, picked

            if may_be_picked(self.source, data) and is_long(reading := self._reading(data, self.source)):
                return picked(reading, keys, frame)
        batch = read_records(data, self.source, self._value_columns(clock), frame=frame)
        if keys is None:
            return batch
        codes = [code_of_key(batch.keys, key) for key in keys]
        return chosen_records(batch, codes, self._complete_windows)

    def _reading(self, data: Any, source: Source) -> Reading:
        from sessionkit.records.inputs.pieces import open_pieces
        from sessionkit.steps.reading import Reading

        values = self._value_columns()
        pieces = open_pieces(data, list(dict.fromkeys([*source.columns(), *values])), source)
        return Reading(source=source, windows=self._complete_windows, value_columns=values, pieces=pieces)

    def _run_batch(
        self,
        batch: RecordBatch,
        *,
        store: PlanStore | None = None,
        retention_ms: int | None = None,
        trace: bool = True,
    ) -> Run:
        """What `run` does with records that have already been read, under sessionkit's rules."""
        windows = self._complete_windows
        retention_ms = windows.retention_ms(None) if retention_ms is None else retention_ms
        batch = self._without_null_values(batch)
        limits: Any = {"retention_ms": retention_ms, "keep_trace": trace or store is not None}
        with alone_with(store):
            batch = with_idle_ticks(batch, store)
            outcome = run_kernel(windows, dict(self._aggregations), batch, store=store, **limits)
            if store is not None:
                store.bind(self._bound())
                commit(outcome, store, windows, retention_ms)
        run = Run(self, outcome, _store=store)
        if self._suppression is not None and self._suppression.can_fail:
            run.suppress_buffer()  # which finds out whether it does
        return run

    def _run_deployed(
        self, batch: RecordBatch, how: Deployment, store: Any = None, *, clock: Clock | None = None
    ) -> Run:
        """What `run` does with a deployment and records that have been read; what a life has committed stays.

        Args:
            clock: times in ms, or a function that tells them, in place of the clock of the deployment.
        """
        from sessionkit.deployed.deployment import checked_restarts
        from sessionkit.deployed.lives import together

        lives = [*self._lives_of(batch, how, store, clock=clock)]
        done = together(lives, checked_restarts(how.restarts))
        return Run(self, lives[-1]._outcome, deployed=done, _store=lives[-1]._store)

    def _lives_of(
        self, batch: RecordBatch, how: Deployment, store: Any = None, *, clock: Clock | None = None
    ) -> Iterator[Run]:
        """Each life of a deployment, from a start of the task on.

        A life that is killed commits nothing at its end: the next one begins behind the last record that was committed.
        """
        from sessionkit.deployed import lives as of_lives  # most runs need none of this
        from sessionkit.deployed.deployment import checked_clock, checked_restarts

        windows, retention_ms = self._complete_windows, self._deployed_retention_ms(how, store)
        restarts = checked_restarts(how.restarts, len(batch))
        if store is not None and len(store) and any(each.kind == "changelog" for each in restarts):
            want = 'an empty store, or restarts of the kind "disk"'
            got = shorten(store)
            raise InvalidArgument(problem("what a changelog holds is known from its beginning only", got, want))
        state = of_lives.task_store(str(how.store), windows, self._strategy, retention_ms) if store is None else store
        batch = self._without_null_values(batch)
        first, buffers = 0, ()
        changelog = of_lives.changelog_of(state, restarts, retention_ms)
        with alone_with(state):
            times = checked_clock(clock, len(batch))
            if times is None:
                first_ms = np.array([state.snapshot(p).stream_time_ms for p in batch.partitions.tolist()], np.int64)
                times = of_lives.clock_of(batch, how.clock, self.source, first_ms)
            is_stream_time = clock is None and how.clock is None
            whole = how._life(self._strategy, retention_ms, times, len(batch), is_stream_time=is_stream_time)
            for restart in [*restarts, None]:
                stop = len(batch) if restart is None else restart.row + 1
                kind = None if restart is None else restart.kind
                log = changelog if kind is not None else None  # of the last life nothing is restored
                part = whole.part(first, stop, kind, buffers=buffers, changelog=log)
                life = self._run_life(batch.slice(first, stop), state, part)
                done: Any = life.deployed
                first, buffers = first + done.committed_count, done.buffers_left
                if kind is not None:
                    if changelog is not None:
                        changelog.restore(state, kind)
                    state.restart_task(kind)
                del done
                yield life
                del life

    def _run_life(self, batch: RecordBatch, store: TaskStore | None, how: Life) -> Run:
        """One life of a deployed plan, over records that have already been read."""
        from sessionkit.deployed.compiled.run import run_compiled, runs_compiled
        from sessionkit.deployed.lives import memory_store
        from sessionkit.deployed.processor_run import run_processor

        windows, named = self._complete_windows, dict(self._aggregations)
        batch = with_idle_ticks(self._without_null_values(batch))
        state = memory_store(windows, how.retention_ms if how.kafka else None) if store is None else store
        with alone_with(store):
            done = None
            if runs_compiled(windows, named, batch, state, how):
                done = run_compiled(windows, named, batch, state, how, self._bound(), self._suppression)
            if done is None:
                done = run_processor(windows, named, batch, state, how, self._bound(), self._suppression)
        return Run(self, done.outcome, deployed=done.deployed, _store=done.store)

    def _check_run(self, store: PlanStore | None, how: object, retention: Duration | None) -> None:
        self._check()
        if self._suppression is not None and store is not None:
            want = "a run without store=; a store does not keep what suppress holds back"
            raise NotBuilt(problem("results that wait end with the run", self._suppression.code(), want))
        if self.source.on_bad_time == "partition_time" and store is not None:
            want = 'a run without store=, or on_bad_time="drop"'
            got = 'on_bad_time="partition_time"'
            raise NotBuilt(problem("a store does not keep the time of a partition", got, want))
        self._check_store(store)
        if how is not None:
            self._check_deployed(how)
            if retention is not None:
                got, want = f"retention={retention!r}", "sk.Deployment(retention=…), and leave it out here"
                raise InvalidArgument(problem("with a deployment its retention counts", got, want))
            if store is not None and (kind := kind_of(store)) != how.store:  # type: ignore[attr-defined]
                got = f"{shorten(store)} and {how!r}"
                want = f"a deployment with store={kind!r}" if kind else "a store of the deployment's kind"
                raise InvalidArgument(problem("a store must be of the deployment's kind", got, want))

    def _check_deployed(self, how: object) -> None:
        """Refuses what is no deployment, and windows and rules that Kafka Streams does not have."""
        from sessionkit.deployed.deployment import Deployment

        if not isinstance(how, Deployment):
            want = "sk.Deployment(), with Kafka's own defaults, or sk.Deployment.plain()"
            raise InvalidArgument(problem("deployment takes a deployment", shorten(repr(how)), want))
        if (lacking := self._complete_windows.not_in_kafka) is not None:
            what, want = lacking
            raise NotBuilt(problem(what, repr(self.windows), want))
        check_as_kafka(self.source, "Kafka Streams moves stream time by records alone")

    def _check_store(self, store: PlanStore | None) -> None:
        if store is None:
            return
        if isinstance(store, ReadOnlyStore):
            want = "the store itself, not its read-only view"
            raise InvalidArgument(problem("a plan cannot write to this store", shorten(repr(store)), want))
        holds = self._complete_windows.holds
        if getattr(store, "holds", None) != holds:
            raise InvalidArgument(problem(f"store must be a store of {holds}", shorten(repr(store)), such_as(holds)))
        store.check_names(dict(self._aggregations))
        store.check_windows(self._bound())

    def _bound(self) -> dict[str, str]:
        """What a store records about the plan that keeps its windows there; none of it may change between runs."""
        results = {f"result {name}": aggregation.code for name, aggregation in self._aggregations}
        idle = {} if self.source.idle_after is None else {"idle_after": self.source.idle_after}
        return {"windows": repr(self._complete_windows), "keys": ", ".join(self.source.keys), **idle, **results}

    def _kept_ms(self, retention: Duration | None, store: PlanStore | None) -> int:
        """How long windows are kept: as is asked for, else as long as the store was opened for, if that is enough."""
        least_ms = self._complete_windows.retention_ms(retention)
        return least_ms if retention is not None or store is None else max(least_ms, store.retention_ms or 0)

    def _deployed_retention_ms(self, how: Deployment, store: Any) -> int:
        """How long windows are kept in Kafka, where a store expires them by itself."""
        windows, wanted = self._complete_windows, how.retention
        if store is None:
            return windows.retention_ms(wanted)
        kept_ms = store.retention_ms
        if kept_ms is None or (wanted is not None and windows.retention_ms(wanted) != kept_ms):
            kept = "no retention" if kept_ms is None else f"retention {show_duration(kept_ms)}"
            got = f"a store with {kept}" + ("" if wanted is None else f", and a deployment with {wanted}")
            want = "a store that was opened with the retention= of the deployment"
            raise InvalidArgument(problem("a deployed store brings its own retention", got, want))
        return windows.retention_ms(as_duration(kept_ms))

    def _value_columns(self, *more: str | None) -> tuple[str, ...]:
        """The columns that the aggregations read, and more of them, but None."""
        return tuple(dict.fromkeys((*columns_read(self._aggregations), *(name for name in more if name is not None))))

    def _without_null_values(self, batch: RecordBatch) -> RecordBatch:
        """The records with those marked that these windows drop for their values; a clock beside them is none."""
        return batch if self._complete_windows.takes_null_values else without_null_values(batch, self._value_columns())

    def _check(self) -> None:
        """Refuses a plan that is not complete."""
        windows = self._complete_windows
        if windows.trailing_only and self._strategy != "on_window_close":
            want = '.emit("on_window_close"); leave out trailing_only for updates'
            raise InvalidArgument(problem("trailing_only has final results only", f'.emit("{self._strategy}")', want))
        if not windows.is_ever_closed and self._strategy == "on_window_close":
            want = '.emit("on_window_update"), or windows with a grace'
            raise InvalidArgument(problem("these windows have no final results", repr(self.windows), want))
        if self._suppression is not None and self._strategy == "on_window_close":
            want = "one of the two: leave out suppress, or emit; Kafka would take both, and only delay the finals"
            raise InvalidArgument(problem("final results need no suppress", self._suppression.code(), want))
        if self._suppression is not None and self._suppression.is_final and not windows.is_ever_closed:
            raise InvalidArgument(problem("these windows never close", repr(self.windows), "windows with a grace"))
        if not self._aggregations:
            raise InvalidArgument(problem("the plan has no aggregation", repr(self), ".count() or .aggregate(…)"))
        read = list(dict.fromkeys([*self.source.columns(), *self._value_columns()]))
        for name, _ in self.source.types:
            if name not in read:
                want = f"one of {shorten(read, 200)}"
                raise InvalidArgument(problem("types names a column that the plan does not read", repr(name), want))

    @property
    def _complete_windows(self) -> WindowKind:
        if self.windows is None:
            want = '.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s")); sums of all time are a group by'
            raise InvalidArgument(problem("the plan has no windows", repr(self), want))
        return self.windows

    def code(self) -> list[str]:
        """The calls that build this plan, one per line."""
        defaults = {f.name: f.default for f in dataclasses.fields(Source)}
        options = {
            name: value for name, value in vars(self.source).items() if name != "keys" and value != defaults[name]
        }
        if types := options.pop("types", ()):
            options["types"] = dict(types)
        arguments = [*map(literal, self.source.keys), *(f"{name}={literal(value)}" for name, value in options.items())]
        lines = [f"sk.group_by_key({', '.join(arguments)})"]
        if self.windows is not None:
            lines.append(f".windowed_by({self.windows.code()})")
        if self._strategy != "on_window_update":
            lines.append(f'.emit("{self._strategy}")')
        if self._aggregations:
            named = keyword_arguments(
                {name: f"{aggregation.module}.{aggregation!r}" for name, aggregation in self._aggregations}
            )
            lines.append(f".aggregate({', '.join(named)})")
        if self._suppression is not None:
            lines.append(self._suppression.code())
        return lines

    def __repr__(self) -> str:
        lines = self.code()
        return lines[0] if len(lines) == 1 else "(\n    " + "\n    ".join(lines) + "\n)"

    def _repr_html_(self) -> str:
        return html_block(f"<pre>{escape_html(self)}</pre>")

    def to_java(
        self,
        *,
        class_name: str = "WindowedAggregation",
        store: Literal["rocksdb", "memory"] = "rocksdb",
        retention: Duration | None = None,
        types: Mapping[str, str] | None = None,
        key_type: KeyType = "string",
        timestamp: TimestampIn = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """A complete class for Kafka Streams 4.3, in Java.

        Args:
            store: "rocksdb" or "memory".
            retention: how long its store keeps a window; by default long enough for updates equal to the plan's, and a
                day more for final results.
        Example:
            >>> print(plan.to_java().code.partition("windowedBy(")[2].splitlines()[0])
            SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(10)))
        """
        from sessionkit.exports.java import JAVA, to_java
        from sessionkit.exports.request import request_of

        request = request_of(JAVA, self, types, key_type, timestamp, input_topic, output_topic)
        return to_java(request, class_name=class_name, store=store, retention=retention)

    def to_ksql(
        self,
        *,
        retention: Duration | None = None,
        types: Mapping[str, str] | None = None,
        key_type: KeyType = "string",
        timestamp: TimestampIn = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """Statements of ksqlDB: a stream over the topic, and a table of windows.

        Example:
            >>> print(plan.to_ksql().code.partition("WINDOW ")[2].splitlines()[0])
            SESSION (30 SECONDS, RETENTION 40001 MILLISECONDS, GRACE PERIOD 10 SECONDS)
        """
        from sessionkit.exports.ksql import KSQL, to_ksql
        from sessionkit.exports.request import request_of

        return to_ksql(
            request_of(KSQL, self, types, key_type, timestamp, input_topic, output_topic), retention=retention
        )

    def to_flink_sql(
        self,
        *,
        types: Mapping[str, str] | None = None,
        key_type: KeyType = "string",
        timestamp: TimestampIn = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """Flink SQL: two tables over topics, and an INSERT with a window function.

        Example:
            >>> "SESSION(TABLE `records` PARTITION BY `key`" in plan.to_flink_sql().code
            True
        """
        from sessionkit.exports.flink import FLINK, to_flink_sql
        from sessionkit.exports.request import request_of

        return to_flink_sql(request_of(FLINK, self, types, key_type, timestamp, input_topic, output_topic))

    def to_spark(
        self,
        *,
        types: Mapping[str, str] | None = None,
        key_type: KeyType = "string",
        timestamp: TimestampIn = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """A Python module for Structured Streaming, with Spark's own windows; only `plan.run` is exact.

        Example:
            >>> 'F.session_window("event_time", "30 seconds")' in plan.to_spark().code
            True
        """
        from sessionkit.exports.request import request_of
        from sessionkit.exports.spark_code import SPARK, to_spark

        return to_spark(request_of(SPARK, self, types, key_type, timestamp, input_topic, output_topic))


# ---- the start of a plan, and what takes a plan and its records


@called_as('sk.group_by_key("user", timestamp="at")')
def group_by_key(
    *keys: str,
    timestamp: str,
    sep: str | None = None,
    unit: TimeUnit | None = None,
    timezone: str | dt.tzinfo | None = None,
    ambiguous: Ambiguous = "raise",
    nonexistent: Nonexistent = "raise",
    partition: str | None = None,
    offset: str | None = None,
    partitions: int | None = None,
    on_bad_time: OnBadTime = "refuse",
    sort: bool | Literal["timestamp"] = False,
    types: Mapping[str, str] | None = None,
    arrival: str | None = None,
    idle_after: Duration | None = None,
    max_ahead: Duration | None = None,
    ahead: Ahead | None = None,
    format: str | None = None,
    separator: str | None = None,
    header: bool = True,
    label: str | None = None,
) -> Plan:
    """The start of a plan: which columns are the key and the event time, and how records lie in partitions.

    Args:
        keys: the key column; several are joined into one text with `sep`. Without one, all records of a partition are
            of one key, and results have no key column; exports and deployments need one.
        timestamp: the event time: a column of timestamps, dates or ISO 8601 text, or integers with `unit`.
        unit: the unit of times that are plain numbers: "s", "ms", "us" or "ns".
        timezone: the zone of times without one, such as "UTC"; `ambiguous` and `nonexistent` ("earliest", "latest")
            say what to do with times that occur twice or not at all when clocks change; of the former "infer" takes
            the second from the row on at which time steps back.
        partition, offset: columns that say where a record stands; each partition has its own stream time. Without
            them there is one partition and the order of rows is the order of arrival. Spark needs both.
        partitions: treat the records as a topic with this many partitions; Kafka's partitioner places the keys.
        on_bad_time: "refuse" raises on null and negative times, "drop" counts them as dropped, and "partition_time"
            gives them the greatest time so far in their partition, as Kafka's `UsePartitionTimeOnInvalidTimestamp`.
        sort: True sorts by `offset` first; "timestamp" sorts by event time, so that offsets count the sorted rows.
        types: types of columns in CSV and JSON, by Arrow's names, such as {"user": "int64"}. Without it keys are
            text as written, an empty field is a missing key, and `run.remarks()` tells what was guessed.
        arrival: the wall clock of the two rules below: a column that says when each record arrived, as `timestamp` is.
        idle_after: sessionkit's own rule, not Kafka's: a partition without a record for so long, by `arrival`, is idle.
            Its stream time moves to the smallest one of the partitions that are not, and never back.
        max_ahead, ahead: not Kafka's either: a record whose time is more than `max_ahead` after its own `arrival` is
            dropped (`ahead="drop"`) or counts ("keep"), and moves no stream time: a wrong clock closes no window.
        format: how texts write times, as `strftime` has it: "%d/%m/%Y %H:%M"; with the year of texts that have none in
            front: "2024 %b %d %H:%M:%S". Without it ISO 8601 is read, and what means one time only, with a remark.
        separator, header: what parts the fields of text files, if it does not show; False: no names, but c1, c2, ….
        label: a column by which pictures, explanations and `run.steps` name records, such as a page; decides nothing.
    Raises:
        InvalidArgument: a choice contradicts another.
    Example:
        >>> sk.group_by_key("user", timestamp="at")
        sk.group_by_key("user", timestamp="at")
        >>> sk.group_by_key("user", timestamp="at", arrival="received", max_ahead="300s", ahead="drop")
        sk.group_by_key("user", timestamp="at", arrival="received", max_ahead="5m", ahead="drop")
    """
    _check_keys(keys, sep)
    return Plan(Source(**locals() | written_down(idle_after, max_ahead, types)))


def _check_keys(keys: tuple[str, ...], sep: str | None) -> None:
    if len(keys) > 1 and not sep and all(isinstance(key, str) for key in keys):  # else Source says what is none
        want = 'sep="@" (or any text that is in none of the values) joins them into one key'
        raise InvalidArgument(problem("several key columns need a separator", list(keys), want))


def plan_and_data(plan: Any, data: Any, call: str) -> tuple[Plan, Any]:
    """The two that `sk.<call>(plan, data)` takes, also where they were given the other way round."""
    if isinstance(data, Plan) and not isinstance(plan, Plan):
        plan, data = data, plan
    if not isinstance(plan, Plan) or isinstance(data, Plan):
        got = f"{type(plan).__name__} and {type(data).__name__}"
        raise InvalidArgument(problem(f"sk.{call} takes a plan and its records", got, f"sk.{call}(plan, data)"))
    return plan, data
