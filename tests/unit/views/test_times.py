"""Times and keys as every view shows them, beside the truth by Python's own zones."""

import dataclasses
import datetime as dt
import json
import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import sessionkit as sk
from sessionkit.base.moments import clock_changes, show_time
from sessionkit.base.result_columns import TIMES, last_shown_ms
from sessionkit.errors import InvalidArgument, NumberOverflow, UnsupportedData
from sessionkit.report.page import Findings, page
from tests.kinds import each_kind, group_in_ms

UTC = dt.UTC
# When clocks change in 2024, in each of the zones: back, forward, and by half an hour only.
CHANGES = {
    "Europe/Berlin": dt.datetime(2024, 10, 27, 1, tzinfo=UTC),
    "America/New_York": dt.datetime(2024, 3, 10, 7, tzinfo=UTC),
    "Australia/Lord_Howe": dt.datetime(2024, 4, 6, 15, tzinfo=UTC),
}
KINDS = each_kind(60_000)
STEPS_MIN = (-95, -93, -80, -61, -60, -30, -29, -1, 0, 1, 29, 30, 59, 60, 61, 95, -40, 96, 140, 20, 141)


def ms_of(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(milliseconds=1)


def records(zone: str) -> pa.Table:
    """Records around the change of clocks, late ones among them, with a null key and a null time."""
    at = [CHANGES[zone] + dt.timedelta(minutes=step) for step in STEPS_MIN]
    users = ["ada" if i % 3 else "bob" for i in range(len(at))]
    users[4] = None  # type: ignore[call-overload]
    times = [*at[:-2], None, at[-1]]
    return pa.table(
        {"user": pa.array(users, pa.string()), "shop": pa.array([i % 2 for i in range(len(at))], pa.int32()),
         "at": pa.array(times, pa.timestamp("us", zone)), "amount": np.arange(len(at))},
    )  # fmt: skip


def plan_for(kind: str, emit: str = "on_window_update", group: Any = sk.group_by_key, **options: Any) -> sk.Plan:
    start = group("user", "shop", sep="/", timestamp="at", unit=None, on_bad_time="drop", **options)
    return start.windowed_by(KINDS[kind]).emit(emit).aggregate(count=sk.count(), last=sk.last("amount"))


def views(run: sk.Run, plan: sk.Plan, data: Any) -> dict[str, Any]:
    compared, audited = run.compare(plan.with_windows(grace="0s").run(data)), sk.audit(plan, data)
    found = {
        "table": run.table(), "changelog": run.changelog(), "changelog with old values": run.changelog(old_values=True),
        "dropped": run.dropped(), "losses": run.losses(), "emissions": run.emissions("ada/0").table(),
        "latency": run.latency().table(), "open windows": run.open_windows().table(), "comparison": compared.table(),
        "compared records": compared.records(), "audit": audited.table(), "differences": audited.differences(),
    }  # fmt: skip
    if run.plan.windows.holds == "sessions":
        start = run.trace.windows().filter(pa.compute.field("status") != "merged").to_pylist()[0]
        found["lineage"] = run.lineage(start["key"], start["window_start_ms"]).records()
    return found


def rows_of(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pd.DataFrame):
        return {
            name: [None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in frame[name]]
            for name in frame
        }
    return frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict(as_series=False)


OTHER_TIMES = {f"{name}_ms": name for name in ("start", "end", "before_bounds", "after_bounds")}


def as_shown(rows: dict[str, list[Any]], zone: str) -> dict[str, list[Any]]:
    """Results as they are inside in the form in which they are shown: by Python's zones, and by splitting the key."""

    def local(value: Any) -> Any:
        if isinstance(value, list | np.ndarray):
            return [local(each) for each in value]
        moment = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=int(value))
        return moment.astimezone(ZoneInfo(zone))

    found: dict[str, list[Any]] = {}
    for name, values in rows.items():
        if name == "key":
            parts = [(None, None) if value is None else value.split("/") for value in values]
            found["user"] = [user for user, _ in parts]
            found["shop"] = [None if shop is None else int(shop) for _, shop in parts]
        elif name in TIMES | OTHER_TIMES:
            found[(TIMES | OTHER_TIMES)[name]] = [None if value is None else local(value) for value in values]
        else:
            found[name] = values
    return found


