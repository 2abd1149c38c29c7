"""What every aggregation that compiles promises: its functions obey the laws of a fold, and its loops equal them.

Each test runs over the registry, and over the example that is not in it.
"""

import dataclasses
import datetime as dt
import inspect
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.aggregations import BUILT_INS, Aggregation
from sessionkit.aggregations.accumulators import LOOPS
from sessionkit.aggregations.folds import PythonFold, value_column
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.lives import memory_store
from sessionkit.engine.commit import commit
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome, RecordsInWords
from sessionkit.errors import NotBuilt, NumberOverflow, UnsupportedData
from sessionkit.records.batch import read_records
from sessionkit.records.source import Source
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.windows.session import SessionWindows
from tests.contract.examples import variance
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import group_in_ms, plan_of
from tests.optional import HAS_SKETCHES

WINDOWS = SessionWindows(inactivity_gap_ms=3, grace_ms=30)
RETENTION_MS = 40
SOURCE = Source(keys=("key",), timestamp="time", unit="ms", offset="offset")
EPOCH = dt.datetime(1970, 1, 1)
SMALL = st.integers(-9, 9)

# A type of column, and values of it that are easily equal, extreme, or out of order.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), SMALL | st.sampled_from([2**40, -(2**40)])),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float16": (pa.float16(), SMALL.map(np.float16)),
    "float32": (pa.float32(), st.floats(width=32, allow_infinity=False) | st.just(-0.0)),
    "float64": (pa.float64(), st.floats() | st.just(-0.0)),
    "decimal": (pa.decimal128(20, 2), (SMALL | st.just(10**17)).map(lambda number: Decimal(number) / 4)),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        SMALL.map(lambda days: EPOCH.replace(tzinfo=dt.UTC) + dt.timedelta(days, 0, 7)),
    ),
    "local time": (pa.timestamp("ns"), SMALL.map(lambda days: EPOCH + dt.timedelta(days))),
    "date": (pa.date32(), SMALL.map(lambda days: EPOCH.date() + dt.timedelta(days))),
    "time of day": (pa.time32("s"), st.integers(0, 23).map(dt.time)),
    "duration": (pa.duration("ms"), SMALL.map(lambda ms: dt.timedelta(milliseconds=ms))),
    "string": (pa.string(), st.text(max_size=2)),
    "large string": (pa.large_string(), st.text(max_size=2)),
    "category": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["x", "y", "z"])),
    "view": (pa.string_view(), st.text(max_size=2)),  # polars' text
    "binary": (pa.binary(), st.binary(max_size=2)),
    "list": (pa.list_(pa.int64()), st.lists(SMALL, max_size=2)),
    "struct": (pa.struct({"a": pa.int64()}), SMALL.map(lambda number: {"a": number})),
    "null": (pa.null(), st.none()),
}


# The example registers itself when it is imported. It is taken out again at once, and put back for these tests alone.
APPROXIMATE = {
    "approx_median": partial(sk.median, approx=True), "approx_quantile": partial(sk.quantile, approx=True),
    **({"approx_count_distinct": partial(sk.count_distinct, approx=True)} if HAS_SKETCHES else {}),
}  # fmt: skip
FORMS = tuple(APPROXIMATE)  # of a public function, told by a setting
MADE = {**BUILT_INS, "variance": variance.variance, **APPROXIMATE}
EXAMPLES = ("variance",)
BUILT_INS.pop("variance", None)


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    BUILT_INS.update({name: MADE[name] for name in EXAMPLES})
    yield
    for name in EXAMPLES:
        del BUILT_INS[name]


GIVEN: dict[str, tuple[Any, ...]] = {
    "count": (),
    "quantile": ("value", 0.9),
    "approx_quantile": ("value", 0.9),
    "top": ("value", 2),
}  # the others are given a column
NOT_KAFKA = (  # most exports refuse them
    *(*FORMS, "count_distinct", "earliest", "latest", "median", "quantile", "std", "top"),
)
WRITTEN = {"to_flink_sql": ("count_distinct", "std"), "to_spark": ("count_distinct", "median", "quantile", "std")}


def aggregation(name: str) -> Aggregation:
    return MADE[name](*GIVEN.get(name, ("value",)))


def takes(name: str, column: str) -> bool:
    kind, made = COLUMNS[column][0], aggregation(name)
    return not made.columns or made.takes(kind) or pa.types.is_null(kind)


