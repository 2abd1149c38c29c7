"""Which tests run which lines, and how long each takes: from one run of the tests under coverage."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "mutants"
FOLDERS = ("windows", "stores", "aggregations", "engine", "trace")
# The tests of a folder: its own, and what holds all members of a registry to one contract and one law.
SHARED = ("tests/contract", "tests/property")
TESTS = {
    "windows": ("tests/unit/windows", *SHARED),
    "stores": ("tests/unit/stores", *SHARED),
    "aggregations": ("tests/unit/aggregations", *SHARED),
    "engine": ("tests/unit/engine", "tests/unit/audits", "tests/unit/trace", *SHARED),  # it is seen in what it makes
    "trace": ("tests/unit/trace", *SHARED),
}


class Tests(NamedTuple):
    """The tests that run each line of each file, and the seconds that each takes."""

    by_line: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def of(self, file: str, first_line: int, last_line: int) -> list[str]:
        """The tests of a file's folder that run one of these lines, those that are soon done first."""
        lines, folder = self.by_line.get(file, {}), file.split("/")[1]
        names = {name for line in range(first_line, last_line + 1) for name in lines.get(line, [])}
        if not names or "" in names:  # what runs as the module is loaded: any test may notice
            names |= {name for each in lines.values() for name in each}
        mine = (name for name in names if name.startswith(TESTS[folder]))
        return sorted(mine, key=lambda name: (self.seconds.get(name, 0.0), name))


class Clock:
    """A plugin of pytest that writes down how long each test took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.seconds and not hasattr(session.config, "workerinput"):
            (OUT / "seconds.json").write_text(json.dumps(self.seconds))


def run_tests_under_coverage(*options: str) -> int:
    """Runs all tests of the folders once, with loops as Python; the exit code of pytest."""
    OUT.mkdir(parents=True, exist_ok=True)
    folders = sorted({folder for each in TESTS.values() for folder in each})
    command = [
        *(sys.executable, "-m", "tests.mutants.tests_of_lines", "-p", "no:nbval", "-q", "-n", str(os.cpu_count() or 1)),
        *("--cov-context=test", *(f"--cov=sessionkit/{folder}" for folder in FOLDERS), *options, *folders),
    ]
    environment = {**os.environ, "SESSIONKIT_INTERPRETED": "1", "COVERAGE_FILE": str(OUT / "coverage")}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def read_tests() -> Tests:
    """What the last run under coverage found."""
    if not (OUT / "seconds.json").exists():
        assert run_tests_under_coverage("--cov-report=") == 0, "the tests fail without any change"
    data = coverage.CoverageData(str(OUT / "coverage"))
    data.read()
    by_line = {
        str(Path(file).relative_to(ROOT)): {
            line: [
                context.removesuffix("|run").removesuffix("|setup").removesuffix("|teardown") for context in contexts
            ]
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    return Tests(by_line, json.loads((OUT / "seconds.json").read_text()))


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:], plugins=[Clock()]))
