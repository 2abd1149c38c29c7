"""The exercises of the notebooks: each has a hidden solution, and its check says that the solution is right."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.test_notebooks import TUTORIALS, read

QUESTION = re.compile(r"^(\w+) = None  # your answer, ", re.MULTILINE)
SOLUTION = re.compile(r"<details>\n<summary>Solution</summary>.*?```python\n(.*?)```\n\n</details>", re.DOTALL)
UNANSWERED = "not answered yet"
QUICK = "01_three_late_records"  # the others take seconds each
WITH_SPARK = "12_streams"


def of_kind(path: Path) -> object:
    """The notebook as a parameter, marked by what it needs."""
    marks = () if path.stem == QUICK else (pytest.mark.slow,)
    if path.stem == WITH_SPARK:
        marks = (*marks, pytest.mark.spark)
    return pytest.param(path, id=path.stem, marks=marks)


@cache
def exercises(path: Path) -> list[tuple[int, str, str]]:
    """Each exercise as the number of its cell, the name of its answer, and the code of its solution."""
    cells, found = read(path).cells, []
    for number, cell in enumerate(cells):
        asked = QUESTION.search(cell.source) if cell.cell_type == "code" else None
        if asked:
            solution = SOLUTION.search(cells[number + 2].source)
            assert solution, f"no solution behind {asked[1]}"
            found.append((number, asked[1], solution[1]))
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
class TestEach:
    def test_it_has_one_or_two_exercises_with_a_check_and_a_hidden_solution(self, path: Path) -> None:
        assert 1 <= len(exercises(path)) <= 2
        for number, name, solution in exercises(path):
            check = read(path).cells[number + 1]
            assert check.source.startswith(f'if {name} is None:\n    print("{UNANSWERED}")\nelse:\n')
            assert re.search(rf"^{name} = ", solution, re.MULTILINE)

    def test_as_saved_no_answer_is_given(self, path: Path) -> None:
        for number, _, _ in exercises(path):
            outputs = read(path).cells[number + 1].outputs
            assert "".join(output.text for output in outputs) == f"{UNANSWERED}\n"


@pytest.mark.parametrize("path", [of_kind(path) for path in TUTORIALS])
def test_with_its_solutions_the_checks_say_right(path: Path, tmp_path: Path) -> None:
    solutions = {number: solution for number, _, solution in exercises(path)}
    lines = []
    for number, cell in enumerate(read(path).cells):
        if cell.cell_type == "code":
            lines.append(solutions.get(number, cell.source))
        if number - 1 in solutions:
            lines[-1] = f'print("exercise")\n{lines[-1]}\nprint("checked")'
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(lines), encoding="utf-8")
    environment = {**os.environ, "TQDM_DISABLE": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        cwd=path.parent,  # as Jupyter does
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    said = re.findall(r"^exercise\n(.*?)\nchecked$", done.stdout, re.MULTILINE | re.DOTALL)
    assert said == ["right"] * len(solutions)
