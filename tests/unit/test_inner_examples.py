"""What inner functions give, an example each."""

from __future__ import annotations

from sessionkit.advice.sweep import lengths_ms
from sessionkit.base.durations import about, enough_ms, grace_with, lacked, show_duration
from sessionkit.base.moments import known_zone
from sessionkit.base.text import is_text, is_visible
from sessionkit.cli.saying import with_options
from sessionkit.exports.lengths import flink_interval, java_duration, ksql_length, spark_interval
from sessionkit.records.keys import key_bytes
from sessionkit.records.places import murmur2
from sessionkit.report.parts import show_length
from sessionkit.spark.environment.java_home import is_accepted, parse_version
from sessionkit.spark.worker.shuffle import slot_of
from sessionkit.stores.sizes import byte_count, byte_text
from sessionkit.stores.typed_bytes import pieces_around_numbers
from sessionkit.widgets.controls import Length
from sessionkit.widgets.tables.columns import said_number


def test_times_and_texts() -> None:
    assert (about(165_722_537), about(1_287_000), about(544)) == ("1 d 22 h", "21 min", "544 ms")
    assert show_duration(enough_ms(165_722_537)) == "1 d 22 h 3 min"
    assert (lacked(17_032_100), grace_with(60_000, 17_032_100)) == ("4 h 44 min", "4 h 45 min")
    assert (known_zone("Europe/Berlin"), known_zone("GMT+2"), known_zone("Z")) == ("Europe/Berlin", "+02:00", "UTC")
    assert (is_visible("per cent"), is_visible("a\nb")) == (True, False)
    assert (is_text("é"), is_text("\ud800")) == (True, False)


def test_lengths_in_other_languages() -> None:
    assert (java_duration(300_000), java_duration(40_001)) == (
        "Duration.ofMinutes(5)",
        "Duration.ofSeconds(40).plusMillis(1)",
    )
    assert (ksql_length(5_400_000), ksql_length(40_001)) == ("90 MINUTES", "40001 MILLISECONDS")
    assert (flink_interval(300_000), flink_interval(10_002)) == (
        "INTERVAL '5' MINUTE",
        "INTERVAL '0 00:00:10.002' DAY(1) TO SECOND(3)",
    )
    assert (spark_interval(5_400_000), spark_interval(10_001), spark_interval(172_800_000)) == (
        "1 hour 30 minutes",
        "10 seconds 1 millisecond",
        "48 hours",
    )


def test_keys() -> None:
    assert (key_bytes("ada"), key_bytes(1)) == (b"ada", b"\x00\x00\x00\x00\x00\x00\x00\x01")
    assert murmur2(b"ada") == -1834195827


def test_what_people_read() -> None:
    assert (show_length(1_234), show_length(3_723_456), show_length(90_061_000)) == (
        "1 s 234 ms",
        "1 h 2 min 3 s",
        "1 d 1 h 1 min",
    )
    assert (said_number(28491), said_number(0.1 + 0.2), said_number(1234567.891), said_number(float("nan"))) == (
        "28,491",
        "0.3",
        "1,234,567.89",
        "not a number",
    )
    grace = Length("grace", [1_000, 60_000], 5_000)
    assert (grace.words, grace.place) == (["1 s", "5 s", "1 min"], 1)
    assert (lengths_ms({"inactivity_gap": "1h", "grace_ms": 5})) == {"inactivity_gap": 3600000, "grace": 5}
    assert (
        with_options('drop them, or pass on_bad_time="drop" to count them as dropped')
    ) == "drop them, or pass --on-bad-time drop to count them as dropped"


def test_spark() -> None:
    assert (parse_version("17.0.15"), parse_version("1.8.0_292"), parse_version("25-ea")) == (
        (17, 0, 15),
        (8, 0, 292),
        (25,),
    )
    assert (is_accepted((21, 0, 8)), is_accepted((11, 0, 2)), is_accepted((25, 0, 2))) == (True, False, False)
    assert [slot_of(partition) for partition in range(4)] == [1021, 94, 1007, 991]


def test_sizes_and_bytes() -> None:
    assert (byte_count("10MB", "caching"), byte_count("512 B", "caching")) == (10485760, 512)
    assert (byte_text(10_485_760), byte_text(1_000)) == ("10MB", "1000B")
    assert pieces_around_numbers({"n": 1}) == [b"m\x00\x00\x00\x01s\x00\x00\x00\x01n", b""]
