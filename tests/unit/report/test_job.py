"""The report as a folder, made in this process: its tables, its plan as code, and what a failure leaves."""

import base64
import html
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.cli.commands import main
from sessionkit.errors import WriteFailed
from tests.unit.cli.clicks import COLUMNS, printed, write_clicks

TABLES = ["changelog", "days", "dropped", "keys", "sessions"]
OPTIONS = [*COLUMNS, "--gap", "30m", "--grace", "5m"]


def code_in(text: str) -> str:
    """The code below "The plan"."""
    shown = text.partition("<h2>The plan</h2>")[2].partition("<pre tabindex='0'>")[2]
    return html.unescape(shown.partition("</pre>")[0])


def names_in(folder: Path) -> list[str]:
    """All that lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_tables_lie_beside_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    file, out = write_clicks(tmp_path), tmp_path / "out"
    shown = printed(capsys, "report", file, *OPTIONS, "--out", out, "--format", kind)
    assert names_in(out) == sorted(["_sessionkit.json", "report.html", *(f"{name}.{kind}" for name in TABLES)])
    run = sk.group_by_key("user", timestamp="at", timezone="UTC").windowed_by(
        sk.SessionWindows(inactivity_gap="30m", grace="5m")
    ).count().run(file, frame="arrow")  # fmt: skip

    def read(name: str) -> pd.DataFrame:
        path = out / f"{name}.{kind}"
        return pd.read_csv(path) if kind == "csv" else pq.read_table(path).to_pandas()

    sessions = read("sessions")
    assert list(sessions.columns) == [*run.table().column_names, "length_ms"]
    assert sessions["user"].tolist() == ["ada", "ada", "bob"] and sessions["count"].tolist() == [2, 1, 1]
    assert sessions["length_ms"].tolist() == [600_000, 0, 0]
    assert len(read("changelog")) == len(run.changelog())
    assert read("dropped")["missing_grace_ms"].tolist() == run.dropped()["missing_grace_ms"].to_pylist()
    assert read("keys")["dropped"].tolist() == [0, 1]
    assert read("days")["day"].tolist() == ["2024-07-01"]
    page = (out / "report.html").read_text(encoding="utf-8")
    data = dict(re.findall(r"<a download='([^']+)' href='data:[a-z./-]+;base64,([^']+)'>", page))
    assert {name: base64.b64decode(text) for name, text in data.items()} == {
        f"{name}.{kind}": (out / f"{name}.{kind}").read_bytes() for name in TABLES
    }
    assert f"report {file} --by user" in html.unescape(page.partition("<footer>")[2])
    assert shown.splitlines()[-3:] == [
        "5 records, 3 sessions (1 still open), 0 merges, 1 dropped (20%)",
        ", ".join(f"{out / name}.{kind}" for name in ("sessions", "keys", "days", "dropped", "changelog")),
        f"{out / 'report.html'}: open it in a browser",
    ]


def test_the_page_holds_tables_as_long_as_they_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_clicks(tmp_path), tmp_path / "out"
    monkeypatch.setattr("sessionkit.report.job.MOST_ATTACHED", 300)
    printed(capsys, "report", file, *OPTIONS, "--out", out)
    page = (out / "report.html").read_text(encoding="utf-8")
    held = re.findall(r"<a download='(\w+)\.csv'", page)
    assert 0 < len(held) < len(TABLES) and sum((out / f"{name}.csv").stat().st_size for name in held) <= 300
    assert [name for name in TABLES if (f"{name}.csv (0." in page) != (name not in held)] == []


@pytest.mark.parametrize("name", ["clicks.csv", 'my "clicks" & <b>.csv'])
def test_the_plan_in_the_report_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It named the columns partition and offset, which the file has not."""
    monkeypatch.chdir(tmp_path)
    write_clicks(tmp_path).rename(tmp_path / name)
    printed(capsys, "report", name, *COLUMNS, "--gap", "30m", "--sum", "amount")
    code = code_in((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "partition" not in code and "offset" not in code
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102
    written = pd.read_csv(tmp_path / "out" / "sessions.csv")
    assert pa.table(found["run"].table())["sum_amount"].to_pylist() == written["sum_amount"].tolist()


def test_a_report_of_ours_is_replaced_and_nothing_of_it_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_clicks(tmp_path), tmp_path / "out"
    printed(capsys, "report", file, *OPTIONS, "--out", out)
    (out / "keys.csv").write_text("mine now", encoding="utf-8")
    printed(capsys, "report", file, *OPTIONS, "--out", out, "--format", "parquet")
    kept = ["_sessionkit.json", "keys.csv", "report.html"]
    assert names_in(out) == sorted([*kept, *(f"{name}.parquet" for name in TABLES)])
    assert (out / "keys.csv").read_text(encoding="utf-8") == "mine now"
    listed = [name for name, _, _ in json.loads((out / "_sessionkit.json").read_text(encoding="utf-8"))["files"]]
    assert sorted(listed) == sorted(["report.html", *(f"{name}.parquet" for name in TABLES)])


def test_a_failure_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_clicks(tmp_path), tmp_path / "new" / "out"

    def full(*given: object) -> None:
        raise WriteFailed("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr("sessionkit.report.job.page", full)
        assert main(["report", str(file), *OPTIONS, "--out", str(out)]) == 2
        assert names_in(tmp_path) == ["clicks.csv"]
    printed(capsys, "report", file, *OPTIONS, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with monkeypatch.context() as broken:
        broken.setattr("sessionkit.report.job.page", full)
        assert main(["report", str(file), *OPTIONS, "--out", str(out), "--format", "parquet"]) == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    capsys.readouterr()
    assert main(["report", str(file), *OPTIONS, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("sessionkit: the folder holds files that sessionkit did not write")


@pytest.mark.thorough
def test_neither_the_command_nor_its_help_loads_what_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import subprocess

    heavy = "{'pandas', 'plotly', 'pyspark', 'ipywidgets', 'rich', 'pydantic'}"
    lines = [
        "import sys",
        "from sessionkit.cli.commands import main",
        f"assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)",
        f"assert main(['info', {str(write_clicks(tmp_path))!r}]) == 0",
        "assert not {'plotly', 'pyspark', 'rich'} & set(sys.modules)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_on_a_terminal_a_bar_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from sessionkit.cli.saying import steps

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    seen = Terminal()
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("sys.stderr", seen)
    monkeypatch.setattr("sessionkit.base.progress.AFTER_S", 0.0)
    monkeypatch.setattr("sessionkit.base.progress.EVERY_S", 0.0)
    with steps(2, lambda step: None) as step:
        step("reading [b]")
        step("writing")
    monkeypatch.undo()
    assert "writing" in seen.getvalue()
    said: list[str] = []
    with steps(2, said.append) as step:
        step("reading")
    assert said == ["reading"]
