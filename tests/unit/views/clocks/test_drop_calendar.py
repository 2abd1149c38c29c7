"""A calendar of drops, beside a plain count with pandas."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from tests.kinds import EACH_KIND, each_kind, plan_of
from tests.property.streams import draw

of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)
MINUTES = each_kind(60_000)


def dated(count: int, zone: str, days: float, windows: Any = MINUTES["session"], seed: int = 1) -> sk.Run:
    """Records of some days, a fifth of them up to an hour late."""
    rng, start = np.random.default_rng(seed), pd.Timestamp("2024-10-20", tz=zone).value // 10**6
    ms = start + np.sort(rng.random(count)) * days * 86_400_000
    ms = ms[np.argsort(ms + rng.random(count) * 3_600_000 * (rng.random(count) < 0.2), kind="stable")].astype(np.int64)
    frame = pd.DataFrame({"key": rng.choice(list("abc"), count), "at": pd.to_datetime(ms, unit="ms", utc=True)})
    frame["at"] = frame["at"].dt.tz_convert(zone)
    return sk.group_by_key("key", timestamp="at").windowed_by(windows).aggregate(count=sk.count()).run(frame)


def lost(run: sk.Run) -> pd.Series:
    """For each record, whether it was dropped or missed a window: from the table of drops alone."""
    dropped = run.dropped(missing_grace=False)
    dropped = dropped if isinstance(dropped, pd.DataFrame) else dropped.to_pandas()
    names = ["partition", "offset"]
    at = pd.MultiIndex.from_frame(dropped[dropped["reason"] != "replayed"][names])
    records = run.trace.records().select(names).to_pandas()
    return pd.Series(pd.MultiIndex.from_frame(records).isin(at))


@pytest.mark.slow
@pytest.mark.parametrize("windows", MINUTES.values(), ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_pandas_on_random_records(windows: Any, seed: int) -> None:
    frame = draw(seed).table.to_pandas(types_mapper=pd.ArrowDtype)
    toy = frame["time"].where(frame["time"] < 2**55, frame["time"] - 2**55)
    frame["time"] = toy // 60 if toy.max() > 10**6 else toy * 60_000  # years, or days
    done = plan_of(windows, timestamp="time", partition="partition", offset="offset", on_bad_time="drop").run(
        pa.Table.from_pandas(frame)
    )
    drops, mask = done.drop_calendar(), lost(done)
    assert (drops.record_count, drops.missed_count) == (len(mask), mask.sum())
    missed = "missed" if done.plan.windows.holds == "windows" else "dropped"
    times = done.trace.records()["timestamp_ms"].to_pandas()
    placed = times.notna() & (times >= 0)
    table = drops.table().to_pandas()
    if not (mask & placed).any():
        assert drops._cells is None
        assert not len(table)
        return
    for cell in table.itertuples():
        inside = placed & (times >= cell.start_ms) & (times < cell.end_ms)
        assert (cell.records, getattr(cell, missed)) == (inside.sum(), (inside & mask).sum())
        assert cell.share == cell.dropped / cell.records
    assert table["records"].sum() == placed.sum()  # so few that none is far from the others


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize(("days", "freq"), [(2, "h"), (14, "h"), (200, "D"), (600, "D")])
@pytest.mark.parametrize("kind", ["session", "hopping"])
def test_counts_by_the_clock_of_the_zone(zone: str, days: int, freq: str, kind: str) -> None:
    done = dated(6_000, zone, days, MINUTES[kind])
    table, mask = done.drop_calendar().table(), lost(done)
    assert mask.sum() > 100
    times = pd.to_datetime(done.trace.batch.timestamp_ms, unit="ms", utc=True)
    cells = times.tz_convert(zone).floor(freq) if freq == "D" else times.floor("30min").tz_convert(zone)
    if freq == "h":  # full hours, also in a zone that is half an hour beside them
        cells = cells - pd.to_timedelta(cells.minute, unit="min")
    expected = pd.DataFrame({"mask": mask.to_numpy()}, index=cells).groupby(level=0)["mask"].agg(["size", "sum"])
    assert (table["start"].array == expected.index.as_unit("ms")).all()
    assert table["records"].tolist() == expected["size"].tolist()
    assert table["dropped" if kind == "session" else "missed"].tolist() == expected["sum"].tolist()


def test_words() -> None:
    plan = plan_of(EACH_KIND["session"], timestamp="time", on_bad_time="drop")
    frame = pd.DataFrame({"key": list("aaaaaa"), "time": [0, 100, 200, 21, 21, 120]})
    drops = plan.run(frame).drop_calendar()
    assert drops.unit == "hour"
    assert repr(drops) == (
        "3 of 6 records (50%) were dropped. The worst hour is 1970-01-01 00:00 with 3 of 6 records. Times are in UTC."
    )
    assert repr(plan.run(frame[:4]).drop_calendar()) == "1 of 4 records (25%) was dropped. Times are in UTC."
    assert repr(plan.run(frame[:3]).drop_calendar()) == "None of the 3 records was dropped."
    assert repr(plan.run(frame[:1]).drop_calendar()) == "The record was not dropped."
    assert repr(plan.run(frame[:0]).drop_calendar()) == "There are no records."
    timeless = pd.DataFrame({"key": ["a", "a", "a"], "time": pd.array([5, None, -7], "Int64")})
    assert repr(plan.run(timeless).drop_calendar()) == (
        "2 of 3 records (66.67%) were dropped. 2 dropped records have no time, or one before 1970, and are not shown."
    )


def test_what_missed_a_window_counts() -> None:
    frame = pd.DataFrame({"key": list("aaa"), "time": [1, 22, 11]})
    drops = plan_of(EACH_KIND["hopping"], timestamp="time").run(frame).drop_calendar()
    assert drops.words() == [
        "None of the 3 records was dropped.",
        "1 of them missed some windows, and counts in others.",
    ]


def test_the_usual_hours_and_the_zone_are_said() -> None:
    rng, count = np.random.default_rng(4), 20_000
    at = pd.Timestamp("2024-09-02", tz="Europe/Berlin") + pd.to_timedelta(np.sort(rng.random(count)) * 60, unit="D")
    is_late = (at.day_of_week == 0) & (at.hour >= 6) & (at.hour < 8) & (rng.random(count) < 0.8)

    order = np.argsort(at.as_unit("ms").asi8 + is_late * 7_200_000, kind="stable")
    frame = pd.DataFrame({"key": "a", "at": at[order]})
    done = sk.group_by_key("key", timestamp="at").windowed_by(MINUTES["session"]).aggregate(count=sk.count()).run(frame)
    said = repr(done.drop_calendar())
    assert "100% of the drops lie on Mondays between 06:00 and 08:00, but only 1% of the records do." in said
    assert said.endswith("Times are in Europe/Berlin.")


def test_times_far_from_all_others_do_not_stretch_it() -> None:
    done = dated(3_000, "UTC", 10)
    frame = pd.DataFrame({"key": "a", "at": pd.to_datetime([*done.trace.batch.timestamp_ms, 5], unit="ms", utc=True)})
    plan = sk.group_by_key("key", timestamp="at").windowed_by(MINUTES["session"]).aggregate(count=sk.count())
    drops = plan.run(frame).drop_calendar()
    assert drops.unit == "hour"
    assert drops.words()[-1] == ("1 record lies far from all others and is not shown, with 1 of the dropped ones.")
    assert drops.table()["records"].sum() == 3_000


@pytest.mark.parametrize("times", [[2**41, 0], [2**55, 2**54]], ids=["69 years", "no dates"])
def test_times_that_no_calendar_has_room_for_are_said_in_words(times: list[int]) -> None:
    frame = pd.DataFrame({"key": list("aaa"), "time": [*times, times[1]]})
    drops = plan_of(EACH_KIND["session"], timestamp="time").run(frame).drop_calendar()
    assert drops.words() == [
        "2 of 3 records (66.67%) were dropped.",
        "There is no calendar of times that lie more than 50 years apart, or after the year 9987.",
    ]
    assert (drops.unit, len(drops.table()), drops.figure().data) == ("", 0, ())


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("days", [0.05, 1, 20, 300, 3_000, 9_000])
def test_pictures(days: float, theme: Any) -> None:
    drops = dated(2_000, "Europe/Berlin", days, each_kind(1_000)["session"]).drop_calendar()
    figure = drops.figure(theme=theme)
    kept, heat = figure.data[:2]
    hover = [text for row in heat.customdata for text in row if text]
    assert drops._cells is not None
    assert len(hover) == len(drops._cells.names)
    said = re.findall(r": ([\d,]+) of [\d,]+ record", " ".join(hover))
    assert sum(int(number.replace(",", "")) for number in said) == drops.dropped_count
    records, dropped = drops._counts
    assert np.isfinite(np.asarray(kept.z, float)).sum() == ((records > 0) & (dropped == 0)).sum()
    assert np.isfinite(np.asarray(heat.z, float)).sum() == (dropped > 0).sum()
    share = figure.layout.updatemenus[0].buttons[1].args[0]["z"][0]
    assert np.nanmax(share) == pytest.approx((dropped / np.maximum(records, 1)).max())
    assert drops.words()[0] in figure.layout.title.text


def test_a_notebook_shows_the_picture_or_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plotly.io.renderers.default", "plotly_mimetype")
    drops = dated(500, "UTC", 3).drop_calendar()
    shown = drops._repr_mimebundle_()
    assert shown["application/vnd.plotly.v1+json"]["data"][1]["name"] == "dropped"
    assert shown["text/plain"] == repr(drops)
    none = dated(5, "UTC", 3).drop_calendar()
    assert set(none._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert none.figure().data == ()


def test_a_run_without_a_trace_says_so() -> None:
    plan = plan_of(EACH_KIND["session"], timestamp="time")
    with pytest.raises(sk.errors.NotKept):
        plan.run(pd.DataFrame({"key": ["a"], "time": [1]}), trace=False).drop_calendar()
