"""The sessions of a report in numbers: those of the table of the run, for any shape of data."""

import base64
import html
import platform
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.durations import lacked, show_duration
from sessionkit.report.page import Findings, page
from sessionkit.report.parts import Attached
from sessionkit.report.sessions import LENGTHS_MS, SIZES, Sessions, at_most, bins
from sessionkit.report.standing_out import standing_out
from tests.kinds import flights_by_route

MINUTE = 60_000
DAY = 86_400_000


def run_of(records: pd.DataFrame, grace: str = "5m", timezone: str = "UTC", gap: str = "30m") -> sk.Run:
    """A run over records of "user" and "at" in milliseconds."""
    plan = sk.group_by_key("user", timestamp="at", unit="ms", timezone=timezone)
    run: sk.Run = plan.windowed_by(sk.SessionWindows(inactivity_gap=gap, grace=grace)).count().run(records)
    return run


def shapes() -> dict[str, pd.DataFrame]:
    """Records of very different shapes."""
    random = np.random.default_rng(7)
    start = 1_720_000_000_000
    years = start - random.integers(0, 15 * 365 * DAY, 2_000)
    near = start + random.integers(0, 3 * DAY, 2_000)
    keys = np.array(["<b>ada</b>", "bob & co", "日本語"])
    return {
        "sparse years": pd.DataFrame({"user": random.integers(0, 5, 2_000), "at": np.sort(years)}),
        "one key": pd.DataFrame({"user": "ada", "at": np.sort(near)}),
        "one row a key": pd.DataFrame({"user": np.arange(2_000), "at": np.sort(near)}),
        "late rows": pd.DataFrame({"user": keys[random.integers(0, 3, 2_000)], "at": near}),
        "one row": pd.DataFrame({"user": ["ada"], "at": [start]}),
        "toy times": pd.DataFrame({"user": ["ada", "bob"], "at": [0, 5]}),
    }


@pytest.fixture(scope="module", params=shapes())
def run(request: pytest.FixtureRequest) -> sk.Run:
    return run_of(shapes()[request.param], timezone="Asia/Kathmandu")


def test_the_sessions_are_those_of_the_table(run: sk.Run) -> None:
    sessions, table = Sessions(run), run.table()
    assert sessions.records.tolist() == table["count"].tolist()
    lengths = (table["window_end"] - table["window_start"]).dt.total_seconds() * 1_000
    assert sessions.length_ms.tolist() == lengths.round().astype(int).tolist()
    assert sessions.table().column("length_ms").to_pylist() == sessions.length_ms.tolist()


@pytest.mark.parametrize("what", ["key", "day", "month", "year"])
def test_groups_are_those_of_pandas(run: sk.Run, what: str) -> None:
    table = run.table().assign(length=Sessions(run).length_ms)
    lost = run.trace.records().to_pandas()
    lost = lost[lost["decision"] == "dropped"]
    found: pd.DataFrame
    if what == "key":
        found = Sessions(run).key_table().to_pandas().set_index("user")
        by, lost_by = table["user"], lost["key"]
    else:
        length = {"day": 10, "month": 7, "year": 4}[what]
        names, group = Sessions(run)._by_time(what[0].upper())
        found = pd.DataFrame(group._asdict(), index=names)
        by = table["window_start"].astype(str).str[:length]
        times = pd.to_datetime(lost["timestamp_ms"], unit="ms", utc=True).dt.tz_convert("Asia/Kathmandu")
        lost_by = times.astype(str).str[:length]
    expected = table.groupby(by)["length"].agg(["size", "max"])
    assert found["sessions"][found["sessions"] > 0].to_dict() == expected["size"].to_dict()
    assert found["longest_ms"][found["sessions"] > 0].to_dict() == expected["max"].to_dict()
    assert found["records"][found["sessions"] > 0].to_dict() == table.groupby(by)["count"].sum().to_dict()
    assert found["dropped"][found["dropped"] > 0].to_dict() == lost_by.value_counts().to_dict()
    median = table.groupby(by)["length"].agg(lambda lengths: at_most(lengths.to_numpy(), 0.5))
    assert found["median_ms"][found["sessions"] > 0].to_dict() == median.to_dict()


