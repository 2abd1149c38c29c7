"""What is said at the command line names its options."""

from pathlib import Path

import pytest

from sessionkit.cli.commands import main
from tests.unit.cli.clicks import Capture

NEWEST_FIRST = "user,at\nada,2024-07-01T09:00:02Z\nada,2024-07-01T09:00:01Z\nada,2024-07-01T09:00:00Z\n"
COLUMNS = ["--by", "user", "--at", "at", "--gap", "30m"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (NEWEST_FIRST + ",\n", "or pass --on-bad-time drop to count them as dropped"),
        ("user,at\nada,5\n", "pass --unit s, ms, us or ns"),
    ],
)
def test_a_refusal_names_options(tmp_path: Path, capsys: Capture, content: str, said: str) -> None:
    (tmp_path / "clicks.csv").write_text(content, encoding="utf-8")
    main(["sessionize", str(tmp_path / "clicks.csv"), *COLUMNS])
    told = capsys.readouterr().err
    assert said in told, told


def test_a_remark_names_options(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "clicks.csv").write_text(NEWEST_FIRST, encoding="utf-8")
    assert main(["sessionize", str(tmp_path / "clicks.csv"), *COLUMNS]) == 0
    told = capsys.readouterr().err
    assert "--types at=string would set one" in told and "group_by_key" not in told


@pytest.mark.filterwarnings("always:column 'at' read as ms lies outside 1990 to 2100")
def test_a_warning_is_one_line_without_the_code_that_gave_it(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "clicks.csv").write_text("user,at\nada,1706544003\nada,1706544004\n", encoding="utf-8")
    out = ["--out", str(tmp_path / "out")]
    assert main(["report", str(tmp_path / "clicks.csv"), *COLUMNS, "--unit", "ms", *out]) == 0
    told = capsys.readouterr().err.splitlines()
    assert "column 'at' read as ms lies outside 1990 to 2100; as s it would not" in told
    assert not [line for line in told if "Warning" in line]
