"""Options given twice: an error where one value is taken, and all of them where several are."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.main import get_command

import sessionkit as sk
from sessionkit.cli.commands import app, main
from sessionkit.cli.options import columns_in
from tests.unit.cli.clicks import COLUMNS, Capture, printed, refused, write_clicks

VISITS = """\
user,site,at
ada,a,2024-07-01 00:10:00
ada,b,2024-07-01 00:11:00
ada,a,2024-07-01 00:20:00
ada,b,2024-07-01 01:30:00
"""
PARAMS: list[tuple[str, Any]] = [
    (name, param)
    for name, command in getattr(get_command(app), "commands", {}).items()
    for param in command.params
    if param.param_type_name == "option"
]
SEVERAL = {"key", "types", "mean", "sum", "min", "max", "restart", "new_when", "starts_when", "ends_when"}


def test_which_options_take_several_values() -> None:
    assert {param.name for _, param in PARAMS if param.multiple} == SEVERAL


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "param"),
    [(name, param) for name, param in PARAMS if not param.multiple],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_an_option_given_twice_is_an_error_that_names_it(
    tmp_path: Path, capsys: Capture, command: str, param: Any
) -> None:
    """The last of two was taken, and nothing said."""
    first, last = param.opts[0], param.opts[-1]
    values = [] if param.is_flag else ["1"]
    given = [first, *values, *([f"{last}=1"] if values else [last])]
    file = [] if command == "demo" else [write_clicks(tmp_path)]
    required = [each for name, each in PARAMS if (name, each.required) == (command, True) and each.name != param.name]
    more = [word for each in required for word in (each.opts[0], "1")]
    said = refused(capsys, command, *file, *more, *given)
    shown = f"{first} 1 and {last}=1" if values else f"{first} and {last}"
    assert said.startswith(f"{'/'.join(param.opts)} takes one value; got {shown}; give it once; sessionkit {command}")


def test_help_comes_before_any_complaint(capsys: Capture) -> None:
    assert "Example:" in printed(capsys, "report", "--gap", "1h", "--gap", "2h", "--help")


@pytest.mark.parametrize("by", [["--by", "user", "--by", "site"], ["--key", "user,site"], ["--key=user", "--key=site"]])
def test_several_key_columns(tmp_path: Path, capsys: Capture, by: list[str]) -> None:
    """Only the last --by counted: one session where there are three."""
    file = write_clicks(tmp_path, VISITS)
    found = pd.read_csv(io.StringIO(printed(capsys, "sessionize", file, *by, "--at", "at", "--gap", "30m")))
    rows = pd.read_csv(io.StringIO(VISITS), parse_dates=["at"])
    expected = sk.sessionize(rows, by=["user", "site"], at="at", gap="30m", timezone="UTC")
    assert found["session_id"].tolist() == expected["session_id"].tolist() == [0, 1, 0, 2]
    assert columns_in(["a,b", " c ", ","]) == ("a", "b", "c")


@pytest.mark.parametrize("command", ["sessionize", "suggest", "report", "audit", "explain"])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["--by", "user", "--key", "site", "--at", "at"], "--by and --key are two names of one option"),
        (["--by", "user", "--at", "at", "--timestamp=at"], "--timestamp/--at takes one value; got --at at and --t"),
    ],
)
def test_two_names_of_one_option_are_not_given_together(
    tmp_path: Path, capsys: Capture, command: str, names: list[str], said: str
) -> None:
    file = write_clicks(tmp_path, VISITS)
    assert refused(capsys, command, file, *names, "--gap", "30m").startswith(said)


def test_a_column_has_one_type(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path)
    twice = ["--types", "user=string", "--types", "amount=int64,user=int64"]
    said = refused(capsys, "sessionize", file, *COLUMNS, "--gap", "30m", *twice)
    assert said == "--types takes one type a column; got user=string and user=int64; give one of them"
    assert main(["sessionize", str(file), *COLUMNS, "--gap", "30m", *["--types", "user=string"] * 2]) == 0
