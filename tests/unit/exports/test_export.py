"""Plans as code for other systems: what the text says, what it refuses, and that no name gets out of its quotes."""

import ast
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.text import comment, is_visible, java_literal, sql_literal, sql_name
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.exports.lengths import flink_interval, java_duration, ksql_length, spark_interval

SESSIONS = sk.SessionWindows(inactivity_gap="30s", grace="10s")
TUMBLING = sk.TimeWindows(size="5m", grace="30s")
HOPPING = sk.TimeWindows(size="5m", advance="1m", grace="30s")
SLIDING = sk.SlidingWindows(time_difference="10s", grace="1s")
WINDOWS = (SESSIONS, TUMBLING, HOPPING)
TARGETS = ("to_java", "to_ksql", "to_flink_sql", "to_spark")
ANY_TEXT = st.text(st.characters(exclude_categories=()))
NASTY = st.text(st.sampled_from("\\u000a0022'\"`-*/\n\r{}$;% aé\u2028\U0001f600"), max_size=30)
VISIBLE = [
    "a`b", "a'b", 'a"b', "a--b", "*/", "/*", ";", "\\", "\\'", "``", "''", "{x}", "%s", "é", "DROP TABLE x", "-- '",
]  # fmt: skip


def _plan(windows: Any = SESSIONS, strategy: str = "on_window_update", **named: Any) -> sk.Plan:
    named = named or {"visits": sk.count(), "spent": sk.sum("amount"), "page": sk.first("page")}
    start = sk.group_by_key("user", timestamp="at", unit="ms")
    return start.windowed_by(windows).emit(strategy).aggregate(**named)


# ---- what it gives


@pytest.mark.parametrize("target", TARGETS)
def test_the_text_has_the_differences_on_top(target: str) -> None:
    export = getattr(_plan(), target)()
    assert isinstance(export, sk.Export)
    assert type(export.differences) is list
    head, _, code = str(export).partition("\n\n")
    assert code == export.code
    assert len({line[:2] for line in head.splitlines()}) == 1, "comments only"
    said = " ".join(line.lstrip("/-# ") for line in head.splitlines())
    for sentence in export.differences:
        assert sentence in said
        assert sentence.endswith((".", ")."))
        assert "  " not in sentence
    assert repr(export) == str(export)


@pytest.mark.parametrize("target", TARGETS)
def test_html_shows_names_as_text(target: str) -> None:
    export = getattr(_plan(**{"<b>": sk.last("<img src=x onerror=alert(1)>")}), target)()
    html = export._repr_html_()
    assert "<img" not in html and "<b>" not in html
    assert "&lt;img src=x" in html


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_a_plan_gives_the_same_text_again(target: str, strategy: str, windows: Any) -> None:
    first, second = (getattr(_plan(windows, strategy), target)() for _ in range(2))
    assert first == second


# ---- Java


def test_java_says_the_plan_in_kafkas_words() -> None:
    code = _plan(HOPPING, "on_window_close").to_java(store="memory", retention="1h").code
    for part in (
        "TimeWindows.ofSizeAndGrace(Duration.ofMinutes(5), Duration.ofSeconds(30)).advanceBy(Duration.ofMinutes(1))",
        "EmitStrategy.onWindowClose()",
        "BuiltInDslStoreSuppliers.IN_MEMORY",
        ".withRetention(Duration.ofHours(1))",
        'record.value(), "at")',
    ):
        assert part in code
    assert "SessionStore" not in code and "::merge" not in code


@pytest.mark.parametrize(("windows", "strategy", "retention"), [
    (SESSIONS, "on_window_update", "ofSeconds(40).plusMillis(1)"),
    (SESSIONS, "on_window_close", "ofDays(1).plusSeconds(40).plusMillis(1)"),
    (TUMBLING, "on_window_update", "ofMinutes(5).plusSeconds(30)"),
    (HOPPING, "on_window_close", "ofDays(1).plusMinutes(5).plusSeconds(30)"),
    (SLIDING, "on_window_update", "ofSeconds(31).plusMillis(1)"),
])  # fmt: skip
def test_the_retention_is_long_enough_for_the_plan(windows: Any, strategy: str, retention: str) -> None:
    assert f".withRetention(Duration.{retention})" in _plan(windows, strategy).to_java().code


