"""What is said and drawn of a run over all keys: Spark's tasks count, and only counts come to this process."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sessionkit.audits.audit import Audit
from sessionkit.audits.retentions import Safe, safe_in_all
from sessionkit.audits.settings import settings_of
from sessionkit.audits.verdicts import AS_IT_SHOULD
from sessionkit.audits.words import AuditInWords
from sessionkit.base.arrays import Longs
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import INT64_MAX, as_duration
from sessionkit.base.text import of_key, plural
from sessionkit.errors import NotBuilt, problem
from sessionkit.spark import functions as F
from sessionkit.spark.checkpoint import waiting_results
from sessionkit.spark.types import column, readable_errors
from sessionkit.spark.worker.deployed_partition import audit_rows, audited, told
from sessionkit.steps.summaries import MOVERS
from sessionkit.suppression.settings import Suppression
from sessionkit.views.explain.clock import Mover, MoversInWords
from sessionkit.views.over_time.over_time import MOST_POINTS, STRETCHES, Course, LatencyInWords, OpenInWords, Waits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sessionkit.deployed.deployment import Deployment
    from sessionkit.plan import Plan
    from sessionkit.spark.batch_run import SparkRun
    from sessionkit.views.words import Said

MOST_DESCRIBED = 50  # movers that come to this process: more than a picture shows
_LONG, _TEXT, _SPANS = pa.int64(), pa.string(), pa.list_(pa.list_(pa.int64()))
_TOLD = {"partition": _LONG, "counts": pa.map_(_TEXT, _LONG), "is_sure": pa.bool_(), "remarks": pa.list_(_TEXT)}


class _Summary:
    """What each of them starts from."""

    def __init__(self, run: SparkRun) -> None:
        self._run = run
        self.windows = run.plan._complete_windows

    @property
    def _said(self) -> Said:
        return self._run._said


@answers_calls("latency")
class SparkLatency(_Summary, LatencyInWords):
    """`Latency` of a run on Spark: how often each delay is there comes to this process.

    Example:
        >>> latency = run.latency()  # doctest: +SKIP
        >>> latency.words(), latency.figure(), latency.table().show(), latency.least_ms  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per final result, as `Latency.table` has them, partition after partition."""
        return self._run._form.shown(self._rows)

    @property
    def _rows(self) -> DataFrame:
        return self._run._summary("finals", self._run._empty.latency().table().schema)

    @cached_property
    def _waits(self) -> Waits:
        with readable_errors():
            found = self._rows.groupBy("delay_ms").agg(F.count(F.lit(1)).alias("count")).toArrow().sort_by("delay_ms")
        return Waits(*(found[name].to_numpy() for name in ("delay_ms", "count")))

    @property
    def _open_count(self) -> int:
        return self._run._total("open")


@answers_calls("open_windows")
class SparkOpenWindows(_Summary, OpenInWords):
    """`OpenWindows` of a run on Spark, where the windows of each partition are counted apart.

    Example:
        >>> held = run.open_windows()  # doctest: +SKIP
        >>> held.most, held.at_end, held.words(), held.figure(), held.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per record: partition, offset, stream_time, open_count (in its partition)."""
        return self._run._form.shown(self._rows)

    @property
    def _rows(self) -> DataFrame:
        return self._run._summary("open", self._run._empty.open_windows().table().schema)

    @property
    def most(self) -> int:
        """The largest number at once in a partition."""
        return int(self._extremes["most"]["open_count"]) if self._extremes["records"] else 0

    @property
    def at_end(self) -> int:
        """The number in all partitions after their last records: windows that nothing has closed."""
        return self._run._total("open")

    @cached_property
    def _extremes(self) -> dict[str, Any]:
        first = F.struct("open_count", -column("partition"), -column("offset"), "stream_time_ms")
        time = column("stream_time_ms")
        found = {"records": F.count(F.lit(1)), "most": F.max(first), "low_ms": F.min(time), "high_ms": F.max(time)}
        with readable_errors():
            [row] = self._rows.agg(*(each.alias(name) for name, each in found.items())).collect()
        return row.asDict(recursive=True)

    @property
    def _first_ms(self) -> int:
        return int(self._extremes["most"]["stream_time_ms"])

    @property
    def _partition_count(self) -> int:
        return len(self._run._partition_rows)

    _note = "several partitions: the numbers are those of each"

    @property
    def _where(self) -> str:  # type: ignore[override]
        return f" in partition {-self._extremes['most']['col2']}" if self._partition_count > 1 else ""

    @property
    def _where_all(self) -> str:  # type: ignore[override]
        return " in all partitions" if self._partition_count > 1 else ""

    def _course(self) -> Course:
        rows, low_ms, time = self._rows, self._extremes["low_ms"], column("stream_time_ms")
        with readable_errors():
            if self._extremes["records"] <= MOST_POINTS:
                found = rows.toArrow()
                times, counts, offsets = (found[name].to_numpy() for name in ("stream_time_ms", "open_count", "offset"))
                return Course(times, counts, counts, counts.astype(np.float64), offsets)
            length = max(self._extremes["high_ms"] - low_ms, 1)
            place = F.least(F.floor((time - low_ms) * STRETCHES / length), F.lit(STRETCHES - 1))
            open_count = column("open_count")
            each = {
                "time": F.min(time), "low": F.min(open_count), "high": F.max(open_count),
                "usual": F.percentile(open_count, F.lit(0.5)),
            }  # fmt: skip
            grouped = rows.groupBy(place.alias("place")).agg(*(found.alias(name) for name, found in each.items()))
            found = grouped.toArrow().sort_by("place")
        times, low, high, usual = (found[name].to_numpy() for name in each)
        return Course(times, low, high, usual, None)


@answers_calls("clock")
class SparkClock(_Summary, MoversInWords):
    """`Clock` of a run on Spark: the records to which most others are lost come to this process.

    Example:
        >>> moved = run.clock()  # doctest: +SKIP
        >>> moved.late_count, moved.words(), moved.figure(), moved.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row for each record to which others were lost, as `Clock.table` has them, those with most first."""
        moved = F.when(column("moved_ms") >= 0, column("moved_ms"))
        share = column("late") / F.lit(max(self.late_count, 1))
        rows = self._ranked.select(
            "partition", "offset", "key", "timestamp_ms", F.lit("record").alias("what"), moved.alias("moved_ms"),
            "late", share.alias("share"),
        )  # fmt: skip
        return self._run._form.shown(rows)

    @property
    def _ranked(self) -> DataFrame:
        rows = self._run._summary("movers", self._run._with_key(MOVERS, at=2))
        return rows.orderBy(F.desc("late"), "partition", "offset")

    @cached_property
    def _lost(self) -> Longs:
        with readable_errors():
            found = self._ranked.groupBy("late").agg(F.count(F.lit(1)).alias("count")).toArrow()
        late, count = (found[name].to_numpy() for name in ("late", "count"))
        order = np.argsort(-late)
        return np.repeat(late[order], count[order])

    @property
    def late_count(self) -> int:
        """How many records came too late."""
        return int(self._lost.sum())

    @property
    def _record_count(self) -> int:
        return self._run._total("records")

    @property
    def _are_dropped(self) -> bool:
        return self._run.counts()["late"] == self.late_count

    @cached_property
    def _top(self) -> list[dict[str, Any]]:
        with readable_errors():
            return [row.asDict() for row in self._ranked.limit(MOST_DESCRIBED).collect()]

    def _mover(self, rank: int) -> Mover:
        row = self._top[rank]
        where = f"partition {row['partition']}, " if len(self._run._partition_rows) > 1 else ""
        name = f"Record {row['offset']} ({where}{of_key(row['key'])})"
        return Mover(name, row["timestamp_ms"], row["moved_ms"], row["ahead_ms"], row["late"])


@answers_calls("times")
class SparkPartitionTimes(_Summary):
    """`PartitionTimes` of a run on Spark, which does not know how partitions arrived beside each other.

    Example:
        >>> run.partition_times().table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per partition: partition, records, stream_time, behind_ms and open_count, all at the end.

        `behind_ms` is how far it is behind the one that is ahead. What else `PartitionTimes.table` tells goes by the
        order in which records of several partitions arrived.
        """
        rows = self._run._partition_rows
        ahead = max((row["stream_time_ms"] for row in rows), default=-1)
        columns: dict[str, list[Any]] = {
            "partition": [row["partition"] for row in rows],
            "records": [row["records"] for row in rows],
            "stream_time_ms": [row["stream_time_ms"] for row in rows],
            "behind_ms": [ahead - row["stream_time_ms"] if row["stream_time_ms"] >= 0 else None for row in rows],
            "open_count": [row["open"] for row in rows],
        }
        return self._run._shown_here(columns)

    def __repr__(self) -> str:
        count = len(self._run._partition_rows)
        if count <= 1:
            return "There is one partition: nothing is ahead of it or behind it." if count else "There are no records."
        return (
            f"{plural(count, 'partition')}; .table() says how far each is behind the one that is ahead at the end. How "
            "they arrived beside each other is not known."
        )


@answers_calls("buffer")
class SparkSuppressBuffer(_Summary):
    """`SuppressBuffer` of a run on Spark: what waits at the end of each partition.

    Example:
        >>> buffer = run.suppress_buffer()  # doctest: +SKIP
        >>> buffer.most_records, buffer.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """The results that wait, by partition in the order in which they would go out."""
        return self._run._form.shown(self._rows)

    @cached_property
    def _rows(self) -> DataFrame:
        return self._run._summary("waiting", self._run._empty.changelog().schema)

    @cached_property
    def most_records(self) -> int:
        """The most that a partition's buffer held at once: what `max_records` would have to allow."""
        return max((each["most"] for each in self._most), default=0)

    @cached_property
    def _most(self) -> Sequence[Mapping[str, int]]:
        return [*self._run._counts_by_partition("most_waiting").values()]

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once: what `max_bytes` would have to allow. Starts a job."""
        plan = self._run.plan
        settings = cast(Suppression, plan._suppression)
        has_limit = settings.counts_bytes
        counting = settings if has_limit else dataclasses.replace(settings, most_bytes=INT64_MAX)
        run = dataclasses.replace(self._run, plan=dataclasses.replace(plan, _suppression=counting))
        return max((each["bytes"] for each in run._counts_by_partition("most_waiting").values()), default=0)

    def __repr__(self) -> str:
        with readable_errors():
            waiting = self._rows.count()
        verb, most = "waits" if waiting == 1 else "wait", f"no partition held more than {self.most_records:,} at once"
        return f"buffer of suppress: {plural(waiting, 'result')} {verb}; {most}"


@answers_calls("buffer")
class StreamSuppressBuffer(SparkSuppressBuffer):
    """`SuppressBuffer` of a query: what waits after a micro-batch, and the most that did since its first record."""

    def __init__(self, run: Any, checkpoint: str, batch: int) -> None:
        super().__init__(run)
        heads, self._rows = waiting_results(checkpoint, run._job("waiting", run._empty.changelog().schema), batch)
        self._most = [Counter(json.loads(head.counts)) for head in heads]

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once; NotBuilt where the plan does not limit them."""
        if not cast(Suppression, self._run.plan._suppression).counts_bytes:
            want = "plan.suppress(…, max_bytes=…), or plan.run(df) of the same records"
            raise NotBuilt(problem("a stream only counts bytes that are limited", "no max_bytes", want))
        return max((each["bytes"] for each in self._most), default=0)