PAIRS = [(name, column) for name in MADE for column in COLUMNS if takes(name, column)]
REFUSED = [(name, column) for name in MADE for column in COLUMNS if column != "view" and not takes(name, column)]


def stream_of(column: str) -> st.SearchStrategy[pa.Table]:
    """Records in few and close sessions that merge now and then, with nulls among the values."""
    kind, values = COLUMNS[column]
    record = st.tuples(st.sampled_from("ab"), st.integers(0, 40), values | st.none())
    return st.lists(record, max_size=30).map(
        lambda rows: pa.table(
            {"key": pa.array([key for key, _, _ in rows], pa.string()),
             "time": pa.array([time for _, time, _ in rows], pa.int64()), "offset": np.arange(len(rows)),
             "value": _array([value for _, _, value in rows], kind)},
        )
    )  # fmt: skip


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def run(aggregation: Aggregation, table: pa.Table, store: MemorySessionStore | None = None) -> Outcome:
    batch = read_records(table, SOURCE, aggregation.columns)
    return run_kernel(WINDOWS, {"result": aggregation}, batch, retention_ms=RETENTION_MS, store=store)


def told(values: Any, kind: pa.DataType | None = None) -> list[str]:
    """Results so that they compare bit for bit: NaN equals itself, and -0.0 is not 0.0."""
    if kind is not None:
        values = pa.array(list(values), kind.value_type if pa.types.is_dictionary(kind) else kind)
    return [repr(value) for value in (values.to_pylist() if isinstance(values, pa.Array) else list(values))]


# ---- what one has to say of itself


def test_there_are_built_ins() -> None:
    kafka = {"count", "sum", "min", "max", "mean", "first", "last", "collect"}
    assert set(BUILT_INS) - set(EXAMPLES) == {*kafka, *NOT_KAFKA} - set(FORMS)
    assert set(BUILT_INS) == set(MADE) - set(FORMS)


@pytest.mark.parametrize("name", MADE)
def test_it_says_what_the_contract_asks_for(name: str) -> None:
    made = aggregation(name)
    assert made.built_in == name, "exports know it by the name that it is registered under"
    assert made.parts, "a built-in compiles; reduce and aggregation are for Python functions"
    stored = [part.name for part in made.parts]
    assert len(set(stored)) == len(stored), "a store tells the parts apart by their names"
    aggregate = made.initializer()
    if len(stored) > 1:
        assert isinstance(aggregate, dict) and sorted(aggregate) == sorted(stored), "its functions keep the same parts"
    if any(not takes(name, column) for column in COLUMNS):
        assert made.wants, "whoever gives another column is told which would do"
    text = inspect.getdoc(getattr(MADE[name], "func", MADE[name])) or ""
    assert text.partition("\n\n")[0].endswith(".") and ">>> " in text.partition("Example:")[2]


@pytest.mark.parametrize("name", MADE)
def test_its_code_makes_it_again(name: str) -> None:
    made = aggregation(name)
    again = eval(made.code, dict(MADE))  # noqa: S307
    assert again == made and hash(again) == hash(made)
    plan = sk.group_by_key("k", timestamp="at").windowed_by(WINDOWS).aggregate(it=made)
    assert f"aggregate(it={made.module}.{made.code})" in repr(plan)
    assert made.module == ("variance" if name in EXAMPLES else "sk")
    assert made != sk.reduce(max, "value")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("target", ["to_java", "to_ksql", "to_flink_sql", "to_spark"])
def test_an_export_writes_it_or_says_that_it_cannot(name: str, target: str) -> None:
    plan = sk.group_by_key("k", timestamp="at").windowed_by(WINDOWS).aggregate(it=aggregation(name))
    if name not in (*EXAMPLES, *NOT_KAFKA) or name in WRITTEN.get(target, ()):
        assert getattr(plan, target)().code
        return
    with pytest.raises(NotBuilt) as caught:
        getattr(plan, target)()
    system = {"to_java": "Kafka Streams", "to_ksql": "ksqlDB", "to_flink_sql": "Flink SQL", "to_spark": "Spark"}[target]
    nearest = {"earliest": "sk.first", "latest": "sk.last", "variance": "one of count"}.get(name, "sk.collect")
    assert f"; {nearest}" in str(caught.value)
    assert f"this aggregation cannot be written for {system}: result 'it'; got {aggregation(name).code}" in str(
        caught.value
    )