def test_finals_come_with_their_risks() -> None:
    told = " ".join(_plan(SESSIONS, "on_window_close").to_java(store="memory", retention="40s").differences)
    assert "The store may have forgotten a final result before it is sent" in told
    assert 'sk.audit(plan, data, sk.Deployment(store="memory"))' in told
    assert "opens it again" in told
    assert "once a second" not in " ".join(_plan(SESSIONS).to_java().differences)


@pytest.mark.parametrize("name", ["counts", "A b", "", "Duration", "É", "A;", "String", "A\n", 7, None])
def test_a_class_needs_a_name_of_its_own(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="class_name must be a name of a class"):
        _plan().to_java(class_name=name)


def test_java_refuses_what_kafka_would() -> None:
    with pytest.raises(InvalidArgument, match="retention must cover the windows"):
        _plan().to_java(retention="1s")
    with pytest.raises(InvalidArgument, match="store must be a known choice; got 'redis'"):
        _plan().to_java(store="redis")


# ---- SQL and Spark


def test_ksql_windows() -> None:
    said = [_plan(windows).to_ksql().code.partition("WINDOW ")[2].splitlines()[0] for windows in WINDOWS]
    assert said == [
        "SESSION (30 SECONDS, RETENTION 40001 MILLISECONDS, GRACE PERIOD 10 SECONDS)",
        "TUMBLING (SIZE 5 MINUTES, RETENTION 330 SECONDS, GRACE PERIOD 30 SECONDS)",
        "HOPPING (SIZE 5 MINUTES, ADVANCE BY 1 MINUTE, RETENTION 330 SECONDS, GRACE PERIOD 30 SECONDS)",
    ]
    assert "EMIT CHANGES;" in _plan().to_ksql().code
    assert "EMIT FINAL;" in _plan(SESSIONS, "on_window_close").to_ksql().code


@pytest.mark.parametrize(("unit", "part"), [
    (None, "TIMESTAMP_FORMAT = 'yyyy-MM-dd''T''HH:mm:ss[.SSS]X'"), ("ms", "VALUE_FORMAT = 'JSON', TIMESTAMP = '`at`')"),
    ("s", "SELECT *, `at` * 1000 AS `event_time_ms` FROM `records`"),
    ("us", "SELECT *, `at` / 1000 AS `event_time_ms` FROM `records`"),
    ("ns", "SELECT *, `at` / 1000000 AS `event_time_ms` FROM `records`"),
])  # fmt: skip
def test_ksql_times(unit: str | None, part: str) -> None:
    assert part in sk.group_by_key("user", timestamp="at", unit=unit).windowed_by(SESSIONS).count().to_ksql().code


def test_flink_windows_close_where_kafka_closes_them() -> None:
    """A window fires at its end - 1 ms, and a session ends there a gap after its last record."""
    delays = [re.search(r"`event_time` - (.+)\n", _plan(windows).to_flink_sql().code) for windows in WINDOWS]
    assert [delay[1] for delay in delays if delay] == [
        "INTERVAL '0 00:00:10.002' DAY(1) TO SECOND(3)",
        "INTERVAL '0 00:00:30.001' DAY(1) TO SECOND(3)",
        "INTERVAL '0 00:00:30.001' DAY(1) TO SECOND(3)",
    ]
    long = sk.TimeWindows(size="100d", grace=0)
    assert "INTERVAL '100 00:00:00.000' DAY(3) TO SECOND(3)" in _plan(long).to_flink_sql().code
    hop = "HOP(TABLE `records`, DESCRIPTOR(`event_time`), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)"
    assert hop in _plan(HOPPING).to_flink_sql().code


