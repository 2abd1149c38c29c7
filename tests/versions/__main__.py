"""The tests with other versions than those of requirements.lock: `python -m tests.versions`.

For each environment uv resolves pyproject.toml and installs it in out/versions; then the tests run that such versions
can change. `--only 3.12` takes the environments whose name contains this; `kafka` and `resolve` are names, too. A
Python that is not installed is named and skipped. Exit status 1: a test failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.differential.oracle import KAFKA_VERSION, OLDER_VERSIONS
from tests.versions.environments import (
    ENVIRONMENTS,
    KAFKA_TESTS,
    LOCAL_TESTS,
    LOCKED,
    RESOLVED_ONLY,
    SPARK_TESTS,
    Environment,
)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out" / "versions"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = "sessionkit-streams"
FOR_TESTS = ("tutorials", "dev")  # no extras of a user's
UV = Path(sys.executable).with_name("uv")
LIMIT_S = 1200  # of one part: an environment that hangs must not keep the others waiting
SETTINGS = {"UV_HTTP_TIMEOUT": "120", "PYTHONDONTWRITEBYTECODE": ""}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.versions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only what has this in its name")
    wanted = parser.parse_args().only
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, str]] = []
    for environment in ENVIRONMENTS:
        if wanted in environment.name:
            rows += _results(environment)
    if wanted in "kafka":
        versions = " and ".join((KAFKA_VERSION, *OLDER_VERSIONS))
        tested = _tested(Path(sys.executable), KAFKA_TESTS, SESSIONKIT_VERSIONS="1", SESSIONKIT_CASES="all")
        rows.append((f"recorded answers, Kafka Streams {versions}", tested))
    for python in RESOLVED_ONLY:
        if wanted in "resolve":
            rows += [(f"Python {python}, only resolved: {extra}", said) for extra, said in _resolved(python)]
    width = max((len(what) for what, _ in rows), default=0)
    for what, result in rows:
        print(f"{what:{width}}  {result}")
    return int(any("fail" in result or "error" in result for _, result in rows))


def _results(environment: Environment) -> Iterator[tuple[str, str]]:
    """(what was run, how it went) for an environment."""
    is_locked = environment == LOCKED and sys.version_info[:2] == tuple(map(int, environment.python.split(".")))
    python = Path(sys.executable) if is_locked else _made(environment)
    if python is None:
        yield environment.name, f"skipped: there is no Python {environment.python} here"
        return
    code = "import pandas, platform, pyspark as s; print(platform.python_version(), pandas.__version__, s.__version__)"
    has = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    name = "Python {}, pandas {}, PySpark {}".format(*has)
    for what, tests in (("tables", LOCAL_TESTS), ("Spark", SPARK_TESTS)):
        print(f"{name}: {what}", flush=True)
        yield f"{name}: {what}", _tested(python, tests)


def _made(environment: Environment) -> Path | None:
    """The Python of an environment that has its versions, made where it is missing or pyproject.toml has changed."""
    folder = FOLDER / environment.name
    stamp, limits = folder / "made", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == limits:
        return folder / "bin" / "python"
    python = _python(environment.python)
    if python is None:
        return None
    print(f"making {folder.relative_to(ROOT)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _uv("venv", "--quiet", "--python", python, str(folder))
    chosen, packages = folder / "chosen.txt", folder / "packages.txt"
    chosen.write_text(f"pandas=={environment.pandas}.*\npyspark=={environment.pyspark}\n", encoding="utf-8")
    options = ("--quiet", "--all-extras", "--python-version", environment.python, "--constraint", str(chosen))
    _uv("pip", "compile", "pyproject.toml", *options, "--output-file", str(packages))
    into = ("--quiet", "--python", str(folder / "bin" / "python"))
    _uv("pip", "install", *into, "--requirement", str(packages))
    _uv("pip", "install", *into, "--no-deps", "--editable", ".")
    stamp.write_text(limits, encoding="utf-8")
    return folder / "bin" / "python"


def _python(version: str) -> str | None:
    """A Python of this version that starts: one on the path, or one of pyenv's, whose shims may not start."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for path in filter(None, found):
        done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if done.stdout.strip() == version:
            return path
    return None


def _tested(python: Path, tests: tuple[str, ...], **settings: str) -> str:
    """pytest's own summary, with the names of the tests that failed above it."""
    # pandas 2.3 with a newer numpy than it was made for, in each Timedelta
    quiet = ["-W", "ignore:The 'generic' unit for NumPy timedelta:DeprecationWarning"]
    command = [str(python), "-m", "pytest", "-p", "no:nbval", "-q", "-n", "2", "--dist", "loadgroup", "-rfE",
               "--tb=short", *quiet, *tests]  # fmt: skip
    env = {**os.environ, **SETTINGS, **settings}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"failed: not through after {LIMIT_S} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        print("\n".join(lines[-40:]), done.stderr[-2000:], file=sys.stderr, flush=True)
    said = re.sub(r" in .*", "", lines[-1]) if lines else ""
    return said if done.returncode == 0 else f"failed: {said}"


def _resolved(python: str) -> Iterator[tuple[str, str]]:
    """(an extra, which of its packages have no wheel for this Python); PySpark, which is Python alone, needs none."""
    needed = PROJECT["dependencies"]
    for extra, added in {"no extra": [], **PROJECT["optional-dependencies"]}.items():
        if extra in FOR_TESTS:
            continue
        own = [each for each in added if not each.startswith(OURS)]
        without = _without_wheels(python, [*needed, *own])
        if without and own:
            without = [each for each in own if _without_wheels(python, [*needed, each])]
        names = [re.split(r"[<>=\[]", each)[0] for each in without]
        print(f"Python {python}: {extra} {names}", flush=True)
        yield extra, f"no wheels: {', '.join(names)}" if names else "all packages have wheels"


def _without_wheels(python: str, requirements: list[str]) -> list[str]:
    """The requirements, if uv finds no set of wheels for them; else none."""
    command = [str(UV), "pip", "compile", "-", "--quiet", "--no-header", "--python-version", python]
    command += ["--only-binary", ":all:", "--no-binary", "pyspark"]
    done = subprocess.run(
        command, cwd=FOLDER, input="\n".join(requirements), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    return requirements if done.returncode else []


def _uv(*arguments: str) -> None:
    env = {**os.environ, **SETTINGS}
    subprocess.run([str(UV), *arguments], cwd=ROOT, env=env, check=True, timeout=LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
