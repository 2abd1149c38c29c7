"""A small file of clicks, as the help of each command names it."""

from pathlib import Path

import pytest

from sessionkit.cli.commands import main

CLICKS = """\
user,at,amount
ada,2024-07-01 00:10:00,3
bob,2024-07-01 00:11:00,1
ada,2024-07-01 00:20:00,2
ada,2024-07-01 01:30:00,2
bob,2024-07-01 00:15:00,7
"""
COLUMNS = ["--by", "user", "--at", "at"]
Capture = pytest.CaptureFixture[str]


def write_clicks(folder: Path, text: str = CLICKS) -> Path:
    file = folder / "clicks.csv"
    file.write_text(text, encoding="utf-8")
    return file


def printed(capsys: Capture, *arguments: object, status: int = 0) -> str:
    capsys.readouterr()
    done = main([str(each) for each in arguments])
    shown = capsys.readouterr()
    assert done == status, shown.err
    return shown.out


def refused(capsys: Capture, *arguments: object) -> str:
    """The one line with which a command ends that cannot go on."""
    capsys.readouterr()
    assert main([str(each) for each in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("sessionkit: ")
    return line.removeprefix("sessionkit: ")