def test_spark_windows() -> None:
    codes = [_plan(windows).to_spark().code for windows in WINDOWS]
    assert 'F.session_window("event_time", "30 seconds")' in codes[0]
    assert 'F.window("event_time", "5 minutes")' in codes[1]
    assert 'F.window("event_time", "5 minutes", "1 minute")' in codes[2]
    assert [re.findall(r'outputMode\("(\w+)"\)', code) for code in codes] == [["append"], ["update"], ["update"]]
    assert 'withWatermark("event_time", "10 seconds 1 millisecond")' in codes[0]
    assert 'withWatermark("event_time", "30 seconds")' in codes[1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("unit", [None, "s", "ms", "us", "ns"])
@pytest.mark.parametrize("key_type", ["string", "bigint", "bytes"])
def test_each_key_and_time_has_its_text(target: str, unit: str | None, key_type: str) -> None:
    plan = sk.group_by_key("user", timestamp="at", unit=unit).windowed_by(TUMBLING).aggregate(last=sk.last("at"))
    export = getattr(plan, target)(key_type=key_type)
    assert {"string": "text", "bigint": "integer", "bytes": "bytes"}[key_type] in export.differences[0]
    assert "guesses" not in " ".join(export.differences), "the type of the event time is known"


def test_what_the_topic_must_hold_is_told() -> None:
    plan = (
        sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="Europe/Oslo", partitions=4)
        .windowed_by(SESSIONS)
        .aggregate(mean=sk.mean("delay"))
    )
    told = plan.to_java(input_topic="flights").differences
    assert (
        told[0]
        == 'The key of each record of topic "flights" is the text of columns "carrier", "origin", joined by "@".'
    )
    assert told[2].startswith('With timestamp="record" the event time is the record\'s own timestamp')
    assert told[3] == 'The plan reads clock times of "Europe/Oslo"; the topic must hold them with their offset.'
    assert told[4] == 'The plan holds no data: the types of "delay" are guesses; types= sets them.'
    assert told[5].startswith('Topic "flights" has 4 partitions')
    assert "guesses" not in " ".join(plan.to_java(types={"delay": "bigint"}).differences)


# ---- the record's own timestamp


@pytest.mark.parametrize(("target", "own", "field"), [
    ("to_java", "Consumed.with(KEYS, ROWS))", "::eventTime"),
    ("to_ksql", "KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON')", "TIMESTAMP"),
    ("to_flink_sql", "`event_time` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL", "TO_TIMESTAMP"),
    ("to_spark", 'raw["timestamp"].alias("event_time")', 'getField("at")'),
])  # fmt: skip
@pytest.mark.parametrize("unit", [None, "ms", "us"])
def test_the_event_time_is_the_records_own_on_request(target: str, own: str, field: str, unit: str | None) -> None:
    plan = sk.group_by_key("user", timestamp="at", unit=unit).windowed_by(SESSIONS).aggregate(spent=sk.sum("amount"))
    by_column, by_record = getattr(plan, target)(), getattr(plan, target)(timestamp="record")
    assert by_column == getattr(plan, target)(timestamp="column"), "the default is what the plan computes"
    assert "at" in re.findall(r"\w+", by_column.code)
    assert own in by_record.code and field not in by_record.code.replace("TIMESTAMP_LTZ", "")
    assert "at" not in re.findall(r"\w+", by_record.code)
    assert by_record.differences[2] == (
        'The event time is the record\'s own timestamp; the plan reads it from column "at".'
    )
    counted = getattr(plan.count(), target)(timestamp="record")
    assert counted.differences[1] == "Its value is JSON."
    assert ("  `value` VARCHAR\n)" in counted.code) == (target == "to_ksql"), "ksqlDB takes no stream without a value"


def test_a_record_without_a_timestamp_of_its_own_is_dropped_where_the_plan_drops_it() -> None:
    plan = sk.group_by_key("user", timestamp="at", on_bad_time="drop").windowed_by(SESSIONS).count()
    assert "withTimestampExtractor(new LogAndSkipOnInvalidTimestamp())" in plan.to_java(timestamp="record").code


# ---- fields inside objects


def _nested_plan() -> sk.Plan:
    start = sk.group_by_key("payload.user", timestamp="payload.created")
    return start.windowed_by(SESSIONS).aggregate(spent=sk.sum("payload.amount"), page=sk.last("page"))


