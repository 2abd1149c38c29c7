"""Java that a plan writes: compiled, run by Kafka's test driver, and equal to the plan result for result."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.deployed.lives import memory_store
from sessionkit.records.keys import key_bytes
from tests.conformance.cases import STORES, STRATEGIES, read_cases, windows_of
from tests.differential.exported import Row, job, kafka_sent, own_sent
from tests.differential.oracle import Oracle, running_oracle
from tests.kinds import every, group_in_ms, in_ms

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("exported Java")]  # one process compiles all of it

GOLDEN = Path(__file__).parent.parent / "golden"
HOSTILE = [
    'a"b', "a\\", "\\u000a", "\\u0022); System.exit(1); //", "\\\\u0022", "a\nb", "*/ } ??/", "a`b -- '",
    "é\u2028\u202e\U0001f600", "\1\x7f\r", "%s ${x} {0}", "",
]  # fmt: skip
WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap_ms=10, grace_ms=6),
    "tumbling": sk.TimeWindows(size_ms=10, grace_ms=7),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=4, grace_ms=7),
    "sliding": sk.SlidingWindows(time_difference_ms=10, grace_ms=7),
}
EVERY = every()
TYPES = {"whole": "bigint", "real": "double", "word": "string", "flag": "boolean"}
ARROW = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
SCHEMA = pa.schema([("user", pa.string()), ("at", pa.int64()), *((name, ARROW[kind]) for name, kind in TYPES.items())])


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    yield from running_oracle("--exported")


def _rows(seed: int, count: int = 80) -> list[Row]:
    """Records of three keys, in and out of order, some late, some with nulls, some without a key."""
    draw = random.Random(seed)
    now, rows = 20, []
    for _ in range(count):
        now += draw.choice([0, 1, 2, 5, 30])
        row: Row = {
            "user": draw.choice(["ada", "bob", "é", None]),
            "at": max(0, now - draw.choice([0, 0, 3, 9, 15, 40])),
        }
        row["whole"] = draw.choice([None, 2**53 - 1, -7, draw.randrange(100)])
        row["real"] = draw.choice([None, 0.1, -2.5e300, 1 / 3, 4.0, -0.0])
        row["word"] = draw.choice([None, "", "x", 'quote " \\ \n', "\U0001f600"])
        row["flag"] = draw.choice([None, True, False])
        if draw.random() < 0.15:
            row.update(dict.fromkeys(TYPES))
        rows.append(row)
    return rows


def _plan(kind: str, strategy: str, **named: Any) -> sk.Plan:
    return (
        group_in_ms("user", on_bad_time="drop").windowed_by(WINDOWS[kind]).emit(strategy).aggregate(**(named or EVERY))
    )


def _store(plan: sk.Plan, name: str, retention_ms: int, folder: Path) -> Any:
    return (
        memory_store(plan.windows, retention_ms) if name == "memory" else STORES[name](plan, retention_ms, str(folder))
    )


@pytest.mark.filterwarnings("ignore:column .* read as ms")
@pytest.mark.parametrize("store", ["memory", "rocksdb"])
@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_every_aggregation_equals_the_plan(
    oracle: Oracle, kind: str, strategy: str, store: str, tmp_path: Path
) -> None:
    plan, rows = _plan(kind, strategy), _rows(seed=len(kind))
    for name, retention_ms in (("smallest", plan.windows.retention_ms(None)), ("long", 200)):
        export = plan.to_java(types=TYPES, store=store, retention=f"{retention_ms}ms")
        kafka = kafka_sent(oracle.ask(job(export, rows, "user")), plan)
        with _store(plan, store, retention_ms, tmp_path / name) as opened:
            own = own_sent(plan, rows, SCHEMA, rules="kafka", store=opened)
        assert kafka == own, f"retention {retention_ms}"
        is_silent = (kind, strategy, store, name) == ("session", "on_window_close", "memory", "smallest")
        assert any(own) != is_silent, "Kafka's in-memory session store sends no finals with its default retention"


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:column .* read as ms")
@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_the_default_retention_gives_what_the_plan_gives(oracle: Oracle, kind: str, strategy: str) -> None:
    plan, rows = _plan(kind, strategy), _rows(seed=5)
    options: dict[str, Any] = {}
    if kind == "session" and strategy == "on_window_close":  # a closed session can still be found, as it says
        options["retention"] = in_ms(WINDOWS["session"].close_lag_ms + 1 + 86_400_000)
    kafka = kafka_sent(oracle.ask(job(plan.to_java(types=TYPES, store="memory"), rows, "user")), plan)
    assert kafka == own_sent(plan, rows, SCHEMA, **options)


@pytest.mark.filterwarnings("ignore:column .* read as ms")
@pytest.mark.parametrize("kind", WINDOWS)
def test_the_records_own_timestamp_gives_what_the_plan_gives(oracle: Oracle, kind: str) -> None:
    """As Kafka's default has it; with results whose names are those of a mean's fields."""
    named = {"whole": sk.mean("whole"), "whole sum": sk.sum("whole"), "whole count": sk.count()}
    plan, rows = _plan(kind, "on_window_update", **named), _rows(seed=7)
    export = plan.to_java(types={"whole": "bigint"}, store="memory", timestamp="record")
    kafka = kafka_sent(oracle.ask(job(export, rows, "user", timestamp="at")), plan)
    assert kafka == own_sent(plan, rows, SCHEMA)
    without_types = plan.count().to_java(store="memory", timestamp="record")
    rows = [{name: row[name] for name in ("user", "at")} for row in rows]
    kafka = kafka_sent(oracle.ask(job(without_types, rows, "user", timestamp="at")), plan)
    assert kafka == own_sent(plan.count(), rows, SCHEMA)


@pytest.mark.filterwarnings("ignore:column .* read as ms")
@pytest.mark.parametrize("kind", WINDOWS)
def test_a_null_aggregate_deletes_the_window(oracle: Oracle, kind: str) -> None:
    plan = _plan(kind, "on_window_update", low=sk.min("real"), last=sk.last("word"))
    rows = [{**row, "real": None, "word": None} if i % 3 else row for i, row in enumerate(_rows(seed=9))]
    types = {"real": "double", "word": "string"}
    kafka = kafka_sent(oracle.ask(job(plan.to_java(types=types, store="memory", retention="99ms"), rows, "user")), plan)
    assert kafka == own_sent(plan, rows, SCHEMA, rules="kafka", retention="99ms")


@pytest.mark.parametrize("kind", WINDOWS)
def test_hostile_names_compile_and_run(oracle: Oracle, kind: str) -> None:
    columns = [f"c{name}" for name in HOSTILE]
    named = {f"r{name}": sk.last(column) for name, column in zip(HOSTILE, columns, strict=True)}
    plan = group_in_ms("k\\u000a*/", timestamp='t"\\', unit="s", sep='"').windowed_by(WINDOWS[kind]).aggregate(**named)
    row = {"k\\u000a*/": "key", 't"\\': 1_000_000_000, **{column: column for column in columns}}
    schema = pa.schema([(name, pa.int64() if name == 't"\\' else pa.string()) for name in row])
    kafka = kafka_sent(oracle.ask(job(plan.to_java(store="memory"), [row, row], "k\\u000a*/")), plan)
    assert kafka == own_sent(plan, [row, row], schema)
    assert kafka[0][0].values == {f"r{name}": f"c{name}" for name in HOSTILE}


def test_fields_inside_objects_are_read_as_the_plan_reads_them(oracle: Oracle) -> None:
    plan = (
        group_in_ms("user", timestamp="payload.at")
        .windowed_by(WINDOWS["session"])
        .aggregate(spent=sk.sum("payload.order.amount"), word=sk.last("text.word"), flat=sk.last("a.b"))
    )
    order = pa.struct([("amount", pa.float64())])
    payload = pa.struct([("at", pa.int64()), ("order", order)])
    text = [("user", pa.string()), ("text", pa.string()), ("a.b", pa.string()), ("a", pa.struct([("b", pa.string())]))]
    rows: list[Row] = [
        {"user": "ada", "payload": {"at": 20, "order": {"amount": 1.5}}, "text": '{"word": "x"}', "a.b": "whole"},
        {"user": "ada", "payload": {"at": 21, "order": None}, "text": None, "a.b": None, "a": {"b": "inner"}},
        {"user": "bob", "payload": {"at": 22, "order": {"amount": 2.0}}, "text": "", "a.b": None},
    ]
    export = plan.to_java(types={"payload.order.amount": "double"}, store="memory")
    kafka = kafka_sent(oracle.ask(job(export, rows, "user")), plan)
    assert kafka == own_sent(plan, rows, pa.schema([*text, ("payload", payload)]))
    assert kafka[1][-1].values == {"spent": 1.5, "word": "x", "flat": "whole"}


@pytest.mark.thorough
@pytest.mark.parametrize(("unit", "time", "ms"), [
    ("s", 1_700_000_001, 1_700_000_001_000), ("ms", 1_700_000_001_234, 1_700_000_001_234),
    ("us", 1_700_000_001_234_999, 1_700_000_001_234), ("ns", 1_700_000_001_234_999_999, 1_700_000_001_234),
    (None, "2023-11-14T22:13:21.2349Z", 1_700_000_001_234), (None, "2023-11-15T00:13:21+02:00", 1_700_000_001_000),
])  # fmt: skip
@pytest.mark.parametrize(("key_type", "key"), [("string", "é"), ("bigint", -5), ("bytes", b"\xff\0")])
def test_keys_and_times(oracle: Oracle, unit: str | None, time: object, ms: int, key_type: str, key: object) -> None:
    plan = group_in_ms("k", timestamp="t", unit=unit).windowed_by(WINDOWS["session"]).count()
    export = plan.to_java(key_type=key_type, class_name="Counts", input_topic="in.1", output_topic="out_2")
    ((sent,),) = kafka_sent(oracle.ask(job(export, [{"k": key, "t": time}], "k", "Counts")), plan)
    assert (sent.key, sent.window_start_ms, sent.values) == (key_bytes(key), ms, {"count": 1})


@pytest.mark.parametrize(("value", "said"), [
    ({}, "no event time from 1970 on: null"), ({"at": -1}, "no event time from 1970 on: -1"),
    ({"at": "2024"}, 'no event time from 1970 on: "2024"'), ({"at": 2**63}, "no event time from 1970 on"),
    ({"at": 1, "whole": 1.5}, "column whole must be an integer of 64 bits; got 1.5"),
    ({"at": 1, "whole": 2**63}, "column whole must be an integer of 64 bits"),
    ({"at": 1, "real": "1"}, 'column real must be a number; got "1"'),
    ({"at": 1, "word": 1}, "column word must be text; got 1"),
    ({"at": 1, "flag": 1}, "column flag must be true or false; got 1"),
])  # fmt: skip
def test_what_does_not_fit_stops_the_task(oracle: Oracle, value: Row, said: str) -> None:
    plan = group_in_ms("user").windowed_by(WINDOWS["session"]).aggregate(**EVERY)
    answer = oracle.ask(job(plan.to_java(types=TYPES), [{"user": "ada", **value}], "user"))
    assert said in answer["error"]


def test_a_sum_beyond_64_bits_stops_the_task(oracle: Oracle) -> None:
    plan = _plan("tumbling", "on_window_update", total=sk.sum("whole"))
    rows = [{"user": "ada", "at": 1, "whole": 2**62}] * 2
    answer = oracle.ask(job(plan.to_java(types={"whole": "bigint"}), rows, "user"))
    assert answer["error"] == "ArithmeticException: long overflow"


def _can_be_asked(case: dict[str, Any]) -> bool:
    is_plain = not case["caching"] and "emit_interval_ms" not in case and "error" not in case["expected"]
    is_counted = case["aggregation"] == "count" and case["window"]["kind"] == "sliding"  # no value column to be null
    return is_plain and not is_counted and case["aggregation"] in ("count", "sum", "min", "max", "collect")


def _as_recorded(value: Any, aggregation: str) -> Any:
    if value is None or aggregation != "collect":
        return value
    return ",".join("null" if part is None else str(part) for part in value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
def test_recorded_answers_of_kafka(oracle: Oracle, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case for case in read_cases(GOLDEN / f"corner-{kind}.jsonl") if _can_be_asked(case)]
    for case in cases:
        name, windows = case["aggregation"], windows_of(case)
        plan = (
            group_in_ms("user", on_bad_time="drop")
            .windowed_by(windows)
            .emit(STRATEGIES[case["emit"]])
            .aggregate(value=sk.count() if name == "count" else getattr(sk, name)("value"))
        )
        retention_ms = case["window"].get("retention_ms", windows.retention_ms(None))
        types = None if name == "count" else {"value": "bigint"}
        store = case["store"].replace("in_memory", "memory")
        export = plan.to_java(store=store, retention=f"{retention_ms}ms", types=types)
        rows = [{"user": r["key"], "at": r["timestamp"], "value": r["value"]} for r in case["records"]]
        for sent, step in zip(
            kafka_sent(oracle.ask(job(export, rows, "user")), plan), case["expected"]["per_record"], strict=True
        ):
            mine = [
                {
                    "key": one.key.decode(),
                    "window_start": one.window_start_ms,
                    "window_end": one.window_end_ms,
                    "value": None if one.values is None else _as_recorded(one.values["value"], name),
                    "timestamp": one.timestamp_ms,
                }
                for one in sent
            ]
            assert mine == step["outputs"], case["id"]
    with capsys.disabled():
        print(f"\nexported Java = Kafka's recorded answers: {len(cases)} cases, {kind}")
    assert cases


BUFFERS: list[tuple[Any, ...]] = [
    ("until_window_closes",),
    ("until_time_limit", 0),
    ("until_time_limit", "5ms"),
    ("until_time_limit", "40ms"),
]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:column .* read as ms")
@pytest.mark.parametrize("seed", range(13))
@pytest.mark.parametrize("kind", WINDOWS)
def test_suppress_equals_the_plan(oracle: Oracle, kind: str, seed: int) -> None:
    """52 plans with every buffer, and of a few records where a full one sends its oldest early."""
    draw = random.Random(seed)
    named = dict(draw.sample(list(EVERY.items()), draw.randint(1, len(EVERY))))
    until = BUFFERS[seed % len(BUFFERS)]
    room = draw.choice([None, 1, 3, 10]) if len(until) > 1 else None
    plan = _plan(kind, "on_window_update", **named).suppress(*until, max_records=room)
    rows = _rows(seed)
    columns = {column for _, aggregation in plan._aggregations for column in aggregation.columns}
    types = {name: kind_of for name, kind_of in TYPES.items() if name in columns}
    kafka = kafka_sent(oracle.ask(job(plan.to_java(types=types, store="memory"), rows, "user")), plan)
    assert kafka == own_sent(plan, rows, SCHEMA)
    assert any(kafka)