def given(table: pa.Table, kind: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The records as a kind of frame, and what the plan has to say beside."""
    if kind == "pandas":
        return table.to_pandas(), {}
    if kind == "polars":
        return pl.from_arrow(table), {}
    if kind == "csv":
        zone = table.schema.field("at").type.tz
        utc = table.set_column(2, "at", table["at"].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms")))
        pa_csv.write_csv(utc, folder / "records.csv")
        text = (folder / "records.csv").read_text().replace('"', "")
        lines = text.splitlines()
        stamped = [re.sub(r"(\d\d:\d\d:\d\d\.\d{3})", r"\1Z", line) for line in lines]
        (folder / "records.csv").write_text("\n".join(stamped) + "\n")
        return folder / "records.csv", {"timezone": zone, "types": {"shop": "int32"}}
    return table, {}


@pytest.mark.thorough
@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("frame", ["pandas", "polars", "arrow", "csv"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_view_shows_times_in_the_zone_of_the_records(zone: str, frame: str, kind: str, tmp_path: Path) -> None:
    data, options = given(records(zone), frame, tmp_path)
    for emit in ("on_window_update", "on_window_close"):
        plan, in_ms = (plan_for(kind, emit, group, **options) for group in (sk.group_by_key, group_in_ms))
        run, plain = plan.run(data), in_ms.run(data)
        assert run.timezone == zone
        in_integers = views(plain, in_ms, data)
        for name, view in views(run, plan, data).items():
            expected = as_shown(rows_of(in_integers[name]), zone)
            shown = rows_of(view)
            assert list(shown) == list(expected), name
            for column, values in expected.items():
                assert [_told(value) for value in shown[column]] == [_told(value) for value in values], (name, column)


def _told(value: Any) -> Any:
    """A moment as the instant and what its clock shows: Python compares neither where clocks show an hour twice."""
    if isinstance(value, list | np.ndarray | pl.Series):
        return [_told(each) for each in value]
    return (value.timestamp(), value.isoformat()) if isinstance(value, dt.datetime) else value


# ---- a record of 00:10 on July 2 in Berlin is nowhere 22:10 on July 1

NIGHT = pd.DataFrame({
    "user": ["ada", "ada", "bob", "ada", "ada"],
    "at": pd.to_datetime([
        "2024-07-02 00:10", "2024-07-02 00:40", "2024-07-02 01:30", "2024-07-02 00:25", "2024-07-02 01:29",
    ]),
})  # fmt: skip
UTC_DAY = re.compile(r"2024-07-01|Jul 1\b|22:[14]0")


@pytest.fixture(params=["zone of the plan", "zone of the column"])
def night(request: pytest.FixtureRequest) -> tuple[sk.Plan, Any]:
    options = {"timezone": "Europe/Berlin"} if request.param == "zone of the plan" else {}
    data = NIGHT if options else NIGHT.assign(at=NIGHT["at"].dt.tz_localize("Europe/Berlin"))
    windows = sk.SessionWindows(inactivity_gap="20m", grace="30m")
    return sk.group_by_key("user", timestamp="at", **options).windowed_by(windows).count(), data


def test_every_sentence_tells_the_zone_of_the_records(night: tuple[sk.Plan, Any]) -> None:
    plan, data = night
    run = plan.run(data)
    said = [run.explain(offset=offset) for offset in range(len(data))]
    said += [run.explain(key="ada", window_start="2024-07-02 00:10"), repr(run.lineage("ada", "2024-07-02 00:10"))]
    said += [repr(run.emissions("ada")), repr(run.open_windows()), run._repr_html_()]
    for text in said:
        assert UTC_DAY.search(text) is None, text
        assert text.count("Europe/Berlin") == 1, text
    assert "2024-07-02 00:10:00" in said[0]


def test_a_moment_is_found_under_each_of_its_spellings(night: tuple[sk.Plan, Any]) -> None:
    plan, data = night
    run = plan.run(data)
    moment = dt.datetime(2024, 7, 2, 0, 10, tzinfo=ZoneInfo("Europe/Berlin"))
    spellings = [
        *(moment, moment.astimezone(UTC), pd.Timestamp(moment), ms_of(moment), "2024-07-02 00:10", "2024-07-01T22:10Z"),
        *("2024-07-02T00:10+02:00", np.datetime64("2024-07-02T00:10"), pd.Timestamp("2024-07-02 00:10")),
        run.table()["window_start"][0],
    ]
    assert len({run.explain(key="ada", window_start=each) for each in spellings}) == 1
    assert len({repr(run.lineage("ada", each)) for each in spellings}) == 1
    drawn = {run.lanes(start=each, end="2024-07-02 02:00").to_json() for each in spellings}
    assert len(drawn) == 1


def on_the_axis(place: Any) -> dt.datetime:
    """What a browser writes at a place of a date axis."""
    if isinstance(place, str):
        return dt.datetime.fromisoformat(place)
    return dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=float(place))


def test_every_picture_has_the_clock_of_the_zone(night: tuple[sk.Plan, Any]) -> None:
    plan, data = night
    run = plan.run(data)
    pictures = {
        "plane": run.plane("ada"), "lanes": run.lanes(), "emissions": run.emissions("ada").figure(over="stream_time"),
        "open windows": run.open_windows().figure(),
        "comparison": run.compare(plan.with_windows(inactivity_gap="40m").run(data)).figure(),
        "lineage": run.lineage("ada", "2024-07-02 00:10").figure(), "audit": sk.audit(plan, data).figure(),
    }  # fmt: skip
    for name, figure in pictures.items():
        drawn = json.loads(figure.to_json())
        axis = drawn["layout"]["xaxis"]
        assert axis["type"] == "date", name
        assert "Europe/Berlin" in axis["title"]["text"], name
        words = re.sub(r'"(x|base|range)":(\[[^\]]*\]|\{[^}]*\})', "", json.dumps(drawn))
        assert UTC_DAY.search(words) is None, name
    for name in ("plane", "lanes"):
        low, high = (on_the_axis(place) for place in pictures[name].layout.xaxis.range)
        assert low <= dt.datetime(2024, 7, 2, 0, 10) and dt.datetime(2024, 7, 2, 1, 30) <= high
        assert high - low < dt.timedelta(hours=3)
    times = [on_the_axis(place) for place in pictures["open windows"].data[0].x]
    assert times == [pd.Timestamp(at) for at in NIGHT["at"].cummax()]
    (bar,) = (trace for trace in pictures["lineage"].data if trace.type == "bar" and len(trace.base or ()) == 1)
    assert on_the_axis(bar.base[0]).date() == dt.date(2024, 7, 2)


def test_a_board_tells_the_zone_of_the_records(night: tuple[sk.Plan, Any]) -> None:
    plan, data = night
    for board in (sk.tune(plan, data), sk.play(plan.run(data), "ada")):
        texts = [str(each.value) for each in _widgets(board) if isinstance(getattr(each, "value", None), str)]
        assert all(UTC_DAY.search(text) is None for text in texts)


def test_a_report_tells_the_zone_of_the_records(night: tuple[sk.Plan, Any]) -> None:
    plan, data = night
    plan = dataclasses.replace(plan, source=dataclasses.replace(plan.source, timezone="Europe/Berlin"))
    run = plan.with_windows(grace="0s").run(data)
    text = page(Findings(title="a night", plan=plan, counts=run.metrics(), local=run))
    told = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert "2024-07-02 00:25:00" in told, "the record that came too late"
    assert "Times are in Europe/Berlin." in told
    assert UTC_DAY.search(told) is None


def _widgets(root: Any) -> list[Any]:
    return [root, *(below for child in getattr(root, "children", ()) for below in _widgets(child))]


# ---- keys

KEYED = pa.table({
    "status": pa.array(["new", "old", None], pa.string()),
    "team": pa.array([7, 8, 9], pa.int16()),
    "at": pa.array([0, 1, 2], pa.timestamp("ms", "UTC")),
})  # fmt: skip
START = sk.group_by_key("status", "team", sep="|", timestamp="at")
WINDOWS = sk.TimeWindows(size="1s", grace="0s")


def test_keys_have_their_own_names_and_types() -> None:
    table = START.windowed_by(WINDOWS).count().run(KEYED).table()
    assert table.column_names[:2] == ["key_status", "team"], "a column of the results is called status"
    assert table.schema.field("team").type == pa.int16()
    assert table.schema.field("key_status").type == pa.string()
    dropped = START.windowed_by(WINDOWS).count().run(KEYED).dropped()
    assert dropped.select(["key_status", "team"]).to_pylist() == [{"key_status": None, "team": None}]


def test_one_key_has_the_type_of_its_column() -> None:
    for kind in (pa.int32(), pa.uint8(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        ids = pa.array([1, 2] if pa.types.is_integer(kind) else ["a", "b"]).cast(kind)
        data = pa.table({"id": ids, "at": KEYED["at"][:2].combine_chunks()})
        table = sk.group_by_key("id", timestamp="at").windowed_by(WINDOWS).count().run(data).table()
        wanted = pa.large_binary() if pa.types.is_binary(kind) else kind
        assert table.schema.field("id").type == wanted
        assert table["id"].to_pylist() == ids.to_pylist()
    frame = pd.DataFrame({"id": np.array([1, 2], np.int32), "at": pd.to_datetime([0, 1], unit="ms", utc=True)})
    run = sk.group_by_key("id", timestamp="at").windowed_by(WINDOWS).count().run(frame)
    assert run.table()["id"].dtype == np.int32
    assert run.explain(key=1, window_start=0) == run.explain(key=(1,), window_start="1970-01-01")


def test_a_key_of_a_store_that_does_not_fit_names_the_type_that_does() -> None:
    plan = sk.group_by_key("id", timestamp="at").windowed_by(WINDOWS).emit("on_window_close").count()

    def finals(kind: pa.DataType) -> list[int]:
        store = sk.open_store("memory", "ids", of="windows")
        plan.run(pa.table({"id": [700], "at": KEYED["at"][:1]}), store=store)
        later = pa.table({"id": pa.array([7], kind), "at": pa.array([9_000], pa.timestamp("ms", "UTC"))})
        return plan.run(later, store=store).changelog()["id"].to_pylist()

    with pytest.raises(UnsupportedData, match="records in which this column is int64, as in the store"):
        finals(pa.int8())
    assert finals(pa.int64()) == [700]


def test_keys_of_more_text_than_a_plain_column_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.table({"id": ["ada", "bob"], "at": KEYED["at"][:2].combine_chunks()})
    plan = sk.group_by_key("id", timestamp="at").windowed_by(WINDOWS).count()
    monkeypatch.setattr("sessionkit.base.result_columns._MOST_TEXT", 4)
    run = plan.run(data)
    for view in (run.table(), run.changelog(), run.losses()):
        assert view.schema.field("id").type == pa.large_string()
        assert sorted(set(view["id"].to_pylist())) == ["ada", "bob"]
    assert run.emissions("ada").table()["id"].to_pylist()[0] == "ada"


def test_a_key_is_named_by_its_values_or_joined() -> None:
    data = records("Europe/Berlin")
    run = plan_for("session").run(data)
    assert repr(run.emissions(("ada", 1))) == repr(run.emissions("ada/1"))
    assert run.plane(("ada", 1)).to_json() == run.plane("ada/1").to_json()
    assert run.lanes(keys=[("ada", 1)]).to_json() == run.lanes(keys=["ada/1"]).to_json()
    with pytest.raises(
        InvalidArgument, match=r"must have one value for each key column.*a value for each of user, shop"
    ):
        run.emissions(("ada",))


def test_a_separator_may_be_in_the_last_value() -> None:
    data = pa.table({"a": ["x"], "b": ["y|z"], "at": KEYED["at"][:1].combine_chunks()})
    table = sk.group_by_key("a", "b", sep="|", timestamp="at").windowed_by(WINDOWS).count().run(data).table()
    assert (table["a"].to_pylist(), table["b"].to_pylist()) == (["x"], ["y|z"])


def test_names_that_are_taken() -> None:
    for name in ("window_start", "window_end", "timestamp", "stream_time", "closes_at", "key_status", "team"):
        with pytest.raises(InvalidArgument, match="this name is taken by a column of the results"):
            START.windowed_by(WINDOWS).aggregate(**{name: sk.count()})
    with pytest.raises(InvalidArgument, match="two key columns would have one name in the results"):
        sk.group_by_key("status", "key_status", sep="|", timestamp="at")
    with pytest.raises(InvalidArgument, match="unexpected keyword argument 'times'"):
        sk.group_by_key("user", timestamp="at", times="ms")


# ---- the ends of time


def test_what_lies_after_the_year_9999_names_the_way_out() -> None:
    far = ms_of(dt.datetime(9999, 12, 31, 23, 0, tzinfo=UTC))
    for zone, last in (("UTC", far), ("Europe/Berlin", far - 3_600_000), ("America/New_York", far)):
        data = pa.table({"user": ["a"], "at": pa.array([last], pa.timestamp("ms", zone))})
        plan = sk.group_by_key("user", timestamp="at").windowed_by(WINDOWS).count()
        assert plan.run(data).table()["window_start"].to_pylist()[0].year == 9999
        beyond = pa.table({"user": ["a"], "at": pa.array([last + 3_600_000], pa.timestamp("ms", zone))})
        with pytest.raises(
            NumberOverflow, match=r"window_(start|end) has a time after the year 9999.*run\.trace\.windows\(\)"
        ):
            plan.run(beyond).table()
        assert plan.run(beyond).trace.windows()["window_start_ms"].to_pylist() == [last + 3_600_000]
    assert last_shown_ms("UTC") - last_shown_ms("Europe/Berlin") == 3_600_000


NIGHTS = {  # in which clocks are changed; how the pictures say so
    "Europe/Berlin": ("2024-10-27T01:00", "clocks back 1 h", ["02:00+02:00<br>2024-10-27", "02:00+01:00", "03:00"]),
    "America/New_York": ("2024-03-10T07:00", "clocks forward 1 h", ["01:00", "03:00", "04:00"]),
    "America/St_Johns": ("2010-11-07T02:31", "clocks back 1 h", ["00:00-02:30<br>2010-11-07", "00:00-03:30", "01:00"]),
    "Australia/Lord_Howe": ("2024-04-06T15:00", "clocks back 30 min", ["01:00", "02:00", "03:00"]),
    "Antarctica/Troll": ("2024-10-27T01:00", "clocks back 2 h", ["02:00+02:00", "01:00+00:00", "02:00+00:00"]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("zone", NIGHTS)
def test_pictures_are_even_in_time_where_clocks_are_changed(zone: str) -> None:
    at, said, ticks = NIGHTS[zone]
    change = ms_of(dt.datetime.fromisoformat(at).replace(tzinfo=UTC))
    minutes = np.array([-70, -50, -35, -20, -1, 0, 10, 35, 70, -40, 90, 160])
    times = change + minutes * 60_000
    data = pa.table({"user": ["ada"] * len(times), "at": pa.array(times, pa.timestamp("ms", zone))})
    run = (
        sk.group_by_key("user", timestamp="at")
        .windowed_by(sk.SessionWindows(inactivity_gap="36m", grace="20m"))
        .count()
        .run(data)
    )
    pictures = {
        "plane": run.plane("ada", playback=True),
        "lanes": run.lanes(start=0),
        "emissions": run.emissions("ada").figure(over="stream_time"),
        "open windows": run.open_windows().figure(),
        "lineage": run.lineage("ada", int(times[0])).figure(),
        "comparison": run.compare(run.plan.with_windows(inactivity_gap="72m").run(data)).figure(),
    }
    shown = dt.datetime.fromtimestamp(change // 1000 - 1, ZoneInfo(zone))
    before = ms_of(shown.replace(tzinfo=UTC)) + 1000 - change  # the offset that the pictures begin with
    for name, figure in pictures.items():
        (line,) = (trace for trace in figure.data if trace.name == "change of clocks")
        assert (line.text[0].strip(), line.x[0] - before) == (said, change), name
        assert figure.layout.xaxis2.matches == "x", name
    opened = pictures["open windows"].data[0].x
    assert [place - before for place in opened] == np.maximum.accumulate(times).tolist()
    marks = [x - before for trace in pictures["plane"].data if trace.mode == "markers" for x in trace.x]
    assert set(times.tolist()) <= set(marks)
    axis = pictures["plane"].layout.xaxis
    shown_at = [show_time(place - before, zone)[11:16] for place in axis.tickvals]
    assert shown_at == [text[:5] for text in axis.ticktext]
    assert set(ticks) <= {*axis.ticktext, *(text.split("<br>")[0] for text in axis.ticktext)}


@pytest.mark.parametrize("zone", [*NIGHTS, "UTC", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"])
def test_the_table_of_changes_is_what_clocks_show(zone: str) -> None:
    table = clock_changes(zone, 1_800_000_000_000)
    rng = np.random.default_rng(1)
    times = np.concatenate(
        [rng.integers(0, 1_800_000_000_000, 500), *(table.changes_ms + d for d in (-1, 0, 1_800_000))]
    )
    local = table.local(times)
    shown = [dt.datetime.fromtimestamp(ms / 1000, ZoneInfo(zone)) for ms in times.tolist()]
    assert local.tolist() == [ms_of(at.replace(tzinfo=UTC)) for at in shown]
    first, last = table.first_at(local), table.last_at(local)
    assert (table.local(first) == local).all() and (table.local(last) == local).all()
    assert (first <= times).all() and (times <= last).all() and ((first == times) | (last == times)).all()
    twice = [at.replace(fold=0).utcoffset() > at.replace(fold=1).utcoffset() for at in shown]
    assert (first < last).tolist() == twice
    skipped = [
        ms + before
        for ms, before, after in zip(table.changes_ms, table.offsets_ms, table.offsets_ms[1:], strict=False)
        if after > before
    ]
    assert table.first_at(skipped).tolist() == table.last_at(skipped).tolist()
    assert set(table.first_at(skipped).tolist()) <= set(table.changes_ms.tolist())


def test_a_picture_of_two_changes_names_both_and_ticks_at_local_midnights() -> None:
    rng = np.random.default_rng(4)
    times = ms_of(dt.datetime(2024, 1, 10, tzinfo=UTC)) + np.sort(rng.integers(0, 400 * 86_400_000, 300))
    data = pa.table({"user": ["ada"] * len(times), "at": pa.array(times, pa.timestamp("ms", "Europe/Berlin"))})
    figure = sk.group_by_key("user", timestamp="at").windowed_by(WINDOWS).count().run(data).lanes(start=0)
    (line,) = (trace for trace in figure.data if trace.name == "change of clocks")
    assert [text.strip() for text in line.text if text.strip()] == ["clocks forward 1 h", "clocks back 1 h"]
    axis = figure.layout.xaxis
    assert axis.ticktext[:4] == ("2024-01", "2024-04", "2024-07", "2024-10")
    assert [show_time(place - 3_600_000, "Europe/Berlin")[8:] for place in axis.tickvals] == ["01 00:00:00"] * len(
        axis.tickvals
    )


def test_an_hour_that_clocks_show_twice_is_told_with_its_offset() -> None:
    first = ms_of(dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC))
    assert show_time(first, "Europe/Berlin") == "2024-10-27 02:30:00+02:00"
    assert show_time(first + 3_600_000, "Europe/Berlin") == "2024-10-27 02:30:00+01:00"
    assert show_time(first + 7_200_000, "Europe/Berlin") == "2024-10-27 03:30:00"


@pytest.mark.parametrize("zone", ["Europe/Berln", "Europe", "../etc/passwd", "\0", "+25:00", "GMT+2h"])
def test_a_zone_that_is_not_there(zone: str) -> None:
    data = pa.table({"user": ["ada"], "at": pa.array([0], pa.timestamp("ms", "UTC"))})
    plan = sk.group_by_key("user", timestamp="at", timezone=zone).windowed_by(WINDOWS).count()
    with pytest.raises(InvalidArgument, match="timezone must be a zone of the IANA database; got"):
        plan.run(data)


@pytest.mark.parametrize(
    ("zone", "known"), [("+05:30", "+05:30"), ("GMT-3", "-03:00"), ("UTC+1", "+01:00"), ("Z", "UTC")]
)
def test_a_zone_that_is_an_offset(zone: str, known: str) -> None:
    data = pa.table({"user": ["ada"], "at": pa.array([1_700_000_000_000], pa.timestamp("ms", "UTC"))})
    run = sk.group_by_key("user", timestamp="at", timezone=zone).windowed_by(WINDOWS).count().run(data)
    assert run.timezone == known
    (start,) = run.table()["window_start"].to_pylist()
    assert start.timestamp() == 1_700_000_000
    assert run.explain(key="ada", window_start=start) == run.explain(key="ada", window_start=1_700_000_000_000)


def test_the_day_with_the_most_to_see_is_a_day_of_the_zone() -> None:
    """Many sessions over weeks, and one day full of records that came too late; in UTC it would be parts of two."""
    rng = np.random.default_rng(2)
    day = ms_of(dt.datetime(2024, 7, 10, tzinfo=ZoneInfo("America/New_York")))
    calm = day + np.sort(rng.integers(-20 * 86_400_000, 20 * 86_400_000, 3_000))
    busy = day + np.repeat(np.arange(24) * 3_600_000 + 1_800_000, 2)
    at = np.sort(np.concatenate([calm, busy]))
    late = np.flatnonzero((at >= day) & (at < day + 86_400_000))[10::7]
    at[late] -= 3 * 3_600_000
    users = np.array([f"user {number}" for number in range(5)])[rng.integers(0, 5, len(at))]
    data = pa.table({"user": users, "at": pa.array(at, pa.timestamp("ms", "America/New_York"))})
    run = (
        sk.group_by_key("user", timestamp="at")
        .windowed_by(sk.SessionWindows(inactivity_gap="5m", grace="0s"))
        .count()
        .run(data)
    )
    low, high = (on_the_axis(place) for place in run.lanes().layout.xaxis.range)
    assert high - low < dt.timedelta(hours=30)
    assert (low + (high - low) / 2).date() == dt.date(2024, 7, 10)
    assert abs(low - dt.datetime(2024, 7, 10)) < dt.timedelta(hours=2)


@pytest.mark.parametrize(
    ("zone", "size", "begins", "offset"),
    [
        ("Europe/Berlin", "1d", "02:00", "22h"), ("Asia/Kolkata", "7d", "05:30", "3d18h30m"),
        ("America/New_York", "7d", "20:00", "4d4h"),
    ],
)  # fmt: skip
def test_days_that_do_not_begin_at_midnight_are_told(zone: str, size: str, begins: str, offset: str) -> None:
    data = pd.DataFrame({"k": ["a", "a"], "t": ["2026-07-01 00:30", "2026-07-01 12:00"]})
    start = sk.group_by_key("k", timestamp="t", timezone=zone)
    days = start.windowed_by(sk.TimeWindows(size=size, grace="0s")).count()
    on_a_day = " on a Thursday" if size == "7d" else ""
    said = (
        f"Windows of {size[0]} d begin{on_a_day} at 00:00 UTC, as in Kafka Streams: that is {begins} in {zone} at the "
        'end of the data. Times without a zone of their own have days of their own clock with timezone="UTC".'
    )
    unit, monday = ("week", "Monday, ") if size == "7d" else ("day", "")
    said += f' offset="{offset}" moves them to {monday}00:00 in {zone} at that time; '
    said += f'sk.CalendarWindows("{unit}", timezone="{zone}", …) has calendar {unit}s.'
    assert days.run(data).remarks() == [said]
    moved = start.windowed_by(sk.TimeWindows(size=size, offset=offset, grace="0s")).count().run(data)
    assert moved.remarks() == [] and {at.hour for at in moved.table()["window_start"]} == {0}
    assert size == "1d" or {at.day_name() for at in moved.table()["window_start"]} == {"Monday"}
    hopping = start.windowed_by(sk.TimeWindows(size="7d", advance="1d", grace="0s")).count().run(data).remarks()
    assert hopping[0].startswith("Windows of 7 d begin every 1 d at 00:00 UTC") and "docs/" not in hopping[0]
    hours = start.windowed_by(sk.TimeWindows(size="2h", grace="0s")).count().run(data).remarks()
    past = (
        "Windows of 2 h begin at whole hours of UTC, as in Kafka Streams: that is 30 min past the hour in Asia/Kolkata."
    )
    assert hours == ([past] if zone == "Asia/Kolkata" else [])
    for quiet in (sk.TimeWindows(size="1d", advance="30m", grace=0), sk.SessionWindows(inactivity_gap="1d", grace=0)):
        assert start.windowed_by(quiet).count().run(data).remarks() == []
    quarters = start.windowed_by(sk.TimeWindows(size="1d", advance="6h", grace="0s")).count().run(data).remarks()
    assert quarters[0].startswith(
        f"Windows of 1 d begin every 6 h at 00:00 UTC, as in Kafka Streams: that is {begins} in"
    )
    in_utc = sk.group_by_key("k", timestamp="t", timezone="UTC").windowed_by(days.windows).count()
    week = [
        'Windows of 7 d begin on a Thursday at 00:00, as in Kafka Streams. offset="4d" moves them to Monday, 00:00 in '
        'UTC; sk.CalendarWindows("week", timezone="UTC", …) has calendar weeks.'
    ]
    assert in_utc.run(data).remarks() == (week if size == "7d" else [])
