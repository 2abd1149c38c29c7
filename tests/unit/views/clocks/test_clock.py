"""Who moved the clock, beside a plain walk over the records."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.decisions import IDLE
from sessionkit.errors import InvalidArgument, NotKept
from tests.kinds import EACH_KIND, each_kind, plan_of
from tests.property.streams import draw

HOUR = 3_600_000
START = pd.Timestamp("2024-07-01", tz="UTC").value // 10**6
of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)


def walked(run: sk.Run) -> Counter[tuple[int, int | None]]:
    """(partition, offset of the record that had set its stream time) of each late record; offset None: an earlier run
    or no record."""
    trace, lost = run.trace, Counter[tuple[int, int | None]]()
    stream = trace.first_stream_time_ms.tolist()
    holder: list[int | None] = [None] * len(stream)
    for row, code in enumerate(trace.batch.partition.tolist()):
        if trace.stream_time_ms[row] > stream[code]:
            stream[code] = int(trace.stream_time_ms[row])
            holder[code] = None if trace.decision[row] == IDLE else int(trace.batch.offset[row])
        if trace.late_for_some[row]:
            lost[int(trace.batch.partitions[code]), holder[code]] += 1
    return lost


def told(run: sk.Run) -> Counter[tuple[int, int | None]]:
    table, rows = run.clock().table(), Counter[tuple[int, int | None]]()
    columns = (np.asarray(table[name]).tolist() for name in ("partition", "offset", "late"))
    for partition, offset, late in zip(*columns, strict=True):
        rows[partition, None if offset is None or pd.isna(offset) else int(offset)] += late
    return rows


def one_ahead(windows: Any, **more: Any) -> sk.Run:
    """A heartbeat each minute of three hosts, of which one is a day ahead once."""
    times = START + np.repeat(np.arange(600) * 60_000, 3)
    times[301] += 24 * HOUR
    frame = pd.DataFrame({"key": np.tile(["web", "db", "mail"], 600), "time": times})
    return plan_of(windows, timestamp="time", timezone="UTC", **more).run(frame)


@of_each_kind
@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_a_walk_over_the_records_finds(windows: Any, seed: int) -> None:
    frame = draw(seed, 300).table
    plan = plan_of(windows, timestamp="time", partition="partition", offset="offset", on_bad_time="drop")
    run = plan.run(frame)
    assert told(run) == walked(run)
    late = [int(each) for each in np.asarray(run.clock().table()["late"])]
    assert late == sorted(late, reverse=True)
    assert (
        sum(late)
        == run.clock().late_count
        == run.trace.late_for_some.sum()
        == int(np.sum(np.asarray(run.losses()["late"])))
    )


@pytest.mark.parametrize("kind", EACH_KIND)
def test_one_record_far_ahead_is_named_with_how_far(kind: str) -> None:
    run = one_ahead(each_kind(60_000)[kind])
    found, row = run.clock(), run.clock().table().iloc[0]
    assert (row["key"], row["offset"], row["what"], row["moved_ms"]) == ("db", 301, "record", 24 * HOUR)
    assert row["late"] == found.late_count > 1_400
    assert row["share"] == 1
    assert found.words()[1:] == [
        "Record 301 (key db), event time 2024-07-02 01:40:00, moved stream time by 1 d and was 1 d ahead of those that "
        f"came next: {found.late_count:,} records (100%) came too late because of it.",
        "Times are in UTC.",
    ]
    assert repr(found) == " ".join(found.words())
    assert found.figure(theme="dark").data[0].x == (found.late_count,)
    assert "text/html" in found._repr_mimebundle_() or "text/plain" in found._repr_mimebundle_()


def small(times: list[int]) -> Any:
    frame = pd.DataFrame({"key": ["a"] * len(times), "time": times}).astype({"time": int})
    return plan_of(EACH_KIND["session"], timestamp="time").run(frame).clock()


def test_few_records() -> None:
    for none_late in ([], [1], [1, 2]):
        assert repr(small(none_late)) == "No record came too late."
    assert repr(small([100, 2])) == (
        "1 of 2 records (50%) was dropped as late. Record 0 (key a), event time 100 ms, moved stream time and was 98 "
        "ms ahead of those that came next: 1 record (100%) came too late because of it."
    )
    assert repr(small([100, 2, 3, 200, 4])).endswith(": 2 records (66.67%) came too late because of it.")
    assert small([100, 2, 200, 3, 300, 4]).words()[2] == "Half of them are lost to 2 of the 3 that any were lost to."
    assert len(small([]).table()) == 0
    assert small([]).figure().layout.title.text.endswith("No record came too late.</span>")
    assert small([100, 2]).table()["moved_ms"].isna().all()


def test_over_a_store_the_record_may_be_of_an_earlier_run() -> None:
    plan = plan_of(EACH_KIND["session"], timestamp="time")
    with sk.open_store("memory", "kept", of="sessions", retention="1s") as store:
        plan.run(pd.DataFrame({"key": ["a"], "time": [500]}), store=store)
        run = plan.run(pd.DataFrame({"key": ["a", "a", "b", "a"], "time": [3, 4, 900, 5]}), store=store)
    assert told(run) == walked(run) == {(0, None): 2, (0, 3): 1}
    table = run.clock().table()
    assert table["what"].tolist() == ["earlier run", "record"]
    assert table["key"].tolist()[1] == "b"
    assert table[["offset", "key", "moved_ms"]].isna().iloc[0].all()
    assert "An earlier run, event time 500 ms, moved stream time: 2 records (66.67%) came too late" in repr(run.clock())
    assert "an earlier run moved stream time" in run.clock().figure().to_json()


def test_the_rule_for_idle_partitions_is_no_record() -> None:
    minutes = [("a", 0, 0, 0), ("b", 0, 1, 0), *(("a", at, 0, at) for at in range(1, 60)), ("b", 1, 1, 60)]
    frame = pd.DataFrame(minutes, columns=["key", "time", "partition", "arrived"])
    frame[["time", "arrived"]] *= 60_000
    plan = plan_of(
        each_kind(1_000)["session"], timestamp="time", partition="partition", idle_after="10m", arrival="arrived"
    )
    run = plan.run(frame)
    table = run.clock().table()
    assert told(run) == walked(run)
    assert table[["what", "late"]].values.tolist() == [["idle rule", 1]]
    assert "The rule for idle partitions" in repr(run.clock())


def test_what_has_no_answer_is_refused() -> None:
    plan, frame = plan_of(EACH_KIND["session"], timestamp="time"), pd.DataFrame({"key": ["a"], "time": [1]})
    with pytest.raises(NotKept, match="run it again without trace=False"):
        plan.run(frame, trace=False).clock()
    with pytest.raises(InvalidArgument, match=r"run.clock needs the records of all keys"):
        plan.run(frame, keys=["a"]).clock()
    with pytest.raises(InvalidArgument, match="theme must be a known choice"):
        plan.run(frame).clock().figure(theme="pink")  # type: ignore[arg-type]


def test_a_key_of_markup_is_text_in_the_picture() -> None:
    frame = pd.DataFrame({"key": ["<b>x</b>"] * 3, "time": [100, 2, 3]})
    run = plan_of(EACH_KIND["session"], timestamp="time").run(frame)
    for figure in (run.clock().figure(), run.explain(offset=1).figure()):
        assert "<b>x" not in figure.to_json().replace("\\u003c", "<")
