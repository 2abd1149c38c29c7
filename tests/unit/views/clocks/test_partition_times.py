"""The stream times of partitions beside each other, beside a plain walk over the records with pandas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from tests.kinds import EACH_KIND, each_kind, plan_of
from tests.property.streams import draw

of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)
START = pd.Timestamp("2024-07-01", tz="UTC").value // 10**6


def plan(windows: Any, **more: Any) -> sk.Plan:
    return plan_of(windows, timestamp="time", partition="partition", offset="offset", on_bad_time="drop", **more)


def small(partition: list[int], time: list[int], windows: Any = EACH_KIND["session"]) -> sk.Run:
    """Records of one key: of these partitions, at these times."""
    frame = pd.DataFrame({"key": ["a"] * len(time), "partition": partition, "time": time}).astype({"partition": int})
    return plan_of(windows, timestamp="time", partition="partition").run(frame.astype({"time": int}))


def steady(count: int, partitions: int, windows: Any, *, idle: tuple[int, float, float] | None = None) -> sk.Run:
    """Records every 20 s, spread over partitions, of which one may be left out from one share of them to another."""
    rng = np.random.default_rng(partitions)
    partition, place = rng.integers(0, partitions, count), np.arange(count) / count
    if idle is not None:
        left_out = (partition == idle[0]) & (place >= idle[1]) & (place < idle[2])
        partition = np.where(left_out, (idle[0] + 1) % partitions, partition)
    times = START + np.arange(count) * 20_000
    frame = pd.DataFrame({"key": "a", "partition": partition, "time": times})
    return plan_of(windows, timestamp="time", partition="partition").run(frame)


def walked(done: sk.Run) -> pd.DataFrame:
    """After each record: the stream time of each partition, NaN before it has one."""
    trace = done.trace
    times = pd.DataFrame(
        {"at": range(len(trace)), "partition": trace.batch.partition, "time": trace.stream_time_ms.astype(float)}
    )
    wide = times.pivot(index="at", columns="partition", values="time").reindex(
        columns=range(len(trace.batch.partitions))
    )
    brought = np.where(trace.first_stream_time_ms >= 0, trace.first_stream_time_ms.astype(float), np.nan)
    return wide.where(wide >= 0).ffill().fillna(dict(enumerate(brought)))


def compare_with_pandas(done: sk.Run) -> None:
    wide = walked(done)
    leader = wide.max(axis=1)
    lag = (-wide).add(leader, axis=0)
    table = done.partition_times().table().to_pandas()
    batch = done.trace.batch
    assert table["records"].tolist() == np.bincount(batch.partition, minlength=len(batch.partitions)).tolist()
    for code, row in enumerate(table.itertuples()):
        mine = lag[code].dropna()
        if not len(mine):
            assert pd.isna(row.stream_time_ms)
            assert pd.isna(row.mean_behind_ms)
            continue
        assert row.stream_time_ms == wide[code].iloc[-1]
        assert row.behind_ms == mine.iloc[-1]
        assert row.most_behind_ms >= mine.max()
        assert row.mean_behind_ms == pytest.approx(mine.mean(), rel=1e-6, abs=1e-6 * leader.max())
    is_open = done.table().to_pandas().query("status == 'open'").groupby("partition").size()
    assert table["open_count"].tolist() == is_open.reindex(batch.partitions, fill_value=0).tolist()
    assert table["led_count"].sum() == leader.notna().sum()


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(10))
def test_numbers_are_those_of_pandas_on_random_records(windows: Any, seed: int) -> None:
    done = plan(windows).run(draw(seed).table)
    if len(done.trace):
        compare_with_pandas(done)


@of_each_kind
def test_numbers_of_a_run_that_goes_on_from_a_store(windows: Any) -> None:
    table = draw(5, most=60).table
    half = len(table) // 2
    with sk.open_store("memory", "s", of=windows.holds) as store:
        plan(windows).run(table.slice(0, half), store=store)
        done = plan(windows).run(table.slice(half), store=store)
        assert (done.trace.first_stream_time_ms >= 0).any()
        wide = walked(done)
        lag = (-wide).add(wide.max(axis=1), axis=0)
        means = done.partition_times().table().to_pandas()["mean_behind_ms"]
        assert means.tolist() == pytest.approx(lag.mean().tolist(), nan_ok=True)


def test_what_is_said_beside_the_table() -> None:
    assert repr(small([], []).partition_times()) == "There are no records."
    assert repr(small([0, 0], [1, 2]).partition_times()) == (
        "There is one partition: nothing is ahead of it or behind it."
    )
    said = "2 partitions; .table() says how far each is behind the one that is ahead."
    assert repr(small([0, 1, 0, 1], [5, 5, 5, 5]).partition_times()) == said
    in_turn = small([0, 0, 0, 1, 1], [0, 5, 10, 4, 8]).partition_times()
    assert repr(in_turn) == (
        f"{said} The rows stand partition by partition: how these arrived beside each other is not known."
    )


def test_how_long_a_partition_stood_still_is_in_the_table() -> None:
    table = small([0, 1, 0, 0], [0, 5, 10, 40]).partition_times().table()
    assert table["behind_ms"].tolist() == table["moved_on_ms"].tolist() == [0, 35]
    assert table["led_count"].tolist() == [3, 1]
    assert table["open_count"].tolist() == [1, 1]
    went_on = small([0, 1, 0, 0, 1], [0, 5, 10, 40, 41]).partition_times().table()
    assert went_on["stood_still_ms"].tolist() == [5, 35]
    assert went_on["moved_on_ms"].tolist() == [1, 0]


def test_partitions_that_nothing_moved() -> None:
    frame = pd.DataFrame({"key": ["a", "b", None, "a"], "partition": [0, 1, 2, 0], "time": [1, 2, 3, 4]})
    times = plan_of(EACH_KIND["session"], timestamp="time", partition="partition").run(frame).partition_times()
    for name in ("stream_time_ms", "behind_ms", "most_behind_ms", "stood_still_ms"):
        assert times.table()[name].isna().tolist() == [False, False, True]


def test_a_partition_that_stands_still_has_its_open_windows() -> None:
    done = steady(3_000, 3, each_kind(60_000)["session"], idle=(2, 0.6, 1.1))
    times = done.trace.batch.timestamp_ms
    row = done.partition_times().table().iloc[2]
    last = times[done.trace.batch.partition == 2][-1]
    assert row["stream_time_ms"] == last
    assert row["moved_on_ms"] == row["stood_still_ms"] <= times[-1] - last
    assert row["open_count"] == 1