@pytest.mark.parametrize(("target", "parts", "note"), [
    ("to_java", ["column(value, name.substring(end + 1))"], ", unless the value has a field with the whole name"),
    ("to_ksql",
     ["  `payload` STRUCT<`created` VARCHAR, `amount` DOUBLE>,\n  `page` VARCHAR\n)",
      "SELECT *, `payload`->`created` AS `event_time` FROM `records`",
      "TIMESTAMP = '`event_time`', TIMESTAMP_FORMAT = 'yyyy", "SUM(`payload`->`amount`)"],
     "; the plan looks for a column with the whole name first. The plan also reads fields of JSON that is text."),
    ("to_flink_sql",
     ["  `payload` ROW<`created` TIMESTAMP_LTZ(3), `amount` DOUBLE>,\n  `page` STRING,",
      "`event_time` AS `payload`.`created`,", "SUM(`payload`.`amount`)"],
     "; the plan looks for a column with the whole name first. The plan also reads fields of JSON that is text."),
    ("to_spark",
     ['T.StructField("payload", T.StructType([T.StructField("created", T.StringType()), '
      'T.StructField("amount", T.DoubleType())])),',
      'F.coalesce(value.getField("payload.amount"), value.getField("payload").getField("amount"))'],
     ", unless the value has a field with the whole name, as in the plan. The plan also reads"),
])  # fmt: skip
def test_a_name_with_dots_is_read_inside_its_object(target: str, parts: list[str], note: str) -> None:
    export = getattr(_nested_plan(), target)(types={"payload.amount": "double"})
    for part in parts:
        assert part in export.code
    said = 'A name with dots is a field of an object: "payload.created" is "created" of "payload"'
    assert f"{said}{note}" in " ".join(export.differences)
    plain = getattr(_plan(), target)()
    assert "with dots" not in " ".join(plain.differences) and "substring" not in plain.code


@pytest.mark.parametrize("target", ["to_ksql", "to_flink_sql", "to_spark"])
def test_an_object_that_is_a_column_of_its_own_is_refused(target: str) -> None:
    plan = _plan(whole=sk.last("a"), inner=sk.sum("a.b"))
    with pytest.raises(NotBuilt, match=r"'a' is a column and an object that holds 'a\.b'"):
        getattr(plan, target)()
    assert "a.b" in plan.to_java().code
    assert getattr(_plan(**{"a.b": sk.sum("c."), "d.": sk.last("e..f")}), target)().code, "no names of objects"


# ---- names and lengths as the plan has them


def test_fields_of_the_aggregate_are_called_as_the_results() -> None:
    code = _plan(visits=sk.count(), spent=sk.sum("amount")).to_java().code
    assert re.findall(r'aggregate\.set\("(.*?)"', code) == ["visits", "spent"]
    assert "::result" not in code, "what is kept is what is sent"
    averaged = _plan(**{"paid": sk.mean("amount"), "paid sum": sk.count(), "paid_": sk.mean("page")})
    code = averaged.to_java(types={"page": "bigint"}).code
    names = ["paid sum_", "paid count", "paid sum", "paid_ sum", "paid_ count"]
    assert re.findall(r'aggregate\.set\("(.*?)"', code) == names
    assert re.findall(r'row\.set\("(.*?)"', code) == ["paid", "paid sum", "paid_"]


@pytest.mark.parametrize(("ms", "java", "ksql", "flink", "spark"), [
    (0, "ofSeconds(0)", "0 SECONDS", "INTERVAL '0' SECOND", "0 seconds"),
    (1, "ofMillis(1)", "1 MILLISECOND", "INTERVAL '0 00:00:00.001' DAY(1) TO SECOND(3)", "1 millisecond"),
    (300_000, "ofMinutes(5)", "5 MINUTES", "INTERVAL '5' MINUTE", "5 minutes"),
    (3_600_000, "ofHours(1)", "1 HOUR", "INTERVAL '1' HOUR", "1 hour"),
    (5_400_000, "ofHours(1).plusMinutes(30)", "90 MINUTES", "INTERVAL '90' MINUTE", "1 hour 30 minutes"),
    (172_800_000, "ofDays(2)", "2 DAYS", "INTERVAL '2' DAY", "48 hours"),
    (360_000_000_000 + 1_500, "ofDays(4166).plusHours(16).plusSeconds(1).plusMillis(500)", "360000001500 MILLISECONDS",
     "INTERVAL '4166 16:00:01.500' DAY(4) TO SECOND(3)", "100000 hours 1 second 500 milliseconds"),
])  # fmt: skip
def test_lengths_of_time_as_a_person_writes_them(ms: int, java: str, ksql: str, flink: str, spark: str) -> None:
    written = (java_duration(ms), ksql_length(ms), flink_interval(ms), spark_interval(ms))
    assert written == (f"Duration.{java}", ksql, flink, spark)


