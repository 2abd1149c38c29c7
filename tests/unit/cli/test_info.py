"""`info`: what it says of a file, and the command that it proposes, which runs as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sessionkit.cli.commands import main
from tests.unit.cli.clicks import CLICKS, printed, refused, write_clicks

ROWS = CLICKS.partition("\n")[2]


def proposed(shown: str) -> list[str]:
    return shlex.split(shown.splitlines()[-1])[1:]


def test_a_file_without_names_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_clicks(tmp_path, ROWS)
    assert main(["info", str(file)]) == 0
    shown = capsys.readouterr()
    assert "5 rows, 3 columns" in shown.out
    assert (
        "The first line looks like a record, so columns are called c1, c2 and so on, as with --no-header." in shown.err
    )
    command = proposed(shown.out)
    assert command[2:7] == ["--no-header", "--key", "c1", "--timestamp", "c2"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "or read the file with --no-header if its first line is a record" in refused(
        capsys, "sessionize", file, "--by", "user", "--at", "at", "--gap", "30m"
    )


def test_the_separator_that_was_given_is_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_clicks(tmp_path, CLICKS.replace(",", "~"))
    command = proposed(printed(capsys, "info", file, "--separator", "~"))
    assert command[2:4] == ["--separator", "~"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0


def test_empty_texts_are_missing_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(
        capsys, "info", write_clicks(tmp_path, CLICKS + ',2024-07-01 02:00:00,1\n"",2024-07-01 02:00:00,1\n')
    )
    (line,) = [line for line in shown.splitlines() if line.startswith("  user")]
    assert line.split()[2] == "1"  # the one in quotes is the empty text


def test_no_constant_is_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["loaded,site,user,at", *(f"2024-05-05,x,{'ab'[n % 2]},2024-05-01 00:0{n}:00" for n in range(8))]
    shown = printed(capsys, "info", write_clicks(tmp_path, "\n".join(lines) + "\n"))
    assert "no event time: it is the same in all rows" in shown and "no key: it has one value" in shown
    assert proposed(shown)[2:6] == ["--key", "user", "--timestamp", "at"]


def test_a_time_that_needs_a_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_clicks(tmp_path, "user,at\nada,01/02/2024 10:00\nada,01/02/2024 10:01\n")
    assert '--time-format "%d/%m/%Y %H:%M" or "%m/%d/%Y %H:%M"' in printed(capsys, "info", file)