# ---- its loops equal its functions


KINDS: dict[str, Any] = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=3, grace_ms=30),
    "tumbling": sk.TimeWindows(size_ms=5, grace_ms=9),
    "hopping": sk.TimeWindows(size_ms=7, advance_ms=2, grace_ms=9),
    "sliding": sk.SlidingWindows(time_difference_ms=4, grace_ms=9),
}
SMALL_COLUMN = "int8"  # its sums and squares are exact in any order, as sliding windows add them


def small_records(seed: int, count: int = 120) -> pa.Table:
    """Records of three keys, in and out of order, some late, with nulls among the values."""
    rng = np.random.default_rng(seed)
    times = np.maximum(np.sort(rng.integers(0, 200, count)) - rng.choice([0, 0, 3, 9, 60], count), 0)
    values = pa.array(rng.integers(-128, 128, count), COLUMNS[SMALL_COLUMN][0], mask=rng.random(count) < 0.2)
    return pa.table({"key": rng.choice(["a", "b", "c"], count), "at": times, "value": values})


def _called(*_: Any) -> Any:
    raise AssertionError("a Python function was called")


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_it_compiles(name: str, kind: str, emit: str) -> None:
    """No call a record, whatever the windows; the lists of sliding windows and of a changelog are made by calls."""
    made, table = aggregation(name), small_records(1)
    every_step = all(LOOPS[part.loop].knows_every_step for part in made.parts)
    silent = dataclasses.replace(made, initializer=_called, aggregator=_called, merger=_called, result=_called)
    if not every_step and kind == "sliding":
        return
    plan = plan_of(KINDS[kind], emit, {"it": silent})
    run, said = plan.run(table), plan_of(KINDS[kind], emit, {"it": made}).run(table)
    assert run.table().equals(said.table())
    if every_step or emit == "on_window_close":
        assert run.changelog().equals(said.changelog())
    store = sk.open_store("memory", "it", of=KINDS[kind].holds)
    parts = [plan.run(part, store=store) for part in (table.slice(0, 60), table.slice(60))]
    if every_step or emit == "on_window_close":
        changes = pa.concat_tables(part.changelog() for part in parts)
        assert changes.to_pylist() == said.changelog().to_pylist()


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_kernel_and_processor_agree(name: str, kind: str, emit: str) -> None:
    """Types, too; the processor calls the functions."""
    for seed in range(3):
        plan = plan_of(KINDS[kind], emit, {"it": aggregation(name)})
        by_kernel = plan.run(small_records(seed))
        how = Life(retention_ms=KINDS[kind].retention_ms(None), emit=emit, kafka=False)
        by_processor = plan._run_life(by_kernel._outcome.batch, memory_store(KINDS[kind], None), how)
        assert len(by_kernel.changelog()) > 5
        assert by_kernel.changelog().equals(by_processor.changelog())
        assert by_kernel.table().equals(by_processor.table())


@pytest.mark.parametrize(("name", "column"), PAIRS)
def test_the_type_of_its_results_is_known_beforehand(name: str, column: str) -> None:
    made, kind = aggregation(name), COLUMNS[column][0]
    table = pa.table({"key": ["a"], "time": [1], "offset": [0], "value": _array([None], kind)})
    outcome = run(made, table)
    trace, fold = outcome.kept_trace, outcome.folds["result"]
    assert trace is not None
    values = value_column(made, outcome.batch.values, outcome.batch.timestamp_ms)
    said = made.result_type(None if values is None else values.type)
    running = fold.running(trace.window, trace.merges)
    assert [column.type for column in (fold.results(np.array([0])), running)] == [said, said]
    kept = made.part_types(None if values is None else values.type)
    aggregates = fold.aggregates(np.array([0]))
    assert [part.type for part in (aggregates.flatten() if len(kept) > 1 else [aggregates])] == kept


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "column"), PAIRS)
@settings(max_examples=fewer(8))
@given(data=st.data())
def test_loops_equal_functions(name: str, column: str, data: st.DataObject) -> None:
    """The final and the running result of every window, and what a store would keep."""
    built_in, table = aggregation(name), data.draw(stream_of(column))
    outcome = run(built_in, table)
    trace, fold = outcome.kept_trace, outcome.folds["result"]
    assert trace is not None
    values = value_column(built_in, outcome.batch.values, outcome.batch.timestamp_ms)
    by_calls = PythonFold(built_in, values, np.empty(0, object), RecordsInWords(outcome.batch))
    by_calls.feed(trace.window, trace.merges, 0)
    kind = built_in.result_type(None if values is None else values.type)

    rows = np.flatnonzero(outcome.window_columns.merged_into < 0)
    assert told(fold.results(rows)) == told(by_calls.results(rows), kind)
    stored = fold.aggregates(rows)
    assert told(stored) == told(by_calls.aggregates(rows), stored.type if isinstance(stored, pa.Array) else None)
    kept = trace.accepted.tolist()
    running = (f.running(trace.window, trace.merges) for f in (fold, by_calls))
    ours, theirs = ([value for value, counts in zip(_list(column), kept, strict=True) if counts] for column in running)
    assert told(pa.array(ours, _plain(kind))) == told(theirs, kind)