# ---- what is refused


@pytest.mark.parametrize("target", TARGETS)
def test_python_functions_are_refused(target: str) -> None:
    own = sk.aggregation(initializer=int, aggregator=lambda k, v, a: a, merger=lambda k, a, b: a)
    for aggregation in (own, sk.reduce(max, "amount")):
        with pytest.raises(NotBuilt, match="a Python function cannot be written in another language: result 'mine'"):
            getattr(_plan(mine=aggregation), target)()


def test_aggregations_that_kafka_does_not_have_are_written_where_another_system_has_them() -> None:
    plan = _plan(pages=sk.count_distinct("page"), spread=sk.std("amount"), ayes=sk.std("flag"))
    types: Any = {"page": "string", "amount": "bigint", "flag": "boolean"}
    flink = plan.to_flink_sql(types=types)
    assert "COUNT(DISTINCT `page`) AS" in flink.code and "`pages` BIGINT" in flink.code
    assert "STDDEV_SAMP(CAST(`amount` AS DOUBLE)) AS" in flink.code and "`spread` DOUBLE" in flink.code
    assert "STDDEV_SAMP(CAST(CASE WHEN `flag` THEN CAST(1 AS BIGINT)" in flink.code
    assert any("STDDEV_SAMP is made of sums of squares" in said for said in flink.differences)
    more = _plan(middle=sk.median("amount"), most=sk.quantile("amount", 0.95), pages=sk.count_distinct("page"))
    spark = more.to_spark(types={"page": "string", "amount": "bigint"})
    for code in ('F.percentile("value_0", 0.5)', 'F.percentile("value_0", 0.95)', 'F.collect_set("value_1")'):
        assert code in spark.code
    assert any("Quantiles and deviations may differ" in said for said in spark.differences)


class _Moons(sk.TimeWindows):
    """A kind of window that no export has heard of."""


