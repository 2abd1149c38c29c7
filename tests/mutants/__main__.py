"""`python -m tests.mutants --sample 400`: changes the code in one place at a time and asks whether a test notices."""

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import random
import signal
import sys
import time
import tomllib
from collections.abc import Sequence
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType

import pytest

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.tests_of_lines import OUT, ROOT, Tests, read_tests, run_tests_under_coverage

FOLDERS = ("windows", "stores", "aggregations", "engine")
AT_ONCE = os.cpu_count() or 1
EQUAL = Path(__file__).with_name("equal.toml")
KILLED, ALIVE = "killed", "alive"
OPTIONS = [
    *("-x", "-q", "-p", "no:nbval", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # the second part finds what the first has loaded
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=400, help="how many of all mutants are tried")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--only", default="", help="only files whose path has this in it")
    parser.add_argument("--again", action="store_true", help="try those anew that were alive")
    parser.add_argument("--fresh", action="store_true", help="find anew which tests run which lines")
    chosen = parser.parse_args()
    if chosen.fresh:
        assert run_tests_under_coverage("--cov-report=") == 0, "the tests fail without any change"
    mutants = sampled(chosen.sample, chosen.seed, chosen.only)
    ledger = OUT / "results.jsonl"
    done = read_results(ledger)
    todo = [each for each in mutants if done.get(each.name) != KILLED and (chosen.again or each.name not in done)]
    if todo:
        _load_libraries()
        tests = read_tests()
        control = todo[0]._replace(after=todo[0].before)
        assert try_all([control], tests, Path(os.devnull))[control.name] == ALIVE, "the tests fail without any change"
        done |= try_all(todo, tests, ledger)
    tell(mutants, done)


def sampled(count: int, seed: int, only: str = "") -> list[Mutant]:
    """A sample of all mutants of the folders: the same for the same code and seed."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / "sessionkit" / folder).rglob("*.py"))]
    found = [each for file in files for each in mutants_of(ROOT, file) if only in each.file]
    return random.Random(seed).sample(found, min(count, len(found)))


def read_results(ledger: Path) -> dict[str, str]:
    """The mutants that were tried before, by name, and what became of them."""
    if not ledger.exists():
        return {}
    rows = (json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines())
    return {row["mutant"]: row["result"] for row in rows}


def try_all(mutants: Sequence[Mutant], tests: Tests, ledger: Path) -> dict[str, str]:
    """Tries each mutant in a process of its own, some at once, and writes down what became of it."""
    done, running, waiting = {}, dict[int, tuple[Mutant, float]](), list(mutants)
    with ledger.open("a", encoding="utf-8") as out:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                mutant = waiting.pop(0)
                names = tests.of(mutant.file, mutant.first_line, mutant.last_line)
                limit = 30 + 4 * sum(tests.seconds.get(name, 0.0) for name in names)
                running[_try_in_child(mutant, names)] = mutant, time.monotonic() + limit
            for child, (mutant, deadline) in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended and time.monotonic() > deadline:
                    os.killpg(child, signal.SIGKILL)
                    ended, status = os.waitpid(child, 0)
                if ended:
                    del running[child]
                    is_alive = os.WIFEXITED(status) and os.WEXITSTATUS(status) in (
                        pytest.ExitCode.OK,
                        pytest.ExitCode.NO_TESTS_COLLECTED,
                    )
                    done[mutant.name] = ALIVE if is_alive else KILLED
                    print(done[mutant.name], mutant.name, flush=True)
                    print(json.dumps({"mutant": mutant.name, "result": done[mutant.name]}), file=out, flush=True)
            time.sleep(0.02)
    return done


class Only:
    """A plugin of pytest that keeps these tests, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.place = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=lambda i: self.place[i.nodeid])


class Changed(importlib.abc.MetaPathFinder):
    """Finds the mutant's module with its change."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        file = str(ROOT / self.mutant.file)
        return spec_from_file_location(name, file, loader=ChangedLoader(name, file, self.mutant))


class ChangedLoader(importlib.machinery.SourceFileLoader):
    """Loads it, and keeps no bytecode of it."""

    def __init__(self, name: str, file: str, mutant: Mutant) -> None:
        super().__init__(name, file)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutant.source(ROOT), self.path, "exec")


def is_unit_test(name: str) -> bool:
    return name.startswith("tests/unit/")


def _try_in_child(mutant: Mutant, names: Sequence[str]) -> int:
    child = os.fork()
    if child:
        return child
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        sys.meta_path.insert(0, Changed(mutant))
        code = pytest.ExitCode.OK
        for part in (is_unit_test, lambda name: not is_unit_test(name)):  # most are killed by the first, soon collected
            chosen = [name for name in names if part(name)]
            if chosen and code == pytest.ExitCode.OK:
                files = sorted({name.partition("::")[0] for name in chosen})
                code = pytest.main([*OPTIONS, *files], plugins=[Only(chosen)])
    finally:
        os._exit(code)


def _load_libraries() -> None:
    """Once for all children; sessionkit itself each child loads with its change."""
    os.environ["SESSIONKIT_INTERPRETED"] = "1"
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import polars  # noqa: F401
    import pyarrow  # noqa: F401

    assert not any(name.partition(".")[0] == "sessionkit" for name in sys.modules)


def equal_mutants() -> dict[tuple[str, ...], str]:
    """Mutants that say the same as the code, by what stands in the line and in its place, each with its reason."""
    listed = tomllib.loads(EQUAL.read_text(encoding="utf-8")).get("equal", [])
    return {(each["file"], each["line"], each["before"], each["after"]): each["why"] for each in listed}


def content(mutant: Mutant) -> tuple[str, ...]:
    """What `equal.toml` knows a mutant by."""
    lines = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()
    return mutant.file, lines[mutant.first_line - 1].strip(), mutant.before, mutant.after


def tell(mutants: Sequence[Mutant], done: dict[str, str]) -> None:
    """Prints the survivors and the score."""
    equal = equal_mutants()
    alive = [each for each in mutants if done[each.name] == ALIVE]
    same = [each for each in alive if content(each) in equal]
    for each in sorted(set(alive) - set(same)):
        print("alive:", each.name)
    asked = len(mutants) - len(same)
    killed = sum(done[each.name] == KILLED for each in mutants)
    share = f"{killed / asked:.1%}" if asked else "none"
    print(f"{len(mutants):,} mutants, {len(same)} say the same as the code; {killed} of {asked} killed: {share}")


if __name__ == "__main__":
    main()
