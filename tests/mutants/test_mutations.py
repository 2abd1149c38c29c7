"""Which changes are tried, and that a change is that one place and nothing else."""

import ast
from pathlib import Path

import pytest

from tests.mutants.mutations import mutants_of

CODE = '''"""Words are left alone."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    SIZE = 1

LIMIT: int = 7


def é(a: int = 2, *, is_last: bool = True) -> int:
    """So are these: 1 < 2."""
    assert a < 3, "and what is always so"
    total = 0
    while a <= LIMIT and not is_last:
        total += min(a, 4) * 5 if a in (6,) else -a
        note(total)
        if total == 8:
            break
    raise ValueError(f"{total + 1} is too much")
'''
TRIED = {
    ("7", "8"), ("2", "3"), ("True", "False"), ("0", "1"), ("a <= LIMIT", "a < LIMIT"),
    ("a <= LIMIT and (not is_last)", "a <= LIMIT or not is_last"), ("not is_last", "is_last"),
    ("total += min(a, 4) * 5 if a in (6,) else -a", "total -= min(a, 4) * 5 if a in (6,) else -a"),
    ("min(a, 4) * 5 if a in (6,) else -a", "-a if a in (6,) else min(a, 4) * 5"), ("a in (6,)", "a not in (6,)"),
    ("6", "7"), ("min(a, 4) * 5", "min(a, 4) // 5"), ("min", "max"), ("4", "5"), ("5", "6"), ("-a", "a"),
    ("note(total)", "pass"), ("total == 8", "total != 8"), ("8", "9"), ("break", "continue"),
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def test_what_is_tried(file: Path) -> None:
    found = [(mutant.before, mutant.after) for mutant in mutants_of(file.parent, file)]
    assert {(ast.unparse(ast.parse(before)), after) for before, after in TRIED} == set(found)
    assert len(found) == len(set(found))


def test_a_change_is_one_place_and_nothing_else(file: Path) -> None:
    for mutant in mutants_of(file.parent, file):
        changed = ast.unparse(ast.parse(mutant.source(file.parent)))
        lines = [
            (one, other)
            for one, other in zip(ast.unparse(ast.parse(CODE)).splitlines(), changed.splitlines(), strict=True)
            if one != other
        ]
        assert len(lines) == 1, mutant.name