@pytest.mark.parametrize(
    ("target", "system"),
    [("to_java", "Kafka Streams"), ("to_ksql", "ksqlDB"), ("to_flink_sql", "Flink SQL"), ("to_spark", "Spark")],
)
def test_what_an_export_does_not_know_is_refused_in_a_sentence(
    target: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread = dataclasses.replace(sk.sum("amount"), built_in="spread", code="spread('amount')")
    telling = f"this aggregation cannot be written for {system}: result 'wide'; got spread('amount'); one of count, "
    with pytest.raises(NotBuilt, match=re.escape(telling)):
        getattr(_plan(n=sk.count(), wide=spread), target)(types={"amount": "string"})
    monkeypatch.setattr("sessionkit.plan.WINDOW_KINDS", [_Moons])
    telling = f"windows of this kind cannot be written for {system}; got TimeWindows("
    with pytest.raises(NotBuilt, match=re.escape(telling)):
        getattr(_plan(_Moons(size="28d", grace=0)), target)()


@pytest.mark.parametrize("target", TARGETS)
def test_first_forms_are_refused(target: str) -> None:
    until = sk.SessionWindows.until(inactivity_gap="30s", retention="1d")
    trailing = sk.SlidingWindows(time_difference="10s", grace="1s", trailing_only=True)
    for plan in (_plan(until), _plan(trailing, "on_window_close")):
        with pytest.raises(NotBuilt, match="no other system has these windows; got S"):
            getattr(plan, target)()


@pytest.mark.parametrize("target", TARGETS)
def test_an_unfinished_plan_is_refused(target: str) -> None:
    start = sk.group_by_key("user", timestamp="at")
    with pytest.raises(InvalidArgument, match="the plan has no windows"):
        getattr(start, target)()
    with pytest.raises(InvalidArgument, match="the plan has no aggregation"):
        getattr(start.windowed_by(SESSIONS), target)()


@pytest.mark.parametrize(
    ("target", "system"), [("to_ksql", "ksqlDB"), ("to_flink_sql", "Flink SQL"), ("to_spark", "Spark")]
)
def test_sliding_windows_are_kafkas_own(target: str, system: str) -> None:
    with pytest.raises(NotBuilt, match=f"{system} has no sliding windows as Kafka has them; got SlidingWindows"):
        getattr(_plan(SLIDING), target)()


def test_what_flink_and_spark_cannot_window() -> None:
    no_gap = _plan(sk.SessionWindows(inactivity_gap=0, grace_ms=5))
    with pytest.raises(NotBuilt, match="Flink has no sessions without a gap"):
        no_gap.to_flink_sql()
    with pytest.raises(NotBuilt, match="Spark has no sessions without a gap"):
        no_gap.to_spark()
    with pytest.raises(NotBuilt, match="HOP takes whole numbers of advances"):
        _plan(sk.TimeWindows(size_ms=10, advance_ms=4, grace=0)).to_flink_sql()
    with pytest.raises(InvalidArgument, match="too long for Flink's intervals"):
        _plan(sk.TimeWindows(size_ms=2**61, grace=0)).to_flink_sql()


@pytest.mark.parametrize(("options", "message"), [
    ({"types": {"amount": "int"}}, "the type of 'amount' must be a known choice; got 'int'"),
    ({"types": {"amount": "string"}}, "sum cannot be exported over column 'amount'; got type string; one of bigint"),
    ({"types": {"other": "bigint"}}, "types may only name columns that are aggregated; got 'other'"),
    ({"timestamp": "at"}, "timestamp must be a known choice; got 'at'"),
    ({"key_type": "float"}, "key_type must be a known choice; got 'float'"),
    ({"input_topic": "a b"}, "input_topic must be a name that Kafka accepts; got 'a b'"),
    ({"output_topic": ".."}, "output_topic must be a name that Kafka accepts"),
    ({"output_topic": "x\n"}, "output_topic must be a name that Kafka accepts"),
    ({"output_topic": None}, "output_topic must be a name that Kafka accepts"),
])  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_wrong_options(target: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        getattr(_plan(), target)(**options)


def test_joined_keys_are_text() -> None:
    plan = sk.group_by_key("a", "b", sep="@", timestamp="at").windowed_by(SESSIONS).count()
    with pytest.raises(InvalidArgument, match="several key columns are joined as text"):
        plan.to_java(key_type="bigint")


def test_a_name_that_is_no_text_is_in_no_plan_to_export() -> None:
    with pytest.raises(InvalidArgument, match="this cannot be the name of a result"):
        _plan(**{"\ud800": sk.count()})
    with pytest.raises(InvalidArgument, match="this cannot be the name of a column"):
        sk.last("\ud800")


@pytest.mark.parametrize("name", ["a\nb", "", "\0", "a\u202eb"])
@pytest.mark.parametrize("target", ["to_ksql", "to_flink_sql"])
def test_names_that_no_sql_takes(target: str, name: str) -> None:
    for plan in (_plan(**{name: sk.count()}), _plan(x=sk.last(name))):
        with pytest.raises(InvalidArgument, match="cannot use this name"):
            getattr(plan, target)()


@pytest.mark.parametrize(("target", "name"), [("to_ksql", "rowtime"), ("to_flink_sql", "window_time")])
def test_names_that_are_kept(target: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match="reserves this name"):
        getattr(_plan(x=sk.last(name)), target)()


def test_ksql_variables_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="ksqlDB puts variables into names"):
        _plan(**{"${topic}": sk.count()}).to_ksql()


# ---- names from outside


def _skeleton(code: str) -> tuple[str, list[str]]:
    """The SQL without what is quoted, and what is quoted."""
    quoted = re.compile(r"`(?:[^`]|``)*`|'(?:[^']|'')*'")
    return quoted.sub("?", code), quoted.findall(code)


@pytest.mark.parametrize("target", ["to_ksql", "to_flink_sql"])
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("name", VISIBLE)
def test_sql_names_stay_in_their_quotes(target: str, windows: Any, name: str) -> None:
    def export(of: str) -> str:
        named = {f"r{of}": sk.first(f"c{of}"), of: sk.mean(f"d{of}"), f"s{of}": sk.sum(f"e{of}")}
        plan = sk.group_by_key(f"k{of}", timestamp=f"t{of}", unit="us").windowed_by(windows).aggregate(**named)
        code: str = getattr(plan, target)(types={f"e{of}": "boolean"}).code
        return code

    skeleton, quoted = _skeleton(export(name))
    assert skeleton == _skeleton(export("harmless"))[0]
    for prefix in ("", "r", "c", "t"):
        assert any(sql_name(prefix + name) == part for part in quoted)


@given(NASTY, NASTY, NASTY)
def test_spark_code_has_names_as_constants_only(column: str, result: str, time: str) -> None:
    def tree(column: str, result: str, time: str) -> tuple[str, set[object]]:
        plan = (
            sk.group_by_key("k", timestamp=time + "t", unit="ms")
            .windowed_by(SESSIONS)
            .aggregate(**{result: sk.last(column)})
        )
        parsed = ast.parse(str(plan.to_spark()))
        constants = [node for node in ast.walk(parsed) if isinstance(node, ast.Constant)]
        values = {node.value for node in constants}
        for node in constants:
            node.value = None
        return ast.dump(parsed), values

    shape, values = tree(column, result, time)
    assert shape == tree("a", "b", "c")[0]
    assert {column, result, time + "t"} <= values


def _translated(source: str) -> str:
    """Java's first step: \\uXXXX after an even number of backslashes becomes that character (JLS 3.3)."""

    def replace(found: re.Match[str]) -> str:
        slashes, code = found.groups()
        return found[0] if len(slashes) % 2 == 0 else slashes[:-1] + chr(int(code, 16))

    return re.sub(r"(\\+)u+([0-9a-fA-F]{4})", replace, source)


def _java_reads(literal: str) -> str:
    body = _translated(literal)
    assert body[0] == body[-1] == '"'
    assert re.fullmatch(r'(?:[^"\\\n\r]|\\["\\]|\\[0-3][0-7]{2})*', body[1:-1])
    text = re.sub(r"\\(\d{3}|.)", lambda found: chr(int(found[1], 8)) if len(found[1]) == 3 else found[1], body[1:-1])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.one_of(ANY_TEXT, NASTY))