def test_a_long_time_is_shown_by_months() -> None:
    assert Sessions(run_of(shapes()["one key"])).by_period[0] == "day"
    word, names, _ = Sessions(run_of(shapes()["sparse years"])).by_period
    assert word == "month" and 15 * 12 <= len(names) <= 15 * 12 + 1
    ages = np.arange(800, dtype=np.int64) * 365 * DAY
    assert Sessions(run_of(pd.DataFrame({"user": "ada", "at": ages}))).by_period[0] == "year"


@pytest.mark.parametrize("edges", [LENGTHS_MS, SIZES])
def test_every_session_is_in_one_bin(run: sk.Run, edges: tuple[int, ...]) -> None:
    values = Sessions(run).length_ms if edges is LENGTHS_MS else Sessions(run).records
    found = bins(values, edges)
    assert sum(each.sessions for each in found) == len(values)
    for each in found:
        inside = (values > each.above) & (values <= (each.up_to if each.up_to is not None else values.max()))
        assert int(inside.sum()) == each.sessions
    assert found[0].sessions and found[-1].sessions


def test_percentiles_are_lengths_that_occur() -> None:
    values = np.array([5, 1, 1, 9])
    assert (at_most(values, 0.5), at_most(values, 0.9), at_most(values, 0.25), at_most(values[:1], 0.9)) == (1, 9, 1, 5)


# ---- windows that are no sessions

WINDOWS = {
    "tumbling": sk.TimeWindows(size="30m", grace="5m"),
    "hopping": sk.TimeWindows(size="1h", advance="20m", grace="0s"),
    "sliding": sk.SlidingWindows(time_difference="20m", grace="5m"),
}


@pytest.fixture(params=WINDOWS)
def windowed(request: pytest.FixtureRequest) -> sk.Run:
    """A run of other windows, with late records and some without a key."""
    records = shapes()["late rows"]
    records.loc[::50, "user"] = None
    plan = sk.group_by_key("user", timestamp="at", unit="ms", timezone="Asia/Kathmandu")
    run: sk.Run = plan.windowed_by(WINDOWS[request.param]).count().run(records)
    return run


def test_records_of_windows_count_once_by_key_and_day(windowed: sk.Run) -> None:
    """A record that is in three windows is one record."""
    windows, table, batch = Sessions(windowed), windowed.table(), windowed.trace.batch
    assert windows.records.tolist() == table["count"].tolist()
    kept = pd.DataFrame({"accepted": windowed.trace.accepted, "key": batch.key, "at": batch.timestamp_ms})
    by_key = windows.key_table().to_pandas()
    assert by_key["windows"].sum() == len(table) and list(by_key.columns) == ["user", "windows", "records", "dropped"]
    assert by_key["records"].sum() == kept["accepted"].sum()
    assert by_key["dropped"].sum() == ((~kept["accepted"]) & (kept["key"] >= 0)).sum()
    by_day = windows.day_table().to_pandas().set_index("day")
    days = pd.to_datetime(kept["at"], unit="ms", utc=True).dt.tz_convert("Asia/Kathmandu").astype(str).str[:10]
    assert by_day["records"][by_day["records"] > 0].to_dict() == days[kept["accepted"]].value_counts().to_dict()
    starts = table["window_start"].astype(str).str[:10].value_counts()
    assert by_day["windows"][by_day["windows"] > 0].to_dict() == starts.to_dict()


