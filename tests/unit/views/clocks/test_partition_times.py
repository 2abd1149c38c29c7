"""The stream times of partitions beside each other, beside a plain walk over the records with pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.views.partition_times import Course, about
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
        course = Course(done.trace)
        lag = (-wide).add(wide.max(axis=1), axis=0)
        assert course.mean_behind_ms.tolist() == pytest.approx(lag.mean().tolist(), nan_ok=True)


def test_words() -> None:
    assert repr(small([], []).partition_times()) == "There are no records."
    assert repr(small([0, 0], [1, 2]).partition_times()) == (
        "There is one partition: nothing is ahead of it or behind it."
    )
    assert repr(small([0, 1, 0, 1], [5, 5, 5, 5]).partition_times()) == (
        "All 2 partitions have the same stream time, at any moment."
    )
    assert repr(small([0, 1, 0, 0], [0, 5, 10, 40]).partition_times()) == (
        "Partition 0 is ahead after 75% of the arrivals; partition 1 is furthest behind, by 13 ms on average and 35 ms "
        "at most. Partition 1 stands still at 5 ms while the other moved on by 35 ms: its open session stays open."
    )
    assert repr(small([0, 1, 0, 0, 1], [0, 5, 10, 40, 41]).partition_times()).endswith(
        "Partition 1 stood still at 5 ms while the other moved on by 35 ms, and then went on."
    )


def test_partitions_that_nothing_moved() -> None:
    frame = pd.DataFrame({"key": ["a", "b", None, "a"], "partition": [0, 1, 2, 0], "time": [1, 2, 3, 4]})
    done = plan_of(EACH_KIND["session"], timestamp="time", partition="partition").run(frame)
    times = done.partition_times()
    assert times.words()[-1] == "Partition 2 has no stream time: no record moved it."
    assert times.table()["behind_ms"].isna().tolist() == [False, False, True]
    only = plan_of(EACH_KIND["session"], timestamp="time", partition="partition").run(frame.iloc[[0, 2]])
    assert repr(only.partition_times()) == "Only partition 0 has a stream time: no record moved another one."
    nothing = plan_of(EACH_KIND["session"], timestamp="time", partition="partition").run(frame.iloc[[2]])
    assert repr(nothing.partition_times()) == "There is one partition: nothing is ahead of it or behind it."


def test_a_partition_that_stands_still_is_named_with_its_open_windows() -> None:
    done = steady(3_000, 3, each_kind(60_000)["session"], idle=(2, 0.6, 1.1))
    last = done.trace.batch.timestamp_ms[done.trace.batch.partition == 2][-1]
    when = pd.Timestamp(last, unit="ms").strftime("%Y-%m-%d %H:%M:%S")
    moved_on = about(int(done.trace.batch.timestamp_ms[-1] - last))
    said = done.partition_times().words()[1]
    assert (
        said
        == f"Partition 2 stands still at {when} while the others moved on by {moved_on}: its open session stays open."
    )
    assert repr(done.partition_times()).endswith("Times are in UTC.")


def test_rows_that_stand_partition_by_partition_say_nothing_about_arrivals() -> None:
    done = steady(300, 3, each_kind(60_000)["session"], idle=(1, 0.5, 1.1))
    frame = pd.DataFrame({"partition": done.trace.batch.partition, "time": done.trace.batch.timestamp_ms, "key": "a"})
    in_turn = plan_of(each_kind(60_000)["session"], timestamp="time", partition="partition").run(
        frame.sort_values("partition", kind="stable")
    )
    said = in_turn.partition_times().words()
    assert said[0] == "The rows stand partition by partition: how these arrived beside each other is not known."
    assert said[1].startswith("At the end partition 1 is furthest behind, by ")


@pytest.mark.parametrize("partition", [[0, 1, 0, 0], [0]])
def test_a_notebook_shows_the_sentences(partition: list[int]) -> None:
    times = small(partition, [5 * at for at in range(len(partition))]).partition_times()
    shown = times._repr_html_()
    assert all(f"<p>{line}</p>" in shown for line in times.words())
    assert shown.count("<p>") == len(times.words())


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 s"), (999, "999 ms"), (1_949, "1 s 900 ms"), (59_700, "1 min"), (93_784_913, "1 d 2 h"), (864e6, "10 d")],
)
def test_lengths_without_digits_that_do_not_matter(ms: float, said: str) -> None:
    assert about(int(ms)) == said
