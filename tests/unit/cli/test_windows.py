"""The same options name windows of every kind in `report`, `explain` and `audit`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.csv as csv
import pytest

import sessionkit as sk
from sessionkit.cli.commands import COMMANDS
from tests.unit.cli.clicks import COLUMNS, Capture, printed, refused, write_clicks

GRACE = ["--grace", "5m"]
KINDS: dict[str, tuple[list[str], Any]] = {
    "session": (["--gap", "30m"], sk.SessionWindows(inactivity_gap="30m", grace="5m")),
    "tumbling": (["--size", "10m"], sk.TimeWindows(size="10m", grace="5m")),
    "hopping": (["--size", "10m", "--advance", "5m"], sk.TimeWindows(size="10m", advance="5m", grace="5m")),
    "sliding": (["--time-difference", "10m"], sk.SlidingWindows(time_difference="10m", grace="5m")),
}
WINDOWED = ["report", "explain", "audit"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[list[str], sk.Plan]:
    """The options of one kind, and the plan that they name."""
    options, windows = KINDS[request.param]
    return options, sk.group_by_key("user", timestamp="at", timezone="UTC").windowed_by(windows).count()


def test_explain(kind: tuple[list[str], sk.Plan], tmp_path: Path, capsys: Capture) -> None:
    (options, plan), file = kind, write_clicks(tmp_path)
    run = plan.run(file)
    for offset in range(5):
        shown = printed(capsys, "explain", file, *COLUMNS, *options, *GRACE, "--offset", offset)
        assert shown == f"{run.explain(offset=offset)}\n"
    first = run.table().iloc[0]
    start = first["window_start"].strftime("%Y-%m-%d %H:%M:%S.%f")
    of_window = ["--window-key", first["user"], "--window-start", start]
    shown = printed(capsys, "explain", file, *COLUMNS, *options, *GRACE, *of_window)
    assert shown == f"{run.explain(key=first['user'], window_start=start)}\n"


def test_audit(kind: tuple[list[str], sk.Plan], tmp_path: Path, capsys: Capture) -> None:
    (options, plan), file = kind, write_clicks(tmp_path)
    told = json.loads(printed(capsys, "audit", file, *COLUMNS, *options, *GRACE, "--json"))
    found = sk.audit(plan, file)
    assert told["counts"] == found.counts() and told["words"] == found.words()
    assert told["plan"] == repr(plan.emit("on_window_update"))


def test_report(kind: tuple[list[str], sk.Plan], tmp_path: Path, capsys: Capture) -> None:
    (options, plan), file, out = kind, write_clicks(tmp_path), tmp_path / "out"
    shown = printed(capsys, "report", file, *COLUMNS, *options, *GRACE, "--out", out)
    run, noun = plan.run(file), plan.windows.noun
    table, found = run.table(), csv.read_csv(out / f"{noun}s.csv")
    assert found["count"].to_pylist() == table["count"].tolist()
    assert pd.to_datetime(found["window_start"].to_pylist()).tolist() == table["window_start"].tolist()
    keys = pd.read_csv(out / "keys.csv").set_index("user")[f"{noun}s"].to_dict()
    assert keys == table.groupby("user").size().to_dict()
    page = (out / "report.html").read_text(encoding="utf-8").partition("<script>")[0]
    assert f"<h2>The {noun}s</h2>" in page and "<h2>Dropped records</h2>" in page
    others = {"session", "window"} - {noun}
    words = page.partition("<main>")[2].partition("<pre")[0]
    assert not any(f">{other}s<" in words or f" {other} " in words for other in others)
    assert f" {len(table):,} {noun}s (" in shown


def test_a_grace_that_keeps_all(kind: tuple[list[str], sk.Plan], tmp_path: Path, capsys: Capture) -> None:
    (options, plan), file = kind, write_clicks(tmp_path)
    told = json.loads(printed(capsys, "audit", file, *COLUMNS, *options, "--json"))
    assert told["counts"]["dropped_records"] == 0
    assert plan.with_windows(grace="0s").run(file).metrics()["dropped-records-total"] > 0


@pytest.mark.parametrize("command", WINDOWED)
@pytest.mark.parametrize(("options", "got"), [
    ([], "no length"), (["--gap", "30m", "--size", "1h"], "--gap 30m, --size 1h"),
    (["--size", "1h", "--time-difference", "1h"], "--size 1h, --time-difference 1h"),
    (["--gap", "1h", "--advance", "1m"], "--gap 1h, --advance 1m"), (["--advance", "1m"], "--advance 1m"),
])  # fmt: skip
def test_one_kind_of_windows_is_named(capsys: Capture, command: str, options: list[str], got: str) -> None:
    said = refused(capsys, command, "gone.csv", *COLUMNS, *options)
    want = "--gap 30m for sessions, --size 1h for tumbling windows, --size 1h --advance 5m for hopping ones, "
    want += "--time-difference 10m for sliding ones, or --calendar day for the days of a zone"
    assert said == f"the options name one kind of windows; got {got}; {want}"


# ---- what Kafka does not have

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(("options", "windows"), [
    (["--calendar", "month"], sk.CalendarWindows("month", timezone=BERLIN, grace="5m")),
    (["--size", "1d", "--window-offset", "6h"], sk.TimeWindows(size="1d", offset="6h", grace="5m")),
])  # fmt: skip
def test_calendars_and_offsets(tmp_path: Path, capsys: Capture, options: list[str], windows: Any) -> None:
    file = write_clicks(tmp_path)
    named = [*COLUMNS, *options, *GRACE, "--timezone", BERLIN]
    run = sk.group_by_key("user", timestamp="at", timezone=BERLIN).windowed_by(windows).count().run(file)
    assert printed(capsys, "explain", file, *named, "--offset", 0) == f"{run.explain(offset=0)}\n"
    printed(capsys, "report", file, *named, "--out", tmp_path / "out")
    found = csv.read_csv(tmp_path / "out" / "windows.csv")
    assert found["count"].to_pylist() == run.table()["count"].tolist()
    assert "Kafka" in refused(capsys, "audit", file, *named)


def test_a_calendar_is_that_of_a_zone(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "clicks.parquet"
    pd.DataFrame({"user": ["ada"], "at": pd.to_datetime(["2026-03-28 23:30"], utc=True)}).to_parquet(file)
    said = refused(capsys, "explain", file, *COLUMNS, "--calendar", "day", "--offset", 0)
    assert said == "a calendar is that of a zone; got --calendar day; --timezone Europe/Berlin, or another"
    said = refused(capsys, "explain", file, *COLUMNS, "--calendar", "hour", "--offset", 0)
    assert said.startswith("--calendar must be a known choice; got 'hour'; one of 'day', 'week'")
    said = refused(capsys, "audit", file, *COLUMNS, "--calendar", "day", "--timezone", BERLIN, *GRACE)
    assert said.endswith(f"got --calendar day --timezone {BERLIN}; --size 1d, the days of UTC")


GUARD = ["--arrival", "received", "--max-ahead", "5m"]


@pytest.mark.parametrize(("ahead", "words"), [
    ("drop", "was dropped: its time lies further ahead of its arrival than --max-ahead allows"),
    ("keep", "it moves no stream time, as --ahead keep says"),
])  # fmt: skip
def test_clocks_in_the_future(tmp_path: Path, capsys: Capture, ahead: str, words: str) -> None:
    file = tmp_path / "clicks.csv"
    pd.DataFrame({
        "user": ["ada", "bob", "ada"], "at": ["2026-03-01 10:00", "2026-09-01 10:00", "2026-03-01 10:01"],
        "received": ["2026-03-01 10:00", "2026-03-01 10:01", "2026-03-01 10:01"],
    }).to_csv(file, index=False)  # fmt: skip
    windows = ["--gap", "30m", *GRACE, *GUARD]
    assert words in printed(capsys, "explain", file, *COLUMNS, *windows, "--ahead", ahead, "--offset", 1)
    later = printed(capsys, "explain", file, *COLUMNS, *windows, "--ahead", ahead, "--offset", 2)
    assert "joined the session" in later and "dropped" not in later
    said = refused(capsys, "audit", file, *COLUMNS, *windows)
    assert said.startswith("--arrival, --max-ahead and --ahead belong together; got --arrival received --max-ahead 5m;")
    assert "got --max-ahead 5m; a plan without" in refused(capsys, "audit", file, *COLUMNS, *windows, "--ahead", ahead)


# ---- what else the command line as a whole has


def test_version(capsys: Capture) -> None:
    assert printed(capsys, "--version") == f"sessionkit {sk.__version__}\n"
    assert "--version" in printed(capsys, "--help")


@pytest.mark.thorough
@pytest.mark.parametrize("command", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_what_needs_no_records_loads_nothing(command: list[str]) -> None:
    code = (
        "import sys\nfrom sessionkit.cli.commands import main\nassert main(sys.argv[1:]) == 0\n"
        "heavy = {'pandas', 'pyarrow', 'numpy', 'numba', 'plotly', 'pyspark'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
