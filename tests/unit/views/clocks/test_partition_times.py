"""The stream times of partitions beside each other, beside a plain walk over the records with pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.views.charts.clocks.partition_times import _short
from sessionkit.views.clocks.course import Course
from sessionkit.views.clocks.partition_times import about
from tests.headings import heading
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


@pytest.mark.parametrize("count", [7, 200, 3_000])
def test_stretches_lose_no_peak_and_no_average(count: int) -> None:
    done = steady(count, 3, each_kind(1_000)["session"], idle=(1, 0.3, 0.6))
    course, wide = Course(done.trace), walked(done)
    lag = (-wide).add(wide.max(axis=1), axis=0)
    places = np.unique(np.ceil(np.linspace(0, count, min(count, 50) + 1)[1:]).astype(int))
    stretch = np.searchsorted(places, np.arange(1, count + 1))
    for code in range(course.count):
        mean = lag[code].groupby(stretch).mean()
        assert course.mean_behind_over(code, places).tolist() == pytest.approx(mean.tolist(), nan_ok=True)
        most = course.behind_over(code, places)
        assert np.nanmax(most) == course.most_behind_ms[code] == lag[code].max()
        assert (most >= lag[code].groupby(stretch).max().fillna(-1))[~np.isnan(most)].all()


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
    (bars,) = in_turn.partition_times().figure().data
    assert bars.orientation == "h"
    ends = [int(base + length) for base, length in zip(bars.base, bars.x, strict=True)]
    assert ends == frame.groupby("partition")["time"].max().tolist()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("partitions", [2, 8, 300])
@pytest.mark.parametrize("count", [400, 4_000])
def test_pictures(partitions: int, count: int, theme: Any) -> None:
    times = steady(count, partitions, each_kind(20_000)["session"], idle=(1, 0.5, 1.1)).partition_times()
    figure = times.figure(theme=theme)
    assert times.words()[0] in heading(figure)
    names = [note.text for note in figure.layout.annotations]
    seen = int((Course(times.trace).last_stand >= 0).sum())
    assert len(names) == (seen if seen <= 8 else 7)
    assert "partition 1" in names or count < partitions * 10
    most = max(np.nanmax(each.y) for each in figure.data if each.name == "at most")
    assert most == Course(times.trace).most_behind_ms.max() or seen > 8
    assert any(each.name == "stands still while others move on" for each in figure.data)


def test_a_notebook_shows_the_picture_or_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plotly.io.renderers.default", "plotly_mimetype")
    times = steady(200, 3, each_kind(1_000)["session"]).partition_times()
    shown = times._repr_mimebundle_()
    assert "application/vnd.plotly.v1+json" in shown
    assert shown["text/plain"] == repr(times)
    assert set(small([0], [1]).partition_times()._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert small([0], [1]).partition_times().figure().data == ()


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 s"), (999, "999 ms"), (1_949, "1 s 900 ms"), (59_700, "1 min"), (93_784_913, "1 d 2 h"), (864e6, "10 d")],
)
def test_lengths_without_digits_that_do_not_matter(ms: float, said: str) -> None:
    assert about(int(ms)) == said


def test_a_time_in_the_hour_that_comes_twice_keeps_its_offset() -> None:
    assert _short("2024-10-27 02:30:15.250+01:00") == "2024-10-27 02:30+01:00"
    assert _short("2024-10-26 21:30:15") == "2024-10-26 21:30"
    assert _short("12,345 ms") == "12,345 ms"
