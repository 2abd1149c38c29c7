"""Settings tried on Spark: tasks replay the records of their partitions, and their small answers are added up here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.advice.pauses import FEWEST_OF_A_PACE, OWN_PACE, Pauses
from sessionkit.advice.replay import Counts, Replay, order_lag_ms
from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import AHEAD, BAD_TIME, NULL_KEY
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.text import plural
from sessionkit.engine.apart import Apart
from sessionkit.records.lateness.causes import Cause
from sessionkit.records.lateness.order import MANY_LATE, Elsewhere, behind_cause, both
from sessionkit.records.row_names import lacking_remarks
from sessionkit.records.source import Source
from sessionkit.records.time_statistics import FEW, SPREADS, usual_span_between
from sessionkit.spark import functions as F
from sessionkit.spark.reading.tasks import SparkReading
from sessionkit.spark.types import column, readable_errors
from sessionkit.spark.worker import replay as ask
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LONG, _TEXT = pa.int64(), pa.string()
_COUNTS = dict.fromkeys(("place", *Counts._fields), _LONG)
_FACTS = {
    **dict.fromkeys(("records", "usable", "null_key", "bad_time", "ahead", "late", "behind_ms"), _LONG),
    "keys": _TEXT, "remarks": pa.list_(_TEXT),
}  # fmt: skip
_WHY = {
    "why": _TEXT, "way": _TEXT, "is_order": pa.bool_(), "left_out": _LONG, "late": _LONG, "left": _LONG,
    "behind_ms": pa.list_(_LONG), "behind_late": _LONG, "behind_name": _TEXT,
}  # fmt: skip
_COUNTED = re.compile(r"of ([\d,]+) records?;")  # in the remark on a key that is a mark for a missing value


class SparkReplay(Replay):
    """The records of a DataFrame, replayed in the tasks of the partitions, less those that are left out."""

    def __init__(self, run: SparkReading, left_out: ask.Looked) -> None:
        self._run, self._left_out, self.frame = run, left_out, "pandas"
        self._late: dict[WindowKind, int] = {}

    @classmethod
    @contextmanager
    def over(cls, run: SparkReading, *, many: bool) -> Iterator[SparkReplay]:
        """The records of a run; for `many` jobs Spark keeps them meanwhile, if they are shuffled."""
        is_kept = many and isinstance(run._layout, str)
        if is_kept:
            run._packed.persist()
        try:
            yield cls(run, ask.Looked())
        finally:
            if is_kept:
                run._packed.unpersist()

    # ---- jobs

    def _answers(self, question: Any, columns: dict[str, pa.DataType], **how: Any) -> DataFrame:
        schema = pa.schema({"partition": _LONG, **columns})
        task = partial(ask.answers, self._run._job("replay", schema), partial(question, **how), self._left_out)
        return self._run._over_partitions(task, schema)

    def _sums(self, answers: DataFrame, name: str) -> dict[str, Longs]:
        """The sums of all other columns for each value of this one, which rises."""
        others = [each for each in answers.columns if each not in ("partition", name)]
        sums = answers.groupBy(name).agg(*(F.sum(column(each)).alias(each) for each in others))
        found = _here(sums).sort_by(name)
        return {each: found[each].to_numpy() for each in found.column_names}

    # ---- counts

    def counts_of(self, several: Sequence[WindowKind]) -> list[Counts]:
        found = self._sums(self._answers(ask.counts, _COUNTS, several=tuple(several)), "place")
        columns = [found[name].tolist() or [0] * len(several) for name in Counts._fields]  # of no records no answer
        return [Counts(*each) for each in zip(*columns, strict=True)]

    def expect(self, several: Iterable[WindowKind]) -> None:
        wanted = list(dict.fromkeys(several))
        if wanted and wanted[0] not in self._late:
            wanted = [windows for windows in wanted if windows not in self._late]
            self._late |= {each: counts.late for each, counts in zip(wanted, self.counts_of(wanted), strict=True)}

    def late(self, windows: WindowKind) -> int:
        self.expect([windows])
        return self._late[windows]

    def apart(self, windows: WindowKind) -> Apart:
        found = _here(self._answers(ask.apart, {"sessions": _LONG, "grace_ms": _LONG}, windows=windows)).to_pydict()
        return Apart(sum(found["sessions"]), max((ms for ms in found["grace_ms"] if ms is not None), default=None))

    # ---- facts about all records

    @cached_property
    def _facts(self) -> pa.Table:
        """A row for each partition."""
        answers = self._answers(ask.facts, _FACTS, lag_ms=order_lag_ms(self._run.plan))
        return _here(answers).sort_by("partition")

    def _total(self, name: str) -> int:
        return sum(self._facts[name].to_pylist())

    @cached_property
    def usable(self) -> int:
        return self._total("usable")

    @property
    def behind_ms(self) -> int:
        return max(self._facts["behind_ms"].to_pylist(), default=0)

    @property
    def remarks(self) -> tuple[str, ...]:
        counts: dict[str, int] = {}  # by what is said beside the number of records
        for said in self._facts["remarks"].combine_chunks().flatten().to_pylist():
            found = _COUNTED.search(said)
            words = _COUNTED.sub("of \0;", said)
            counts[words] = counts.get(words, 0) + int(found[1].replace(",", "") if found else 0)
        remarks = [words.replace("\0", plural(count, "record")) for words, count in counts.items()]
        named = {NULL_KEY: "null_key", BAD_TIME: "bad_time", AHEAD: "ahead"}
        lacking = {code: self._total(name) for code, name in named.items()}
        return (*remarks, *lacking_remarks(lacking, self._total("records"), self._run.plan.source.lacks))

    @cached_property
    def _span(self) -> tuple[int, int]:
        """`usual_span` of all times, of which the outermost come here only if some of them may be far off."""
        few = int(FEW * self.usable)
        if not few:
            return 0, INT64_MAX
        times, share = self._answers(ask.times, {"time_ms": _LONG}), 1.5 * FEW + 3 / self.usable
        with readable_errors():
            first, low, high, last = times.approxQuantile("time_ms", [0.0, share, 1 - share, 1.0], FEW / 4)
        if max(low - first, last - high) <= SPREADS * (high - low):  # more than few are beyond these two
            return 0, INT64_MAX
        outer = times.where((column("time_ms") <= low) | (column("time_ms") >= high))
        outermost = np.sort(_here(outer)["time_ms"].to_numpy())
        return usual_span_between(outermost[: few + 1], outermost[-few - 1 :])

    # ---- pauses

    def pauses(self) -> Pauses:
        answers = self._answers(ask.pauses, {"length_ms": _LONG, "count": _LONG}, span=self._span)
        found = self._sums(answers, "length_ms")
        return Pauses(found["length_ms"], found["count"], self._part_keys)

    def _part_keys(self, gaps_ms: list[int]) -> list[bool]:
        """As of `Pauses`: Spark adds up the pauses that a key has in several partitions."""
        if not gaps_ms:
            return []
        names = [str(place) for place in range(len(gaps_ms))]
        key = self._run._empty.trace.keys.type
        columns = {"key": key, "many": _LONG, **dict.fromkeys(names, _LONG)}
        answers = self._answers(ask.slow_keys, columns, span=self._span, gaps_ms=tuple(gaps_ms))
        by_key = answers.groupBy("key").agg(*(F.sum(column(each)).alias(each) for each in ("many", *names)))
        many, wanted = column("many"), []
        for name in names:
            slow = column(name)
            is_own = (many >= FEWEST_OF_A_PACE) & (slow >= F.lit(OWN_PACE) * many)
            most = 2 * F.sum(F.when(is_own, slow).otherwise(0)) > F.sum(slow)
            wanted.append((most & ~F.min(is_own)).alias(name))
        found = _here(by_key.agg(*wanted)).to_pylist()[0]
        return [bool(found[name]) for name in names]

    # ---- causes

    def causes(self, source: Source, lag_ms: int) -> list[Cause]:
        late, numbers, first_ms = self._facts["late"].to_pylist(), self._facts["partition"].to_numpy(), self._span[0]
        if sum(late) < MANY_LATE and not first_ms and not (late and source.before_1970):
            return []
        worst = int(np.argmax(late))
        others = self._facts.take(np.delete(np.arange(len(late)), worst))
        keys = {each for each in self._facts["keys"].to_pylist() if each is not None}
        elsewhere = Elsewhere(sum(others["usable"].to_pylist()), sum(others["late"].to_pylist()), len(keys) > 1)
        self._looked = ask.Looked(first_ms, int(numbers[worst]), lag_ms, elsewhere)
        answers = self._answers(ask.why_late, _WHY, looked=self._looked, numbers=numbers)
        rows, cause, behind = _here(answers).sort_by("partition").to_pylist(), None, None
        for row in rows:
            if row["why"] is not None:  # which rows are left out only the task knows
                rest = None if row["left_out"] is None else np.arange(row["left_out"])
                told = {name: row[name] for name in ("why", "way", "is_order", "late", "left")}
                cause = Cause(**told, to_leave_out=rest, records=self.usable)
        behind_ms = np.array([ms for row in rows for ms in row["behind_ms"]], np.int64)
        if len(behind_ms):
            name = next(row["behind_name"] for row in rows if row["behind_name"])
            late_ones = sum(row["behind_late"] for row in rows)
            behind = behind_cause(behind_ms, first_ms, late_ones, self.usable, name)
            behind = behind and behind._replace(to_leave_out=np.arange(len(behind_ms)))
        return both(cause, behind)

    def without(self, causes: list[Cause]) -> tuple[SparkReplay, int]:
        left_out = self._looked
        if not any(cause.is_behind for cause in causes):
            left_out = left_out._replace(before_ms=-INT64_MAX)
        if all(cause.is_behind for cause in causes):
            left_out = left_out._replace(partition=-1)
        count = sum(len(cause.to_leave_out) for cause in causes if cause.to_leave_out is not None)
        return SparkReplay(self._run, left_out), count


def _here(answers: DataFrame) -> pa.Table:
    with readable_errors():
        return answers.toArrow()
