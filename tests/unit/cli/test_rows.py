"""`sessionize`: the rows of a file with the session of each."""

import errno
import io
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.cli.commands import main
from sessionkit.report import written
from tests.unit.cli.clicks import CLICKS, COLUMNS, Capture, printed, refused, write_clicks


def test_rows_are_printed_with_their_sessions(tmp_path: Path, capsys: Capture) -> None:
    shown = printed(capsys, "sessionize", write_clicks(tmp_path), *COLUMNS, "--gap", "30m")
    found = pd.read_csv(io.StringIO(shown))
    rows = pd.read_csv(io.StringIO(CLICKS), parse_dates=["at"])
    expected = sk.sessionize(rows, "user", "at", "30m", timezone="UTC")
    assert list(found.columns) == list(expected.columns)
    for name in ("user", "amount", "session_id", "session_rows", "position_in_session", "late"):
        assert found[name].tolist() == expected[name].tolist()
    assert pd.to_datetime(found["session_end"]).tolist() == expected["session_end"].tolist()


def test_with_a_grace_rows_can_be_late(tmp_path: Path, capsys: Capture) -> None:
    options = ["--gap", "30m", "--grace", "5m"]
    found = pd.read_csv(io.StringIO(printed(capsys, "sessionize", write_clicks(tmp_path), *COLUMNS, *options)))
    assert found["late"].tolist() == [False] * 4 + [True]
    assert found["session_id"].isna().tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("name", ["sessions.csv", "sessions.parquet"])
def test_into_a_file(tmp_path: Path, capsys: Capture, name: str) -> None:
    file, out = write_clicks(tmp_path), tmp_path / name
    assert printed(capsys, "sessionize", file, *COLUMNS, "--gap", "30m", "--out", out) == ""
    found = pd.read_csv(out) if out.suffix == ".csv" else pq.read_table(out).to_pandas()
    assert found["session_rows"].tolist() == [2, 2, 2, 1, 2]
    before = out.read_bytes()
    said = refused(capsys, "sessionize", file, *COLUMNS, "--gap", "1h", "--out", out)
    assert said.startswith("there is something of this name already") and out.read_bytes() == before
    printed(capsys, "sessionize", file, *COLUMNS, "--gap", "2h", "--out", out, "--overwrite")
    assert out.read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clicks.csv", name]


@pytest.mark.parametrize("out", [None, "out.csv"])
@pytest.mark.parametrize("options", [[], ["--separator", ";"], ["--no-header"]])
def test_columns_that_only_pass_through_come_out_as_they_were_written(
    options: list[str], out: str | None, tmp_path: Path, capsys: Capture
) -> None:
    """00123 became 123, 1.50 became 1.5, and a day a time."""
    times = [f"2024-07-01 00:1{n}:00" for n in range(3)]
    rest = [["00123", "1e5", ""], ["1.50", "", "1562.0"], ["TRUE", "false", "0"], ["NA", "null", 'x, "y"'],
            ["2024-07-01", "2024-07-02T10:00", "01.07.2024"], ["9" * 30, "0x1F", " 7 "]]  # fmt: skip
    rows = pd.DataFrame({f"c{n}": column for n, column in enumerate([["007", "8", "007"], times, *rest], 1)})
    rows.to_csv(tmp_path / "in.csv", sep=";" if ";" in options else ",", index=False, header=len(options) != 1)
    command = ["sessionize", tmp_path / "in.csv", "--by", "c1", "--at", "c2", "--gap", "30m", *options]
    shown = printed(capsys, *command, *(["--out", tmp_path / out] if out else []))
    text = (tmp_path / out).read_text(encoding="utf-8") if out else shown
    found = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)[[*rows]]
    assert found.equals(rows) and '""' not in text.replace('""y""', "")


