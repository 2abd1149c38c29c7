"""A run over time: the open windows after each record, and how long final results take."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from tests.headings import heading
from tests.interpreted import ALL
from tests.kinds import EACH_KIND, plan_of
from tests.property.streams import draw

of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)


def plan(windows: Any) -> sk.Plan:
    return plan_of(windows, timestamp="time", partition="partition", offset="offset", on_bad_time="drop")


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(12 if ALL else 4))
def test_open_windows_are_those_of_the_run_so_far(windows: Any, seed: int) -> None:
    table = draw(seed, most=40).table
    counts = plan(windows).run(table).open_windows().counts
    so_far = [plan(windows).run(table.slice(0, i + 1)).metrics()["windows-open"] for i in range(len(table))]
    assert counts.tolist() == so_far


@of_each_kind
def test_open_windows_that_a_store_brought(windows: Any) -> None:
    table = draw(5, most=60).table
    half = len(table) // 2
    with sk.open_store("memory", "s", of=windows.holds) as store:
        plan(windows).run(table.slice(0, half), store=store)
        counts = plan(windows).run(table.slice(half), store=store).open_windows().counts
    assert counts.tolist() == plan(windows).run(table).open_windows().counts[half:].tolist()


@pytest.mark.slow
@of_each_kind
@pytest.mark.parametrize("seed", range(12))
def test_a_result_waits_from_its_end_to_the_record_that_closed_it(windows: Any, seed: int) -> None:
    done = plan(windows).run(draw(seed).table)
    latency = done.latency()
    table = latency.table().to_pandas()
    assert len(table) == len(plan(windows).emit("on_window_close").run(draw(seed).table).changelog())
    assert (table["delay_ms"] >= latency.least_ms).all()
    assert (table["waited_ms"] == table["delay_ms"] - latency.least_ms).all()
    assert (table["delay_ms"] == table["stream_time_ms"] - table["window_end_ms"]).all()


def test_words() -> None:
    frame = pd.DataFrame({"key": list("aabb"), "time": [0, 3, 18, 40]})
    done = plan_of(EACH_KIND["session"], timestamp="time").run(frame)
    assert repr(done.latency()) == (
        "2 results became final: half within 29 ms of the session's end, the last after 37 ms; 16 ms is the least. "
        "1 session is still open: nothing has closed it."
    )
    nothing = plan_of(EACH_KIND["tumbling"], timestamp="time").run(frame[:1])
    assert repr(nothing.latency()) == "No window became final. 1 window is still open: nothing has closed it."


def test_open_windows_as_numbers_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"key": list("abca"), "time": [0, 3, 4, 40]})
    done = plan_of(EACH_KIND["session"], timestamp="time").run(frame)
    held = done.open_windows()
    assert (held.most, held.at_end) == (3, 1)
    assert held.table().to_dict("list") == {
        "partition": [0] * 4,
        "offset": [0, 1, 2, 3],
        "stream_time_ms": [0, 3, 4, 40],
        "open_count": [1, 2, 3, 1],
    }
    assert repr(held) == "At most 3 sessions were open at once, first at stream time 4 ms; 1 at the end."
    assert repr(held) in heading(held.figure())
    monkeypatch.setattr("plotly.io.renderers.default", "plotly_mimetype")
    shown = held._repr_mimebundle_()  # a picture, where a notebook shows it
    assert shown["application/vnd.plotly.v1+json"]["data"][0]["name"] == "open"
    assert shown["text/plain"] == repr(held)
    one = plan_of(EACH_KIND["session"], timestamp="time")
    assert repr(one.run(frame[:1]).open_windows()) == (
        "At most 1 session was open at once, first at stream time 0 s; 1 at the end."
    )
    assert repr(one.run(frame[:0]).open_windows()) == "No session was ever open."


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [0, 1, 30, 20_000])
def test_pictures(size: int, theme: Any) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"key": rng.choice(list("abc"), size), "time": np.sort(rng.integers(0, 40 * size + 1, size))})
    for windows in EACH_KIND.values():
        done = plan_of(windows, timestamp="time").run(frame)
        (bars,) = done.latency().figure(theme=theme).data
        assert sum(bars.y[:-1]) == len(done.latency().delay_ms)
        drawn = {trace.name: trace.y for trace in done.open_windows().figure(theme=theme).data}
        counts = done.open_windows().counts
        if size <= 4_000:
            assert drawn["open"].tolist() == counts.tolist()
        else:  # a band, in which no peak is lost
            assert drawn["from the fewest to the most"].max() == counts.max()
            assert drawn["fewest"].min() == counts.min() and len(drawn["mostly"]) <= 150