@answers_calls("audit", elsewhere=(Audit, "audit.local(partition)"))
class SparkAudit(AuditInWords):
    """`Audit` of a Spark DataFrame: what the partitions come to together, each an application of its own.

    Retentions are safe where they are in every partition. They are looked for in a job of their own, when asked for.

    Example:
        >>> audit = sk.audit(plan, spark.read.parquet("clicks"), sk.Deployment(store="memory"))  # doctest: +SKIP
        >>> audit.words(), audit.counts(), audit.table().show(), audit.differences().show()  # doctest: +SKIP
        >>> audit.is_clean, audit.loses_nothing, audit.settings, audit.local(3).figure()  # doctest: +SKIP
        >>> audit.safe_retentions_ms, audit.unknown_retentions_ms, audit.cure  # doctest: +SKIP
        >>> audit.smallest_retention_ms, audit.recommended_retention_ms  # doctest: +SKIP
    """

    def __init__(self, run: SparkRun, how: Deployment) -> None:
        self._run, self._asked, self.settings = run, (run._zoned_plan, how), settings_of(run.plan, how, None)

    def table(self) -> DataFrame:
        """One row per window, as `Audit.table` has them, partition after partition."""
        shown = self._run._typed(self._run._empty.table().schema)
        types = {"key": shown.field("key").type, "window_start_ms": _LONG, "window_end_ms": _LONG}
        types |= {"verdict": _TEXT, "sent_count": _LONG, "partition": _LONG}
        for name, _ in self._run.plan._aggregations:
            types[name] = types[f"kafka_{name}"] = shown.field(name).type
        return self._run._form.shown(self._rows("windows", types))

    def differences(self) -> DataFrame:
        """The rows of `table()` that are not as they should be."""
        return self.table().where(column("verdict") != AS_IT_SHOULD)

    def local(self, partition: int | None = None) -> Audit[pa.Table]:
        """The audit of one partition in this process, with its runs and its figure; of several, one has to be named."""
        records = self._run._records_here(self._run._only_partition(partition, "the audit of an application"))
        return audited(*self._asked, records)

    def _replay(self, retention_ms: int) -> SparkAudit:
        retention = as_duration(retention_ms)
        return SparkAudit(self._run, dataclasses.replace(self.settings.deployment, retention=retention))

    def _rows(self, view: str, types: dict[str, pa.DataType]) -> DataFrame:
        job = self._run._job(view, pa.schema(types))
        return self._run._over_partitions(partial(audit_rows, job, *self._asked), job.schema)

    def _here(self, view: str, types: dict[str, pa.DataType]) -> list[dict[str, Any]]:
        with readable_errors():
            return self._rows(view, types).toArrow().to_pylist()

    @cached_property
    def _told(self) -> list[dict[str, Any]]:
        """What was found in each partition."""
        found = self._here("told", _TOLD) or [told(0, self.local())]
        return [{**each, "counts": dict(each["counts"])} for each in found]

    @property
    def _plan(self) -> Plan:
        return self._run.plan

    @property
    def _counts(self) -> dict[str, int]:
        counts = [each["counts"] for each in self._told]
        return {name: sum(each[name] for each in counts) for name in counts[0]}

    @property
    def _is_sure(self) -> bool:
        return all(each["is_sure"] for each in self._told)

    @property
    def _remarks(self) -> list[str]:
        """Those of the partition that drops most records."""
        most = max(self._told, key=lambda each: (bool(each["remarks"]), each["counts"]["dropped_records"]))
        where = f"Partition {most['partition']}: " if len(self._told) > 1 else ""
        return [f"{where}{said}" for said in most["remarks"]]

    @cached_property
    def _safe(self) -> Safe:
        found = [Safe(**row) for row in self._here("safe", dict.fromkeys(Safe._fields, _SPANS))]
        return safe_in_all(found, self.settings.default_retention_ms)
