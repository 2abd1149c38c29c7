"""Counters under Kafka's names, with tags, levels and a clock that is passed in."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.deployments import run_by, run_deployed

WINDOWS = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=5, grace_ms=5),
    "tumbling": sk.TimeWindows(size_ms=10, grace=0),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=5, grace=0),
    "sliding": sk.SlidingWindows(time_difference_ms=10, grace=0),
}


def data() -> pd.DataFrame:
    at = [0, 30, 2, 60, 31, 90, 1, 120]
    keys = ["a", "a", "a", "b", "a", "b", "b", None]
    return pd.DataFrame({"key": keys, "at": at, "p": [3, 3, 3, 7, 3, 7, 7, 7], "o": [0, 1, 2, 0, 3, 1, 2, 3]})


def run(kind: str, strategy: str, **options: Any) -> Any:
    keyed = sk.group_by_key("key", timestamp="at", unit="ms", partition="p", offset="o")
    return run_by(keyed.windowed_by(WINDOWS[kind]).emit(strategy).count(), data(), **options)


def total(table: pd.DataFrame, name: str) -> float:
    return float(table.loc[table["name"] == name, "value"].sum())


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_the_totals_are_those_of_metrics(kind: str, strategy: str, rules: str) -> None:
    options: dict[str, Any] = {"rules": rules, "retention": "100ms"} if rules == "kafka" else {}
    done = run(kind, strategy, **options)
    table, counts = done.kafka_metrics(level="debug"), done.metrics()
    assert counts["dropped-records-total"] > 0
    assert total(table, "dropped-records-total") == counts["dropped-records-total"]
    for name in ("window-aggregate-final-emit-total", "emit-final-records-total"):
        assert total(table, name) == counts["window-aggregate-final-emit-total"]
    assert (counts["window-aggregate-final-emit-total"] > 0) == (strategy == "on_window_close")
    assert table.loc[table["name"].str.contains("rate|latency"), "value"].isna().all()


def test_tags_and_levels() -> None:
    done = run("sessions", "on_window_close")
    info, debug = done.kafka_metrics(), done.kafka_metrics(level="debug")
    assert info["name"].tolist() == ["dropped-records-total", "dropped-records-rate"] * 2
    assert info["task_id"].tolist() == ["0_3", "0_3", "0_7", "0_7"]
    assert info["processor_node_id"].isna().all()
    of_node = debug[debug["processor_node_id"].notna()]
    assert set(of_node["group"]) == {"stream-processor-node-metrics"}
    assert set(of_node["processor_node_id"]) == {"KSTREAM-AGGREGATE-0000000002"}
    assert of_node[of_node["task_id"] == "0_7"]["name"].tolist() == [
        *(f"window-aggregate-final-emit-{end}" for end in ("total", "rate", "latency-avg", "latency-max")),
        *(f"emit-final-{end}" for end in ("records-total", "records-rate", "latency-avg", "latency-max")),
    ]
    with pytest.raises(InvalidArgument, match="level must be"):
        done.kafka_metrics(level="trace")


def test_rates_and_latencies_go_by_the_clock() -> None:
    """The clock moves by a second at each record, and by 40 ms while final results go out."""
    now = [0]

    def clock() -> int:
        now[0] += 20 if len(asked) % 3 else 960
        asked.append(now[0])
        return now[0]

    asked: list[int] = []
    keyed = sk.group_by_key("key", timestamp="at", unit="ms")
    plan = keyed.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).emit("on_window_close").count()
    frame = pd.DataFrame({"key": "a", "at": [10 * i for i in range(101)]})
    done = run_deployed(plan, frame, retention="1000ms", wall_clock=clock)
    table = done.kafka_metrics(level="debug").set_index("name")["value"]
    assert table["emit-final-records-total"] == 100
    assert table["emit-final-latency-avg"] == table["emit-final-latency-max"] == 20
    assert table["emit-final-records-rate"] == pytest.approx(1, rel=0.02)
    assert table["dropped-records-rate"] == 0


def test_rates_forget_what_is_a_minute_old() -> None:
    late = pd.DataFrame({"key": "a", "at": [100, *[0] * 6, 101]})
    keyed = sk.group_by_key("key", timestamp="at", unit="ms")
    plan = keyed.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).count()
    for clock, rate in (
        ([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 60_000], 6 / 60),
        ([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 85_000], 4 / 60),
        ([0, 1, 2, 3, 4, 5, 6, 10], 6 / 30),
        ([0, 1, 2, 3, 4, 5, 6, 999_999], 0),
    ):
        done = run_deployed(plan, late, retention="1000ms", wall_clock=clock)
        value = done.kafka_metrics().set_index("name")["value"]["dropped-records-rate"]
        assert value == pytest.approx(rate)


def test_a_clock_tells_the_time_of_every_record() -> None:
    with pytest.raises(InvalidArgument, match="the clock must have one time for each record; got 3 for 8"):
        run("sessions", "on_window_close", rules="kafka", wall_clock=[0, 1, 2])


def test_what_was_read_before_is_not_dropped() -> None:
    keyed = sk.group_by_key("key", timestamp="at", unit="ms", partition="p", offset="o")
    for windows in WINDOWS.values():
        plan = keyed.windowed_by(windows).count()
        with sk.open_store("memory", "s", of="sessions" if windows is WINDOWS["sessions"] else "windows") as store:
            plan.run(data(), store=store)
            again = plan.run(data(), store=store)
        assert again.metrics()["replayed-records"] == 8
        assert total(again.kafka_metrics(), "dropped-records-total") == 0


def test_a_clock_as_a_column_is_read_by_place() -> None:
    frame = pd.DataFrame({"key": "a", "at": [0, 10, 20, 30], "wall": [0, 1_000, 2_000, 3_000]}, index=[3, 2, 1, 0])
    keyed = sk.group_by_key("key", timestamp="at", unit="ms")
    plan = keyed.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).emit("on_window_close").count()
    options: dict[str, Any] = {"retention": "1s", "emit_interval": "1500ms"}
    expected = run_deployed(plan, frame, wall_clock=[0, 1_000, 2_000, 3_000], **options).changelog()
    assert len(expected) == 2
    for clock in (frame["wall"], frame["wall"].to_numpy(), pa.array(frame["wall"]), tuple(frame["wall"])):
        assert run_deployed(plan, frame, wall_clock=clock, **options).changelog().equals(expected)
    by_name = run_deployed(plan, frame, clock="wall", **options)
    assert by_name.changelog().equals(expected) and by_name.kafka_metrics()["value"].notna().all()
    assert (
        run_deployed(plan, frame, **options).kafka_metrics()["value"].isna().any()
    )  # stream time is no clock of its own
    for clock in ([0, 1, None, 3], [0.0, 1.0, 2.0, 3.5], lambda: None, frame["at"].astype("datetime64[ms]"), 5):
        with pytest.raises(InvalidArgument, match="the clock"):
            run_deployed(plan, frame, wall_clock=clock, **options)


def of(table: pd.DataFrame, name: str) -> list[Any]:
    return [None if pd.isna(value) else value for value in table.loc[table["name"] == name, "value"]]


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_how_late_records_are(rules: str) -> None:
    """Partition 3 has 0, 30, 2, 31; partition 7 has 60, 90, 1 and, without a key, 120."""
    table = run("sessions", "on_window_update", rules=rules).kafka_metrics(level="debug")
    assert of(table, "record-lateness-max") == [28, 89]
    assert of(table, "record-lateness-avg") == [7, 89 / 4]
    assert set(table.loc[table["name"].str.contains("lateness"), "group"]) == {"stream-task-metrics"}
    assert not of(run("sessions", "on_window_update").kafka_metrics(), "record-lateness-max")
    clock = [0, 0, 0, 0, 200_000, 0, 200_000, 200_000]
    recent = run("sessions", "on_window_update", rules="kafka", wall_clock=clock).kafka_metrics(level="debug")
    assert (of(recent, "record-lateness-max"), of(recent, "record-lateness-avg")) == ([0, 89], [0, 89 / 2])


@pytest.mark.parametrize("most", [None, 10_000])
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_what_suppress_sent_and_held(rules: str, most: int | None) -> None:
    keyed = sk.group_by_key("key", timestamp="at", unit="ms", partition="p", offset="o")
    plan = keyed.windowed_by(WINDOWS["sessions"]).count().suppress("until_window_closes", max_bytes=most)
    done = run_by(plan, data(), rules=rules)
    table, buffer = done.kafka_metrics(level="debug"), done.suppress_buffer()
    sent = done.changelog()["partition"].value_counts()
    assert of(table, "suppression-emit-total") == [int(sent.get(number, 0)) for number in (3, 7)]
    assert max(of(table, "suppression-buffer-count-max")) == buffer.most_records > 0
    sizes = of(table, "suppression-buffer-size-max")
    assert sizes == [None, None] if (rules, most) == ("sessionkit", None) else max(sizes) == buffer.most_bytes
    of_buffer = table[table["name"].str.startswith("suppression-buffer")]
    assert set(of_buffer["processor_node_id"]) == {"KTABLE-SUPPRESS-STATE-STORE-0000000004"}
    assert not of(run("sessions", "on_window_update").kafka_metrics(level="debug"), "suppression-emit-total")
