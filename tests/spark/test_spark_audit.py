"""An audit of a Spark DataFrame: equal to the local audit of one partition, and of several to what theirs come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.audits.retentions import FOREVER_MS, Safe, safe_in_all
from sessionkit.audits.settings import Settings, settings_of
from sessionkit.audits.words import AuditInWords
from sessionkit.errors import InvalidArgument, NotBuilt, UnknownName, UnknownRecord
from tests.optional import SparkSession
from tests.spark.common import BASE, FUNCTIONS, IS_WHOLE, STRATEGIES, WINDOWS, in_turn, plan_of, records, shuffled

pytestmark = pytest.mark.spark

NAMED = {"count": sk.count(), "total": sk.sum("amount"), "words": sk.collect("word")}
HOWS: dict[str, dict[str, Any]] = {
    "as Kafka has it": {},
    "in memory": {"store": "memory", "caching": False},
    "a small cache": {"caching": "4 kB", "commit_interval": "2s"},
    "commits by count": {"store": "memory", "commit_every": 25, "emit_interval": "3s"},
    "started again": {"store": "memory", "restarts": [40, 160, 700]},
    "by a clock": {"clock": "at", "emit_interval": "3s", "retention": "1min"},
}
CASES = in_turn([(kind, strategy, how) for how in HOWS for kind in WINDOWS for strategy in STRATEGIES], [1, 2, 7])
# Of 48 some, with each deployment, kind, strategy and number of partitions, and those that lose most.
CHOSEN = CASES if IS_WHOLE else [CASES[place] for place in sorted({*range(0, 48, 5), 9, 11, 13, 33, 41})]


def local_audits(plan: sk.Plan, table: pa.Table, how: dict[str, Any]) -> dict[int, sk.Audit[pa.Table]]:
    """A local audit of each partition, in order; a restart behind its last record does not come about there."""
    found = {}
    for number in sorted(pc.unique(table["partition"]).to_pylist()):
        part = table.filter(pc.equal(table["partition"], number))
        rows = [each for each in how.get("restarts", ()) if each < len(part)]
        found[number] = sk.audit(plan, part, sk.Deployment(**{**how, "restarts": rows}))
    return found


def summed(local: dict[int, sk.Audit[pa.Table]]) -> dict[str, int]:
    counts = [each.counts() for each in local.values()]
    return {name: sum(each[name] for each in counts) for name in counts[0]}


def is_in(spans: list[Any], ms: int) -> bool:
    return any(first <= ms and (last is None or ms <= last) for first, last in spans)


def assert_in_all(of_spark: Any, several: list[Any], lowest_ms: int) -> None:
    """Beside each edge of any interval the retentions are safe, or unknown, as they are in all partitions together."""
    spans = [span for each in (of_spark, *several) for span in (*each[0], *each[1])]
    edges = {edge for span in spans for edge in span if edge is not None}
    for ms in {max(lowest_ms, edge + step) for edge in {*edges, lowest_ms, FOREVER_MS - 1} for step in (-1, 0, 1)}:
        are_safe = [is_in(safe, ms) for safe, _ in several]
        are_unknown = [is_in(unknown, ms) for _, unknown in several]
        assert is_in(of_spark[0], ms) == all(are_safe), ms
        possible = all(a or b for a, b in zip(are_safe, are_unknown, strict=True))
        assert is_in(of_spark[1], ms) == (possible and not all(are_safe)), ms
    for found in of_spark:
        ends = [-1 if last is None else last for _, last in found]
        assert all(first > before + 1 for (first, _), before in zip(found[1:], ends, strict=False))


def assert_equal(of_spark: Any, local: list[pa.Table]) -> None:
    """The same columns, in the same order, with the same rows, in the same order."""
    got = of_spark.toArrow()
    assert got.column_names == local[0].column_names
    rows = [row for table in local for row in table.cast(got.schema).to_pylist()]
    assert got.to_pylist() == rows


@pytest.mark.parametrize(("case", "partitions"), CHOSEN, ids=lambda each: str(each).replace("'", ""))
def test_an_audit_is_those_of_its_partitions(spark: SparkSession, case: tuple[str, str, str], partitions: int) -> None:
    kind, strategy, how = case
    check(spark, BASE.windowed_by(WINDOWS[kind]).aggregate(**NAMED).emit(strategy), partitions, HOWS[how])


@pytest.mark.parametrize(("until", "limit", "partitions"), [
    ("until_window_closes", (), 1), ("until_time_limit", ("5s",), 2), ("until_window_closes", (), 7),
])  # fmt: skip
def test_suppress(spark: SparkSession, until: Any, limit: tuple[str], partitions: int) -> None:
    plan = BASE.aggregate(**NAMED).suppress(until, *limit)
    check(spark, plan, partitions, {"store": "memory", "retention": "40s", "restarts": [30]})


def check(spark: SparkSession, plan: sk.Plan, partitions: int, how: dict[str, Any]) -> None:
    table = records(partitions)
    audit = sk.audit(plan, shuffled(spark, table), sk.Deployment(**how))
    local = local_audits(plan, table, how)
    each = list(local.values())
    assert audit.counts() == summed(local)
    assert audit.counts()["expected"] > 20
    assert audit.is_clean == all(one.is_clean for one in each)
    assert audit.loses_nothing == all(one.loses_nothing for one in each)
    assert "_safe" not in vars(audit), "retentions are looked for when they are asked for"
    assert_equal(audit.table(), [one.table() for one in each])
    assert_equal(audit.differences(), [one.differences() for one in each])
    lowest_ms, several = audit.settings.default_retention_ms, [one._safe for one in each]
    assert_in_all((audit.safe_retentions_ms, audit.unknown_retentions_ms), several, lowest_ms)
    if len(each) == 1:
        assert audit.settings == each[0].settings
        assert audit.safe_retentions_ms == each[0].safe_retentions_ms
        assert audit.unknown_retentions_ms == each[0].unknown_retentions_ms
        assert audit.words() == each[0].words()
        assert repr(audit) == repr(each[0])
        if each[0].cure is None:
            assert audit.cure is None
        else:
            assert audit.cure is not None
            assert audit.cure.words() == each[0].cure.words()
            assert_equal(audit.cure.table(), [each[0].cure.table()])
        return
    safe = Safe(tuple(audit.safe_retentions_ms), tuple(audit.unknown_retentions_ms))
    together = Together(local, safe, settings_of(plan, sk.Deployment(**how), None))
    assert audit.words() == together.words()
    assert (audit.cure is None) == (together.cure is None)
    if audit.cure is not None and together.cure is not None:
        assert audit.cure.settings.retention_ms == together.recommended_retention_ms
        assert audit.cure.counts() == together.cure.counts()


class Together(AuditInWords):
    """What local audits come to, with the remarks of the one of them that drops most."""

    _plan: Any = None
    _counts: Any = None
    _is_sure: Any = None
    _remarks: Any = None
    _safe: Any = None

    def __init__(self, local: dict[int, sk.Audit[pa.Table]], safe: Safe, settings: Settings) -> None:
        self.settings, self._local, self._safe = settings, local, safe
        said = {number: each for number, each in local.items() if each.expected._late_remarks}
        most = max(said, key=lambda number: said[number].counts()["dropped_records"], default=-1)
        remarks = said[most].expected._late_remarks if said else []
        self._is_sure = all(each._is_sure for each in local.values())
        self._remarks = [f"Partition {most}: {each}" for each in remarks]
        self._plan, self._counts = next(iter(local.values())).expected.plan, summed(local)

    def _replay(self, retention_ms: int) -> Together:
        local = {number: each._replay(retention_ms) for number, each in self._local.items()}
        return Together(local, self._safe, self.settings)


@pytest.mark.parametrize("plan", [plan_of(WINDOWS["session"], "on_window_close"), FUNCTIONS], ids=["built in", "own"])
def test_values_of_every_type(spark: SparkSession, plan: sk.Plan) -> None:
    table, how = records(2), {"store": "memory", "caching": False, "retention": "15s"}
    audit = sk.audit(plan, shuffled(spark, table), sk.Deployment(**how))
    assert_equal(audit.table(), [each.table() for each in local_audits(plan, table, how).values()])


@pytest.mark.essential
def test_what_is_told_of_a_partition_alone(spark: SparkSession) -> None:
    plan, table, how = BASE.aggregate(**NAMED).emit("on_window_close"), records(2), {"store": "memory"}
    audit = sk.audit(plan, shuffled(spark, table), sk.Deployment(**how))
    number, one = next(iter(local_audits(plan, table, how).items()))
    here = audit.local(number)
    assert here.words() == one.words()
    assert here.table().to_pylist() == one.table().cast(here.table().schema).to_pylist()
    assert here.figure().data
    with pytest.raises(UnknownRecord, match="the audit of an application needs its partition as well"):
        audit.local()
    for name in ("figure", "run", "expected", "beside_emit_on_close"):
        with pytest.raises(
            UnknownName, match=rf"audit has no such name; got {name}; audit\.local\(partition\)\.{name}"
        ):
            getattr(audit, name)


def test_no_records_lose_nothing(spark: SparkSession) -> None:
    plan, table = BASE.aggregate(**NAMED).emit("on_window_close"), records(1).slice(0, 0)
    audit, local = sk.audit(plan, spark.createDataFrame(table)), sk.audit(plan, table)
    assert (audit.counts(), audit.words()) == (local.counts(), local.words())
    assert audit.safe_retentions_ms == local.safe_retentions_ms
    assert audit.table().columns == local.table().column_names
    assert audit.table().count() == 0


def test_what_is_refused(spark: SparkSession) -> None:
    plan, data = BASE.aggregate(**NAMED), shuffled(spark, records(2))
    without = sk.group_by_key("key", timestamp="at").windowed_by(WINDOWS["session"]).count()
    stream = spark.readStream.format("rate").load()
    calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: sk.audit(without, data), InvalidArgument, "must name its partition and offset columns"),
        (lambda: sk.audit(plan, data, sk.Deployment(restarts=[(3, "changelog")])), NotBuilt, "on the same disk"),
        (lambda: sk.audit(plan, data, sk.Deployment(retention="1s")), InvalidArgument, "retention"),
        (lambda: sk.audit(plan, stream), InvalidArgument, "records that are all there; got a streaming DataFrame"),
    ]  # fmt: skip
    for call, kind, match in calls:
        with pytest.raises(kind, match=match):
            call()


@pytest.mark.parametrize("several", [
    [], [((5, 9), (20, 30)), ((7, 8), (9, None))], [((5, 7), (20, 30)), ()], [((5, 6),), ((7, None),)],
    [((5, 6), (13, 30)), ((5, 40),), ((2, 35),)],
])  # fmt: skip
def test_what_is_safe_in_all(several: list[Any]) -> None:
    """Also what is unknown of one, and safe or lost with another."""
    for unknown in ((), ((10, 12),), ((1, 3), (31, None))):
        of_each = [Safe(spans, unknown if place == 0 else ()) for place, spans in enumerate(several)]
        assert_in_all(safe_in_all(of_each, 1), of_each, 1)
    assert several or safe_in_all([], 3) == Safe(((3, None),), ())
