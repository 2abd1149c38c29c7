"""The help of each command: readable at 80 columns, with examples that run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from sessionkit.cli.commands import COMMANDS, main
from tests.unit.cli.clicks import Capture, printed, write_clicks


def examples(shown: str) -> list[str]:
    """The commands below "Example:", those of several lines joined."""
    below = re.split(r"^  Examples?:\n", shown, flags=re.M)[1].split("\n\n")[0]
    return [" ".join(line.split()) for line in below.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_has_examples_that_run_as_they_stand(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    write_clicks(tmp_path)
    shown = printed(capsys, name, "--help")
    assert max(map(len, shown.splitlines())) <= 80
    commands = examples(shown)
    assert commands and all(each.startswith(f"sessionkit {name} ") for each in commands)
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
        assert capsys.readouterr().out