def test_passing_columns_have_types_in_parquet_and_where_these_are_given(tmp_path: Path, capsys: Capture) -> None:
    command = ["sessionize", write_clicks(tmp_path), *COLUMNS, "--gap", "30m"]
    printed(capsys, *command, "--out", tmp_path / "out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").field("amount").type == pa.int64()
    assert '"ada",2024-07-01 00:10:00,3,0,' in printed(capsys, *command, "--types", "amount=int64")


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_file_that_appears_meanwhile_is_kept(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, overwrite: list[str],
    has_links: bool,
) -> None:  # fmt: skip
    """It was looked for first, and replaced later."""
    file, out = write_clicks(tmp_path), tmp_path / "sessions.csv"
    real = written.write_table

    def slowly(table: pa.Table, path: Path) -> None:
        real(table, path)
        out.write_text("mine", encoding="utf-8")

    def no_link(*places: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(written, "write_table", slowly)
    if not has_links:
        monkeypatch.setattr(os, "link", no_link)
    command = ["sessionize", file, *COLUMNS, "--gap", "30m", "--out", out, *overwrite]
    if overwrite:
        printed(capsys, *command)
        assert len(pd.read_csv(out)) == 5
    else:
        assert refused(capsys, *command).startswith("there is something of this name already")
        assert out.read_text(encoding="utf-8") == "mine"
        monkeypatch.setattr(written, "write_table", real)
        out.unlink()
        printed(capsys, *command)
        assert len(pd.read_csv(out)) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clicks.csv", "sessions.csv"]


@pytest.mark.parametrize(("out", "options", "telling"), [
    ("sessions.xlsx", [], "--out names a file of an unknown kind"),
    ("gone/sessions.csv", [], "the file cannot be written"),
    ("sessions.csv", ["--unit", "weeks"], "unit must be a known choice"),
    ("sessions.csv", ["--partition", "nowhere"], "column 'nowhere' is not in"),
])  # fmt: skip
def test_a_failure_leaves_nothing(tmp_path: Path, capsys: Capture, out: str, options: list[str], telling: str) -> None:
    file = write_clicks(tmp_path)
    said = refused(capsys, "sessionize", file, *COLUMNS, "--gap", "30m", "--out", tmp_path / out, *options)
    assert said.startswith(telling)
    assert [path.name for path in tmp_path.iterdir()] == ["clicks.csv"]


def test_columns_that_csv_has_no_text_for(tmp_path: Path, capsys: Capture) -> None:
    at = pa.array([0, 1_000], pa.timestamp("ms", "UTC"))
    columns = {"user": pa.array(["ada", "bob"]).dictionary_encode(), "at": at, "pages": [["a", "b"], None]}
    columns |= {"raw": pa.array([b"x", None], pa.large_binary()), "lasted": pa.array([5, None], pa.duration("ms"))}
    pq.write_table(pa.table(columns), tmp_path / "clicks.parquet")
    shown = printed(capsys, "sessionize", tmp_path / "clicks.parquet", *COLUMNS, "--gap", "30m")
    found = pd.read_csv(io.StringIO(shown), keep_default_na=False)
    assert found["pages"].tolist() == ['["a", "b"]', ""]
    assert (found["raw"].tolist(), found["lasted"].tolist()) == (["x", ""], ["5", ""])


def test_a_reader_that_has_had_enough(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `sessionkit sessionize … | head`: the remarks on the file are shown all the same."""

    class Closed(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return spare.fileno()

    with (tmp_path / "spare").open("wb") as spare:
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(Closed()))
        assert main(["sessionize", str(write_clicks(tmp_path)), *COLUMNS, "--gap", "30m"]) == 0
        monkeypatch.undo()
    assert "clicks.csv is text, and the type of 'at'" in capsys.readouterr().err


def test_times_as_they_are_written_in_a_file_without_names(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, "ada;01/02/2024 10:00\nada;01/02/2024 10:10\nada;01/02/2024 12:00\n")
    options = ["--by", "c1", "--at", "c2", "--gap", "30m", "--separator", ";", "--no-header"]
    shown = printed(capsys, "sessionize", file, *options, "--format", "%d/%m/%Y %H:%M", "--prefix", "my_")
    found = pd.read_csv(io.StringIO(shown))
    assert found["my_session_id"].tolist() == [0, 0, 1]
    assert found["my_session_start"].iloc[2] == "2024-02-01 12:00:00.000Z"
    said = refused(capsys, "sessionize", file, *options)
    assert '--time-format "%d/%m/%Y %H:%M" or "%m/%d/%Y %H:%M"' in said and "drop" not in said
    tabs = write_clicks(tmp_path, "ada\t1\nada\t2\n")
    shown = printed(capsys, "sessionize", tabs, *options[:6], "--unit", "s", "--separator", "tab", "--no-header")
    assert pd.read_csv(io.StringIO(shown))["session_rows"].tolist() == [2, 2]


def test_what_was_recognised_is_said_once(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, "user,at\nada,[29/Nov/2017:06:58:55 +0100]\n")
    assert main(["sessionize", str(file), *COLUMNS, "--gap", "30m"]) == 0
    shown = capsys.readouterr()
    assert "2017-11-29 05:58:55" in shown.out
    assert shown.err == (
        "Times with an offset, such as +0100, are shown in UTC unless --timezone names another zone.\n"
        "column 'at' is read as %d/%b/%Y: '[29/Nov/2017:06:58:55 +0100]' is 2017-11-29T06:58:55 +0100 in ISO 8601; "
        "--time-format names another way\n"
    )


def test_an_hour_that_clocks_show_twice(tmp_path: Path, capsys: Capture) -> None:
    night = ["01:50", "02:10", "02:05", "03:00"]
    file = write_clicks(tmp_path, "user,at\n" + "".join(f"ada,2024-10-27 {time}:00\n" for time in night))
    options = [*COLUMNS, "--gap", "30m", "--timezone", "Europe/Berlin"]
    said = refused(capsys, "sessionize", file, *options)
    told = "got row 1: 2024-10-27 02:10:00 in Europe/Berlin; --ambiguous earliest or --ambiguous latest choose one, and"
    assert f'{told} "infer" goes by' in said
    shown = printed(capsys, "sessionize", file, *options, "--ambiguous", "infer")
    assert pd.read_csv(io.StringIO(shown))["session_id"].tolist() == [0, 0, 1, 2]


def test_a_dump_of_kcat(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "dump.json").write_text(
        '{"topic":"t","partition":0,"offset":0,"ts":1719792000000,"key":"k","payload":"{\\"who\\":\\"ada\\",\\"n\\":3}"}\n'
        '{"topic":"t","partition":0,"offset":1,"ts":1719792060000,"key":null,"payload":"{\\"who\\":\\"ada\\",\\"n\\":4}"}\n',
        encoding="utf-8",
    )
    options = ["--by", "payload.who", "--at", "ts", "--unit", "ms", "--gap", "30m"]
    shown = printed(capsys, "sessionize", tmp_path / "dump.json", *options)
    assert pd.read_csv(io.StringIO(shown))["session_rows"].tolist() == [2, 2]
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "dump.json"), *options, "--sum", "payload.n", "--out", str(out)]) == 0
    assert "7" in (out / "sessions.csv").read_text(encoding="utf-8").splitlines()[1].split(",")


def test_rules_of_sessions(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "clicks.csv"
    file.write_text(
        "user,at,to,event,code\na,2026-01-01T23:50,,login,1\na,2026-01-01T23:58,,view,05\n"
        "a,2026-01-02T00:05,,logout,1\na,2026-01-02T00:06,2026-01-02T01:00,view,1\na,2026-01-02T01:20,,view,1\n"
    )
    command = ["sessionize", file, *COLUMNS, "--gap", "30m"]
    rules = ["--until", "to", "--new-at", "midnight", "--ends-when", "event=logout", "--starts-when", "code=05"]
    found = pd.read_csv(io.StringIO(printed(capsys, *command, *rules)), dtype={"code": str})
    assert found["session_id"].tolist() == [0, 1, 2, 3, 3]
    assert found["session_ended_by"].fillna("").tolist() == ["start", "midnight", "end", "", ""]
    assert found["code"][1] == "05"
    lengths = ["--max-length", "10m", "--max-rows", "2", "--new-when", "event"]
    shown = pd.read_csv(io.StringIO(printed(capsys, *command, *lengths)))
    assert shown["session_ended_by"].fillna("").tolist() == [*["value:event"] * 3, "gap", ""]
    assert refused(capsys, *command, "--ends-when", "event").startswith("--ends-when takes a column and a value; got")
    assert refused(capsys, *command, "--max-rows", "0").endswith("such as --max-rows 1000")
    assert refused(capsys, *command, "--new-at", "25:00").startswith(
        "--new-at must be a time of day; got '25:00'; --new"
    )
    assert refused(capsys, *command, "--ends-when", "gone=1").startswith("column 'gone' is not in the data")
