"""`explain`, `suggest`, `audit` and `info`: their answers are those of the public calls."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.cli.commands import main
from sessionkit.errors import TooLarge
from tests.deployments import audit_deployed
from tests.unit.cli.clicks import COLUMNS, Capture, printed, refused, write_clicks

GAP = ["--gap", "30m", "--grace", "5m"]


def plan() -> sk.Plan:
    windows = sk.SessionWindows(inactivity_gap="30m", grace="5m")
    return sk.group_by_key("user", timestamp="at", timezone="UTC").windowed_by(windows).count()


# ---- explain


def test_explain_a_record_and_a_window(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path)
    run = plan().run(file)
    shown = printed(capsys, "explain", file, *COLUMNS, *GAP, "--offset", 4)
    assert shown == f"{run.explain(offset=4)}\n" and "dropped" in shown
    options = ["--window-key", "ada", "--window-start", "2024-07-01 00:10"]
    shown = printed(capsys, "explain", file, *COLUMNS, *GAP, *options)
    assert shown == f"{run.explain(key='ada', window_start='2024-07-01 00:10')}\n"


def test_explain_finds_keys_that_are_numbers(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "clicks.parquet"
    pd.DataFrame({"user": [7, 7], "at": [0, 1_000]}).to_parquet(file)
    options = ["--unit", "ms", *GAP, "--window-key", 7, "--window-start", "1970-01-01"]
    assert "7" in printed(capsys, "explain", file, *COLUMNS, *options)


@pytest.mark.parametrize("options", [[], ["--offset", 1, "--window-key", "ada"], ["--window-key", "ada"]])
def test_explain_takes_one_thing(tmp_path: Path, capsys: Capture, options: list[Any]) -> None:
    said = refused(capsys, "explain", write_clicks(tmp_path), *COLUMNS, *GAP, *options)
    assert said.startswith("explain takes a record or a window")
    assert said.endswith("--offset 17 for a record, or --window-key ada --window-start '2024-07-01 00:10' for a window")


# ---- explain, where a file does not fit into memory


def too_large(contents: Any, columns: Any) -> None:
    """In the place of what looks at the memory that is free: files on the disk are too large, parts of them are not."""
    if isinstance(contents[0].open(), str):
        raise TooLarge("the memory would not be enough")


def explained(capsys: Capture, *arguments: object) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["explain", *map(str, arguments)]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


WINDOWS_OF = {
    "sessions": ["--gap", "30s", "--grace", "40s"], "hopping": ["--size", "60s", "--advance", "20s", "--grace", "9s"],
    "sliding": ["--time-difference", "20s", "--grace", "5s"],
    "days": ["--calendar", "day", "--timezone", "Europe/Berlin", "--grace", "1s"],
}  # fmt: skip


@pytest.mark.parametrize("windows", WINDOWS_OF)
@pytest.mark.parametrize("key", ["user", "number", "user,number"])
@pytest.mark.parametrize("has_places", [False, True])
def test_records_of_files_that_do_not_fit_are_picked_and_explained_in_the_same_words(
    windows: str, key: str, has_places: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, folder = np.random.default_rng(3), tmp_path / "clicks"
    at = np.cumsum(rng.integers(0, 8_000, 600)) - rng.integers(0, 30_000, 600) * (rng.random(600) < 0.1)
    numbers = rng.integers(0, 2, 600) if has_places else np.zeros(600, np.int64)
    frame = pd.DataFrame({"user": rng.choice(["ada", "bob", "eve"], 600), "number": rng.integers(7, 9, 600)})
    frame["at"] = pd.Timestamp("2024-07-01 01:00") + pd.to_timedelta(at, unit="ms")
    if has_places:
        frame["partition"] = numbers
        frame["offset"] = pd.Series(numbers).groupby(numbers).cumcount() * 2
    folder.mkdir()
    for part in range(3):
        frame[part * 200 : part * 200 + 200].to_parquet(folder / f"{part}.parquet", row_group_size=90)
    start = ["--by", key, "--at", "at", *WINDOWS_OF[windows]]
    which = [["--offset", offset, "--partition", number] for offset in (0, 130, 298) for number in {0, int(has_places)}]
    if windows == "days":
        first = {"user": "ada", "number": 7, "user,number": "ada@7"}[key]
        which.append(["--window-key", first, "--window-start", "2024-07-01", "--partition", 0])
    want = [explained(capsys, folder, *start, *each) for each in which]
    monkeypatch.setattr("sessionkit.records.files.tables._check_fits", too_large)
    monkeypatch.setattr("sessionkit.steps.chosen.STEP_RECORDS", 70)
    got = [explained(capsys, folder, *start, *each) for each in which]
    assert [out for out, _ in got] == [out for out, _ in want]
    assert all(set(err.splitlines()) <= set(more.splitlines()) for (_, err), (_, more) in zip(got, want, strict=True))
    assert all("have no zone and are read as UTC" in err for _, err in got) is (windows != "days")


def test_what_takes_all_records_or_names_none_of_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clicks.parquet"
    table = {"user": ["ada", None, "ada", "bob"], "at": [0, 1, 2, 3], "partition": [0, 0, 1, 1], "offset": [0, 1, 0, 1]}
    pd.DataFrame(table).to_parquet(file)
    monkeypatch.setattr("sessionkit.records.files.tables._check_fits", too_large)
    monkeypatch.setattr("sessionkit.steps.chosen.STEP_RECORDS", 2)
    asked = [file, *COLUMNS, "--unit", "ms", "--gap", "1s"]
    assert refused(capsys, "explain", *asked, "--offset", 0).startswith("the memory would not be enough")
    asked += ["--grace", "1s"]
    assert refused(capsys, "explain", *asked, "--offset", 0, "--sort").startswith("the memory would not be enough")
    for place in (["--offset", 0], ["--offset", 9, "--partition", 0], ["--offset", 1, "--partition", 0]):
        said = refused(capsys, "explain", *asked, *place)
        assert said.startswith(f"there is no record with a key at this place; got offset {place[1]}, partition")
    assert "key bob" in printed(capsys, "explain", *asked, "--offset", 1, "--partition", 1)
    said = refused(capsys, "explain", *asked, "--window-key", "zoe", "--window-start", "1970-01-01")
    assert said.startswith("there is no record of this key; got 'zoe'")


# ---- suggest


def test_suggest_a_gap_and_a_grace(tmp_path: Path, capsys: Capture) -> None:
    random = np.random.default_rng(5)
    pauses = np.where(random.random(3_000) < 0.1, 36_000, 20) * random.uniform(0.5, 2, 3_000)
    records = pd.DataFrame({"user": "ada", "at": (pauses.cumsum() * 1_000).astype(np.int64)})
    records.to_csv(tmp_path / "clicks.csv", index=False)
    shown = printed(capsys, "suggest", tmp_path / "clicks.csv", *COLUMNS, "--unit", "ms", "--keep", 1)
    found = sk.suggest_gap(sk.group_by_key("user", timestamp="at", unit="ms"), records)
    assert found.gap_ms is not None
    assert shown.splitlines()[: len(found.words())] == found.words()
    assert "A grace of 0 s keeps 100%" in shown


def test_suggest_without_a_clear_gap(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path)
    assert printed(capsys, "suggest", file, *COLUMNS).endswith("would also suggest a grace.\n")
    assert "A grace of 45 min keeps 100%" in printed(capsys, "suggest", file, *COLUMNS, "--gap", "30m")


# ---- audit

LOSES = ["--emit", "on_window_close", "--store", "memory"]


def test_audit_in_words_and_as_json(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path)
    found = audit_deployed(plan().emit("on_window_close"), file, store="memory")
    assert printed(capsys, "audit", file, *COLUMNS, *GAP, *LOSES).splitlines() == found.words()
    told = json.loads(printed(capsys, "audit", file, *COLUMNS, *GAP, *LOSES, "--json"))
    assert " ".join(told) == "file plan loses_nothing counts smallest_retention_ms recommended_retention_ms words"
    assert told["counts"] == found.counts() and told["loses_nothing"] is found.loses_nothing
    assert told["recommended_retention_ms"] == found.recommended_retention_ms


def test_fail_if_lost_is_status_1(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path)
    assert not audit_deployed(plan().emit("on_window_close"), file, store="memory").loses_nothing
    printed(capsys, "audit", file, *COLUMNS, *GAP, *LOSES, "--fail-if-lost", status=1)
    printed(capsys, "audit", file, *COLUMNS, *GAP, *LOSES)
    printed(capsys, "audit", file, *COLUMNS, *GAP, *LOSES, "--retention", "2h", "--fail-if-lost")
    assert refused(capsys, "audit", file, *COLUMNS, *GAP, "--store", "disk").startswith(
        "store must be a known choice; got 'disk'; one of 'memory', 'rocksdb'"
    )


def test_audit_is_told_the_deployment(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[sk.Deployment] = []
    real = sk.audit

    def note(plan: sk.Plan, data: Any, deployment: sk.Deployment) -> sk.Audit:
        asked.append(deployment)
        return real(plan, data)

    monkeypatch.setattr("sessionkit.audits.audit.audit", note)
    options = ["--retention", "3h", "--caching", "100 B", "--commit-interval", "none", "--emit-interval", "5s"]
    printed(capsys, "audit", write_clicks(tmp_path), *COLUMNS, *GAP, *options, "--restart", 1, "--restart", 3)
    assert asked == [
        sk.Deployment(retention="3h", caching="100B", commit_interval=None, emit_interval="5s", restarts=(1, 3))
    ]
    said = refused(capsys, "audit", tmp_path / "clicks.csv", *COLUMNS, *GAP, "--caching", "much")
    assert said.startswith("caching is no number of bytes; got 'much'")
    bare = refused(capsys, "audit", tmp_path / "clicks.csv", *COLUMNS, *GAP, "--caching", "10485760")
    assert bare.startswith("caching is no number of bytes; got '10485760'")


# ---- info


def test_info_names_columns_order_span_and_how_to_go_on(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_clicks(tmp_path)
    lines = printed(capsys, "info", "clicks.csv").splitlines()
    assert lines == [
        "clicks.csv: 5 rows, 3 columns", "  column  type          missing  could be",
        "  user    string              0  key: 2 values, 2.5 rows each",
        "  at      timestamp[s]        0  event time: times; 20% of the rows step back",
        "  amount  int64               0", "Order by at: 20% of the rows step back in time",
        "Span: 2024-07-01 00:10:00 to 2024-07-01 01:30:00 (1 h 20 min), in UTC, as the times have no zone; "
        "--timezone names one",
        "To go on (the pauses show no clear gap; 30 min is only a start):",
        "  sessionkit report clicks.csv --key user --timestamp at --gap 30m",
    ]  # fmt: skip
    assert main(shlex.split(lines[-1])[1:]) == 0


def test_info_goes_on_with_newest_first_and_numbers(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "my clicks.csv"
    rows = "".join(f"{second % 3},{1_720_000_000 - second}\n" for second in range(30))
    file.write_text(f"visitor id,seen\n{rows}", encoding="utf-8")
    shown = printed(capsys, "info", file)
    assert "Order by seen: 96.67% of the rows step back in time\n" in shown
    said = (
        "19 of 30 records are more than 10 s behind stream time, because the newest row stands first. "
        "--sort sorts the rows by time."
    )
    assert said in shown
    assert shown.endswith(f"report '{file}' --key 'visitor id' --timestamp seen --unit s --gap 10s --sort\n")
    assert main([*shlex.split(shown.splitlines()[-1])[1:], "--out", str(tmp_path / "out")]) == 0
    assert "in the order of their times" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_info_tells_the_order_of_rows_from_both_sides_of_a_change_of_clocks(tmp_path: Path, capsys: Capture) -> None:
    at = pd.date_range("2024-10-26", "2024-10-28", freq="10min")[::-1].strftime("%Y-%m-%d %H:%M")
    rows = "".join(f"{number % 3},{each}\n" for number, each in enumerate(at))
    shown = printed(capsys, "info", write_clicks(tmp_path, f"user,at\n{rows}"), "--timezone", "Europe/Berlin")
    assert "because the newest row stands first. --sort " in shown and shown.endswith(" --sort\n")


def test_rows_that_mostly_step_back_are_remarked_in_the_report(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"ada,{1_720_000_000 - 3_600 * hour}\n" for hour in range(100))
    file, out = write_clicks(tmp_path, f"user,at\n{rows}"), tmp_path / "out"
    shown = printed(capsys, "report", file, *COLUMNS, *GAP, "--unit", "s", "--out", out)
    said = "because the newest row stands first"
    assert f"{said}. --sort sorts the rows by time." in shown
    assert f"{said}; sorted by time, none is dropped." in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "telling"), [
    ("user,amount\nada,1\nada,2\n", "To go on, sessionkit needs a column of times."),
    ("user,at\nada,2024-07-01 00:00\nbob,2024-07-02 00:00\n", "a column whose values repeat; if all rows are"),
    ("user,at\n", "No column holds times"),
    ("user,at\nada,2024-07-01\nbob,2024-07-02\nada,2024-07-03\nbob,2024-07-03\n", "--key user --timestamp at"),
])  # fmt: skip
def test_info_says_what_is_lacking(tmp_path: Path, capsys: Capture, text: str, telling: str) -> None:
    assert telling in printed(capsys, "info", write_clicks(tmp_path, text))
