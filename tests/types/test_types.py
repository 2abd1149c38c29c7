"""Type checkers know what each call gives and takes, with and without the libraries that are not always installed.

A line of the snippets that has a mistake is marked by `# type: ignore`. A checker says so where it finds none there.
"""

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page

SNIPPETS = Path(__file__).parent / "snippets"
OPTIONAL = ("polars", "pyspark")
OF_OPTIONAL = re.compile(f"^(from|import) ({'|'.join(OPTIONAL)})", re.MULTILINE)
pytestmark = [pytest.mark.slow, pytest.mark.checked]
CASES = [
    pytest.param((), id="as installed", marks=pytest.mark.essential),
    pytest.param(OPTIONAL, id="without polars and pyspark"),
]


@pytest.fixture(params=CASES)
def code(request: pytest.FixtureRequest) -> Path:
    """A folder with the code to check, and an environment that has all packages but some.

    It stays, with what mypy keeps there: a minute the first time, seconds from then on.
    """
    folder = ROOT / "out" / "types" / re.sub(r"\W+", "-", request.node.name)
    shutil.rmtree(folder / ".venv", ignore_errors=True)
    for left in folder.glob("*.py"):
        left.unlink()
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = folder.glob(".venv/lib/python*/site-packages")
    for package in Path(pytest.__file__).parents[1].iterdir():
        if package.is_dir() and not package.name.startswith(("sessionkit", *request.param)):
            (packages / package.name).symlink_to(package)
    (packages / "sessionkit").symlink_to(ROOT / "sessionkit")
    texts = {file.name: file.read_text(encoding="utf-8") for file in SNIPPETS.glob("*.py")}
    texts["readme.py"] = "\n".join(block.code for block in Page(ROOT / "README.md").blocks_in("python"))
    for name, text in texts.items():
        if not request.param or not OF_OPTIONAL.search(text):
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_mypy_finds_each_mistake_and_no_other(code: Path) -> None:
    files = sorted(file.name for file in code.glob("*.py"))
    assert {"readme.py", "right.py", "wrong.py"} <= {*files}
    python = f"--python-executable={code}/.venv/bin/python"
    assert _faults(code, "mypy", "--strict", "--config-file=", python, *files) == ""


def test_pyright_finds_each_mistake_and_no_other(code: Path) -> None:
    settings = {"typeCheckingMode": "standard", "include": ["*.py"], "venvPath": ".", "venv": ".venv"}
    settings |= {"reportUnnecessaryTypeIgnoreComment": "error"}
    (code / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    assert _faults(code, "basedpyright") == ""


def _faults(code: Path, *arguments: str) -> str:
    """What a checker says if it finds fault with the code."""
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=code, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