def _list(column: Any) -> list[Any]:
    return list(column.to_pylist() if isinstance(column, pa.Array) else column)


def _plain(kind: pa.DataType | None) -> pa.DataType | None:
    return kind.value_type if kind is not None and pa.types.is_dictionary(kind) else kind


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize(("name", "column"), PAIRS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_run_in_two_parts_gives_the_same_values(name: str, column: str, data: st.DataObject) -> None:
    built_in, table = aggregation(name), data.draw(stream_of(column))
    cut = data.draw(st.integers(0, len(table)))
    whole = run(built_in, table)
    store = MemorySessionStore()
    final: dict[int, str] = {}
    for part in (table.slice(0, cut), table.slice(cut)):
        outcome = run(built_in, part, store)
        rows = np.flatnonzero(outcome.window_columns.merged_into < 0)
        for row in np.flatnonzero(outcome.window_columns.merged_into >= 0):
            final.pop(int(outcome.window_columns.opened_by[row]), None)
        final.update(
            zip(
                outcome.window_columns.opened_by[rows].tolist(),
                told(outcome.folds["result"].results(rows)),
                strict=True,
            )
        )
        commit(outcome, store, WINDOWS, RETENTION_MS)
    rows = np.flatnonzero(whole.window_columns.merged_into < 0)
    assert final == dict(
        zip(whole.window_columns.opened_by[rows].tolist(), told(whole.folds["result"].results(rows)), strict=True)
    )


# ---- the laws of the three functions, on values for which adding is exact

EXACT = {
    "int8": COLUMNS["int8"][1],
    "int64": SMALL | st.sampled_from([2**20, -(2**20)]),  # their squares are exact, too
    "decimal": SMALL.map(lambda number: Decimal(number) / 4),
    "timestamp": COLUMNS["timestamp"][1],
    "string": COLUMNS["string"][1],
}
LAWFUL = [(name, column) for name, column in PAIRS if column in EXACT]


def fold(built_in: Aggregation, values: list[Any]) -> Any:
    aggregate = built_in.initializer()
    for value in values:
        aggregate = built_in.aggregator("key", given_to(built_in, value), aggregate)
    return aggregate


def given_to(built_in: Aggregation, value: Any) -> Any:
    """What the functions get: the value, or it with a time, which is the same for some."""
    is_timed = built_in.reads_time and value is not None
    return {"value": value, "at_ms": crc32(repr(value).encode()) % 3} if is_timed else value


def values_of(column: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(EXACT[column] | st.none(), max_size=6)


@pytest.mark.parametrize(("name", "column"), LAWFUL)
@settings(max_examples=12)
@given(data=st.data())
def test_an_empty_window_changes_nothing(name: str, column: str, data: st.DataObject) -> None:
    built_in = aggregation(name)
    aggregate = fold(built_in, data.draw(values_of(column)))
    assert built_in.merger("key", built_in.initializer(), aggregate) == aggregate
    assert built_in.merger("key", aggregate, built_in.initializer()) == aggregate


@pytest.mark.parametrize(("name", "column"), LAWFUL)
@settings(max_examples=12)
@given(data=st.data())
def test_two_parts_merge_to_the_whole(name: str, column: str, data: st.DataObject) -> None:
    built_in, older, newer = aggregation(name), data.draw(values_of(column)), data.draw(values_of(column))
    assert built_in.merger("key", fold(built_in, older), fold(built_in, newer)) == fold(built_in, older + newer)


@pytest.mark.parametrize(("name", "column"), LAWFUL)
@settings(max_examples=12)
@given(data=st.data())
def test_merging_is_associative(name: str, column: str, data: st.DataObject) -> None:
    built_in = aggregation(name)
    a, b, c = (fold(built_in, data.draw(values_of(column))) for _ in range(3))
    merger = built_in.merger
    assert merger("key", merger("key", a, b), c) == merger("key", a, merger("key", b, c))


@pytest.mark.parametrize("name", MADE)
def test_an_initializer_gives_a_new_aggregate_and_an_aggregator_leaves_the_old(name: str) -> None:
    built_in = aggregation(name)
    before = fold(built_in, [1, 2])
    kept = repr(before)
    built_in.aggregator("key", given_to(built_in, 3), before)
    built_in.merger("key", before, fold(built_in, [4]))
    assert repr(before) == kept
    assert built_in.initializer() == built_in.initializer()


# ---- numbers


def one_session(values: list[Any], kind: pa.DataType, times: list[int] | None = None) -> pa.Table:
    count = len(values)
    times = list(range(count)) if times is None else times
    return pa.table({"key": ["a"] * count, "time": times, "offset": range(count), "value": pa.array(values, kind)})


def result(built_in: Aggregation, table: pa.Table) -> Any:
    outcome = run(built_in, table)
    rows = np.flatnonzero(outcome.window_columns.merged_into < 0)
    assert len(rows) == 1
    return outcome.folds["result"].results(rows)[0].as_py()


def test_floats_are_added_in_order_of_arrival() -> None:
    assert result(aggregation("sum"), one_session([1e16, 1.0, -1e16], pa.float64())) == 0.0
    assert result(aggregation("sum"), one_session([1e16, -1e16, 1.0], pa.float64())) == 1.0
    tenths = 0.0
    for _ in range(10):
        tenths += 0.1
    assert result(aggregation("sum"), one_session([0.1] * 10, pa.float64())) == tenths != 1.0


def test_two_sessions_are_added_as_older_plus_newer_and_then_the_value() -> None:
    """[0] and [6] are joined by 3: ((1e16) + (1.0)) + 1.0, where (1.0 + 1.0) + 1e16 would be another number."""
    table = one_session([1.0, 1e16, 1.0], pa.float64(), times=[6, 0, 3])
    assert result(aggregation("sum"), table) == (1e16 + 1.0) + 1.0 != 1e16 + (1.0 + 1.0)


@pytest.mark.parametrize(
    ("values", "times"),
    [
        ([2**63 - 1, 1], None),
        ([-(2**63), -1], None),
        ([2**62, 2**62], None),
        ([2**62, 2**62, 0], [0, 6, 3]),  # the merge is too much
        ([2**62, 2**62 - 1, 1], [0, 6, 3]),  # the merge is not, the value is
    ],
)
def test_an_integer_sum_beyond_64_bits_raises(values: list[int], times: list[int] | None) -> None:
    with pytest.raises(
        NumberOverflow, match=r"an integer sum does not fit into 64 bits; got .*; cast the column to float"
    ):
        run(aggregation("sum"), one_session(values, pa.int64(), times))


@pytest.mark.parametrize("values", [[2**53 + 1, 3], [2**63 - 1, -(2**63)], [2**62 + 1] * 3])
@pytest.mark.parametrize(
    "windows", [sk.SessionWindows(inactivity_gap_ms=5, grace=0), sk.TimeWindows(size_ms=9, grace=0)]
)
def test_a_mean_of_large_integers_is_that_of_the_functions(windows: Any, values: list[int]) -> None:
    """A float cannot hold them: each is rounded to the nearest, by the kernel as by Python."""
    table = pa.table({"k": ["a"] * len(values), "at": list(range(len(values))), "v": values})
    plan = group_in_ms("k").windowed_by(windows).aggregate(m=sk.mean("v"))
    assert plan.run(table).table()["m"].equals(run_deployed(plan, table, retention="100ms").table()["m"])


def test_the_largest_integer_sums_fit() -> None:
    assert result(aggregation("sum"), one_session([2**63 - 2, 1], pa.int64())) == 2**63 - 1
    assert result(aggregation("sum"), one_session([-(2**63) + 1, -1], pa.int64())) == -(2**63)


@pytest.mark.parametrize("name", ["sum", "min", "max"])
def test_unsigned_numbers_beyond_64_bits(name: str) -> None:
    with pytest.raises(NumberOverflow, match=r"\('value'\) found a number that does not fit into 64 bits"):
        run(aggregation(name), one_session([2**63], pa.uint64()))
    assert result(aggregation(name), one_session([2**63 - 1], pa.uint64())) == 2**63 - 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [("count", 2), ("sum", 0), ("mean", None), ("min", None), ("max", None), ("first", None), ("last", None)],
)
def test_a_window_of_nulls(name: str, expected: Any) -> None:
    assert result(aggregation(name), one_session([None, None], pa.float64())) == expected


def test_collect_keeps_nulls() -> None:
    assert result(aggregation("collect"), one_session([None, 2, None], pa.int64())) == [None, 2, None]


@pytest.mark.parametrize(("name", "column"), REFUSED)
def test_columns_that_make_no_sense_are_refused_by_type(name: str, column: str) -> None:
    kind = COLUMNS[column][0]
    with pytest.raises(UnsupportedData) as caught:
        run(aggregation(name), pa.table({"key": ["a"], "time": [1], "offset": [0], "value": _array([None], kind)}))
    made = aggregation(name)
    assert f"{made.code} cannot use column 'value'; got {kind}; {made.wants}" in str(caught.value)


class TestVariance:
    """The example, by hand and on every way that a plan is looked at."""

    @staticmethod
    def plan(kind: str = "sessions", emit: str = "on_window_update") -> sk.Plan:
        return plan_of(KINDS[kind], emit, {"it": variance.variance("value")})

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_the_population_variance(self, kind: str) -> None:
        table = small_records(4)
        told = plan_of(KINDS[kind], named={"it": aggregation("collect")}).run(table).table().to_pylist()
        ours = self.plan(kind).run(table).table()["it"].to_pylist()
        known = [[value for value in row["it"] if value is not None] for row in told]
        assert [None if value is None else pytest.approx(value) for value in ours] == [
            float(np.var(values)) if values else None for values in known
        ]
        assert any(values == [] for values in known) == (kind != "sliding"), "those drop a record without a value"
        assert any(len(values) > 2 for values in known)

    def test_large_values_lose_digits_as_it_says(self) -> None:
        table = pa.table({"key": ["a"] * 3, "at": [0, 1, 2], "value": [1e8, 1e8 + 0.25, 1e8 + 0.5]})
        (far,) = self.plan().run(table).table()["it"].to_pylist()
        (near,) = self.plan().run(table.set_column(2, "value", pa.array([0, 0.25, 0.5]))).table()["it"].to_pylist()
        assert near == pytest.approx(1 / 24) and far != pytest.approx(1 / 24, abs=0.01)

    @pytest.mark.thorough
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_view_shows_it(self, kind: str) -> None:
        run = self.plan(kind).run(small_records(5))
        late = [row for row in run.dropped().to_pylist() if row["reason"] == "late"]
        assert len(run.changelog()) and late
        assert "late" in str(run.explain(offset=late[0]["offset"])) and str(run.explain(offset=0))
        first = run.table().to_pylist()[0]
        assert str(run.explain(key=first["key"], window_start=first["window_start_ms"]))
        assert len(run.plane("a").data) and len(run.lanes().data)
        assert "it" in run._repr_html_()

    @pytest.mark.thorough
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("store_kind", ["memory", "rocksdb"])
    def test_its_state_travels_from_run_to_run(self, kind: str, store_kind: str, tmp_path: Path) -> None:
        table, plan = small_records(6), self.plan(kind)
        directory = {"directory": tmp_path} if store_kind == "rocksdb" else {}
        whole, changes = plan.run(table).changelog().to_pylist(), []
        for part in (table.slice(0, 50), table.slice(50, 30), table.slice(80)):
            if store_kind == "rocksdb" or not changes:
                store = sk.open_store(store_kind, "spreads", of=KINDS[kind].holds, **directory)
            changes += plan.run(part, store=store).changelog().to_pylist()
            if store_kind == "rocksdb":
                store.close()
        assert changes == whole

    def test_its_example_is_true(self) -> None:
        times = [0, 20_000, 300_000]
        monday = pa.table({"user": ["ada", "ada", "bob"], "at": times, "amount": [2.5, 3.0, 4.0]})
        windows = sk.SessionWindows(inactivity_gap="30s", grace="10s")
        plan = group_in_ms("user").windowed_by(windows)
        run = plan.aggregate(spread=variance.variance("amount")).run(monday)
        assert run.table()["spread"].to_pylist() == [0.0625, 0.0]