def test_the_page_shows_drops_of_windows(windowed: sk.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionkit.report.page.SHOWN_DROPS", 1_000_000)
    monkeypatch.setattr("sessionkit.report.page.WEIGHED_DROPS", 1_000_000)
    text, dropped = told(windowed), windowed.dropped()
    rows = text.partition("<h3>One by one</h3>")[2].partition("</table>")[0].split("<tr>")[2:]
    offsets = [int(row.partition("<td class='n'>")[2].partition("<")[0].replace(",", "")) for row in rows]
    assert offsets == dropped["offset"].tolist()
    missing = [lacked(int(ms)) if ms == ms else "null key" for ms in dropped["missing_grace_ms"].tolist()]
    assert [row.split("<td>")[-2].partition("<")[0] for row in rows] == missing
    enough = show_duration(int(dropped["enough_grace_ms"].max()))
    assert f"All of them are kept with a grace of {enough}." in text


# ---- the page

SECTIONS = ["The sessions", "Sessions that stand out", "Per key"]


def told(run: sk.Run, **more: Any) -> str:
    """The page, without its scripts."""
    findings = Findings(title="clicks", plan=run.plan, counts=run.metrics(), local=run, **more)
    return page(findings).partition("<main>")[2].partition("<script>")[0]


def test_the_page_shows_the_sessions(run: sk.Run) -> None:
    text, sessions = told(run), Sessions(run)
    assert [name for name in SECTIONS if f"<h2>{name}</h2>" not in text] == []
    assert f"<h2>Per {sessions.by_period[0]}</h2>" in text and "in Asia/Kathmandu" in text
    assert f"<b>{int(sessions.records.max()):,}</b><span>largest session</span>" in text
    assert "<b>ada</b>" not in text  # as markup


def test_a_run_without_sessions_has_no_empty_sections() -> None:
    nothing = run_of(pd.DataFrame({"user": np.array([], str), "at": np.array([], np.int64)}))
    keyless = run_of(pd.DataFrame({"user": pd.array([None], "string"), "at": [0]}))
    for run in (nothing, keyless):
        text = told(run)
        assert [name for name in SECTIONS if name in text] == []
        assert "figure" not in text and "<tbody></tbody>" not in text


NAMES = ("sessions", "keys", "days", "dropped", "changelog")


def test_the_tables_of_the_page_are_in_it() -> None:
    """They were links to files beside it, which a page that is mailed alone has not."""
    run = run_of(shapes()["late rows"])
    content = {name: f"{name}\n1\n".encode() for name in NAMES}
    held = {name: Attached(f"{name}.csv", len(each), each) for name, each in content.items()}
    text = told(run, files=held)
    links = re.findall(r"<a download='(\w+)\.csv' href='data:text/csv;base64,([^']*)'>", text)
    assert {name: base64.b64decode(data) for name, data in links} == content
    assert text.count("<a ") == len(NAMES) and "<a " not in told(run)


def test_files_that_are_too_large_are_named_with_their_size_and_why() -> None:
    text = told(run_of(shapes()["late rows"]), files={"keys": Attached("<keys>.csv", 12_300_000, None)})
    said = "&lt;keys&gt;.csv (12.3 MB) is not in this page, which holds files of 3 MB at most in all: it is"
    assert said in text and "<keys>" not in text


def test_of_many_late_records_the_first_are_shown_with_the_grace_that_each_lacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_of(shapes()["late rows"])
    rows = told(run).partition("<h3>One by one</h3>")[2].partition("</table>")[0]
    monkeypatch.setattr("sessionkit.report.page.WEIGHED_DROPS", 100)
    text = told(run)
    assert text.partition("<h3>One by one</h3>")[2].partition("</table>")[0] == rows and "<tr>" in rows
    assert f"The first 200 of {run.metrics()['records-dropped']:,} dropped records" in text


def test_each_session_that_stands_out_is_there_once_with_all_its_reasons() -> None:
    """The ten longest sessions were one session, shown again as the one with most records."""
    at = [*range(0, 60, 3), *range(200, 300, 25), *range(500, 520, 10), 700, 700, 900, *range(1_000, 1_700, 100)]
    records = pd.DataFrame({"user": "ada", "at": np.array(at) * MINUTE})
    records["paid"] = np.where(records["at"] == 900 * MINUTE, 50, 1)
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(
        sk.SessionWindows(inactivity_gap="30m", grace="5m")
    )  # fmt: skip
    sessions = Sessions(plan.aggregate(count=sk.count(), paid=sk.sum("paid")).run(records))
    found = {int(sessions.start_ms[place] // MINUTE): reasons for place, reasons in standing_out(sessions).items()}
    assert found == {
        200: ["longest", "second most records", "third largest paid"],
        0: ["second longest", "most records", "second largest paid"],
        500: ["third longest", "third most records"],
        900: ["largest paid"],
    }
    assert "<th scope='col' class='n'>paid</th>" in told(sessions.run)


def test_windows_that_overlap_do_not_stand_out_beside_each_other() -> None:
    at = np.concatenate([np.arange(0, 3_000, 50), np.arange(100_000, 102_000, 50), [200_000]])
    plan = sk.group_by_key("user", timestamp="at", unit="ms")
    run = plan.windowed_by(sk.SlidingWindows(time_difference_ms=2_000, grace_ms=0)).count().run(
        pd.DataFrame({"user": "ada", "at": at})
    )  # fmt: skip
    windows = Sessions(run)
    spans = sorted((windows.start_ms[place], windows.end_ms[place]) for place in standing_out(windows))
    assert spans and all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_one_session_and_sessions_that_are_alike_have_a_row() -> None:
    assert standing_out(Sessions(run_of(shapes()["one row"]))) == {0: ["the only one"]}
    assert standing_out(Sessions(run_of(shapes()["toy times"]))) == {0: ["as all others"]}


def test_the_page_begins_with_the_finding_and_says_its_cause_once() -> None:
    at = 1_720_000_000_000 + np.arange(2_000) * MINUTE
    at[900] += DAY
    run = run_of(pd.DataFrame({"user": np.arange(2_000) % 7, "at": at}))
    text = told(run, remarks=run.remarks())
    assert text.index("<p class='finding'>") < text.index("<p class='lead'>") and "<p class='remark'>" not in text
    assert text.count("lies 1 d ahead of those around it") == 1
    plain = told(run_of(shapes()["late rows"]), remarks=["types were guessed"])
    assert "<p class='remark'>types were guessed</p>" in plain


def test_the_pictures_over_time_say_what_the_trace_has() -> None:
    run = run_of(shapes()["late rows"], timezone="Asia/Kathmandu")
    titles = re.findall(
        r"<rect class='hit'[^>]*><title>[^<]*: ([\d,]+) (\w+?)s?( dropped| that begin)?</title>", told(run)
    )
    sums = {
        kind: sum(int(number.replace(",", "")) for number, one, more in titles if (one, more) == kind)
        for kind in {(one, more) for _, one, more in titles}
    }
    lost = run.metrics()["records-dropped"]
    assert sums == {("record", ""): 2_000, ("session", " that begin"): len(run.table()), ("record", " dropped"): lost}
    cells = re.findall(r"<td class='d\d' title='[^']*: ([\d,]+) of", told(run))
    assert sum(map(int, cells)) == lost
    assert "calendar" not in told(run_of(shapes()["one key"])) and "Over time" not in told(run_of(shapes()["one row"]))


def test_the_foot_has_the_command_and_the_versions() -> None:
    text = told(run_of(shapes()["one row"]), command="sessionkit report '<b>.csv'", systems=[("Spark", "<4>")])
    foot = html.unescape(text.partition("<footer>")[2])
    assert "sessionkit report '<b>.csv'</pre>" in foot and "<b>" not in text.partition("<footer>")[2]
    assert f"sessionkit {sk.__version__}, Python {platform.python_version()}, Arrow " in foot and "Spark <4>" in foot


def test_the_numbers_of_the_flights_are_known() -> None:
    plan = flights_by_route().windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()
    text = told(plan.run(sk.load_sample("flights")))
    for number, name in (("0 s", "median length"), ("2 h 40 min", "nine of ten"), ("18 h 14 min", "longest session")):
        assert f"<b>{number}</b><span>{name}</span>" in text