def test_java_reads_back_what_was_written(text: str) -> None:
    written = java_literal(text)
    assert written.isascii()
    assert _java_reads(written) == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.one_of(ANY_TEXT, NASTY), st.sampled_from(["//", "--", "#"]))
def test_a_comment_stays_one(text: str, mark: str) -> None:
    written = comment(text, mark)
    read: Callable[[str], str] = _translated if mark == "//" else str
    assert all(line.startswith(mark) for line in read(written).splitlines())
    assert mark != "//" or written.isascii()


@given(ANY_TEXT)
def test_sql_quotes_close_at_the_end_only(text: str) -> None:
    assert re.fullmatch(r"'(?:[^']|'')*'", sql_literal(text))
    assert sql_literal(text)[1:-1].replace("''", "'") == text
    assert re.fullmatch(r"`(?:[^`]|``)*`", sql_name(text))
    assert sql_name(text)[1:-1].replace("``", "`") == text


def test_what_can_be_seen() -> None:
    assert is_visible("per cent é \U0001f600")
    assert not any(map(is_visible, ("a\nb", "\0", "\u202e", "\ud800", "\u2028")))


@pytest.mark.parametrize("target", TARGETS)
def test_a_plan_that_sorts_says_that_a_topic_is_read_in_its_own_order(target: str) -> None:
    """Rows of a file by customer: sorted nothing is late, in their own order 6,726 of 6,919 records are."""
    sorts = sk.group_by_key("user", timestamp="at", unit="ms", sort="timestamp").windowed_by(SESSIONS).count()
    said = [each for each in getattr(sorts, target)().differences if "sorts" in each]
    assert said == [
        'The plan sorts its rows by time first; topic "input" is read in its own order, in which records may be late.'
    ]
    assert not [each for each in getattr(_plan(), target)().differences if "sorts" in each]
