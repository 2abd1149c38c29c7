"""The public face: names, docstrings, examples that run, and nothing heavy when it is imported."""

import ast
import builtins
import contextlib
import doctest
import email
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.aggregations import BUILT_INS
from sessionkit.stores import store_class
from sessionkit.stores.contract import STORE_KINDS
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.explain.record import Explanation
from sessionkit.windows.contract import WINDOW_KINDS
from tests.kinds import flights_by_route

PACKAGE = Path(sk.__file__).parent
ROOT = PACKAGE.parent
OTHERS_NAME = r"sessionkit\[[a-z]|pip install [^\n]*sessionkit(?![-_]streams)"
FILES = sorted(PACKAGE.rglob("*.py"))
HEAVY = (
    "pyspark", "plotly", "ipywidgets", "IPython", "pandas", "polars", "duckdb", "matplotlib", "scipy", "hypothesis",
)  # fmt: skip
# What a user holds in hand without having imported it by name.
HANDED_OUT = (sk.Plan, sk.Run, sk.SessionWindows, MemorySessionStore, SessionTrace, Explanation)


# ---- names


def test_names_are_sorted_and_there() -> None:
    assert sk.__all__ == sorted(sk.__all__)
    assert all(hasattr(sk, name) for name in sk.__all__)
    mine = [name for name, value in vars(sk).items() if not name.startswith("_") and not isinstance(value, ModuleType)]
    assert sorted(mine) == sk.__all__


def test_the_distribution_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sessionkit` on the public index is another project: nothing here tells anyone to install that one."""
    from hatchling.build import prepare_metadata_for_build_wheel

    monkeypatch.chdir(ROOT)
    made = prepare_metadata_for_build_wheel(str(tmp_path))
    metadata = email.message_from_string((tmp_path / made / "METADATA").read_text(encoding="utf-8"))
    assert (metadata["Name"], metadata["Version"]) == ("sessionkit-streams", sk.__version__)
    requirements = metadata.get_all("Requires-Dist", [])
    assert [text for text in requirements if re.match(r"sessionkit(?!-streams\[)", text)] == []


@pytest.mark.slow
def test_whoever_is_told_to_install_it_is_told_the_right_name() -> None:
    told = []
    for folder, below, files in os.walk(ROOT):
        below[:] = [name for name in below if not name.startswith(".") and name != "out"]
        for file in (Path(folder, name) for name in files if name.endswith((".py", ".md", ".yml", ".toml", ".ipynb"))):
            if file != Path(__file__):
                told += [(file, found) for found in re.findall(OTHERS_NAME, file.read_text(encoding="utf-8"))]
    assert told == []


def test_what_is_registered_is_public() -> None:
    assert {kind.__name__ for kind in WINDOW_KINDS} <= set(sk.__all__)
    for kind in ("memory", "rocksdb"):
        for of in ("sessions", "windows"):
            assert STORE_KINDS[kind, of] is store_class(kind, of)
    assert set(BUILT_INS) <= set(sk.__all__)


def test_what_is_registered_is_there_before_anything_else_is_loaded() -> None:
    """Each part of the package is loaded when it is asked for: so a folder loads what registers itself in it."""
    asked = (
        "from sessionkit.aggregations import BUILT_INS; from sessionkit.windows import WINDOW_KINDS; "
        "print(*sorted(BUILT_INS), *sorted(kind.__name__ for kind in WINDOW_KINDS))"
    )
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kinds = ("CalendarWindows", "SessionWindows", "SlidingWindows", "TimeWindows")
    expected = [*sorted(set(BUILT_INS) & set(sk.__all__)), *kinds]
    assert said.split() == expected


def test_every_error_is_a_builtin_one_too() -> None:
    errors = [e for e in vars(sk.errors).values() if inspect.isclass(e) and issubclass(e, sk.errors.SessionkitError)]
    roots = {sk.errors.SessionkitError, sk.errors.StoreError}
    for error in errors:
        others = [base for base in error.__mro__ if base.__module__ == "builtins"]
        assert error in roots or len(others) > len(sk.errors.SessionkitError.__mro__) - 1, error


# ---- docstrings


@pytest.mark.parametrize("name", sk.__all__)
def test_every_public_name_says_what_it_gives_and_shows_it(name: str) -> None:
    text = inspect.getdoc(getattr(sk, name)) or ""
    assert text.splitlines()[0].endswith((".", '."', "`.")), "the first line says what it gives back"
    assert "Example:" in text
    assert ">>> " in text.partition("Example:")[2]


def _without_docstring(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node) and "overload" not in map(ast.unparse, node.decorator_list):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
                yield from _without_docstring(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(PACKAGE)) for file in FILES])
def test_modules_functions_classes_and_contracts_have_docstrings(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module says what it holds"
    assert list(_without_docstring(tree.body)) == []


@pytest.mark.parametrize("kind", HANDED_OUT)
def test_what_a_user_holds_explains_each_of_its_methods(kind: type) -> None:
    methods = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    silent = [
        name
        for name, value in methods.items()
        if (callable(value) or isinstance(value, property)) and not inspect.getdoc(value)
    ]
    assert silent == []


# ---- examples


def _modules() -> list[ModuleType]:
    names = [
        info.name for info in pkgutil.walk_packages([str(PACKAGE)], "sessionkit.") if not info.name.endswith("__main__")
    ]
    return [sk, *map(importlib.import_module, names)]


def _examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for module in _modules() for test in finder.find(module, module.__name__) if test.examples]


EXAMPLES = _examples()


@pytest.fixture
def names() -> dict[str, Any]:
    """What a notebook would hold: the names that examples may use."""
    times = pd.to_datetime(["2024-01-01 09:00:00", "2024-01-01 09:00:20", "2024-01-01 09:00:30"], utc=True)
    monday = pd.DataFrame(
        {"user": ["ada", "ada", "bob"], "at": times, "amount": [2.5, 3.0, 4.0], "page": ["home", "shop", "cart"]}
    )
    store = sk.open_store("memory", "clicks-store")
    store.put("ada", 5, 9, 2)
    return {
        "sk": sk,
        "plan": sk.group_by_key("user", timestamp="at")
        .windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))
        .count(),
        "monday": monday, "tuesday": monday.assign(at=times + pd.Timedelta(days=1)), "store": store,
        "flights": sk.load_sample("flights"),
        "waves": flights_by_route().windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count(),
    }  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_examples_run(
    example: doctest.DocTest, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())  # an example may choose a Java
    monkeypatch.chdir(tmp_path)  # some write a file
    own = {name: value for name, value in example.globs.items() if not hasattr(builtins, name)}
    example.globs = {**own, **names}
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append, clear_globs=False)
    assert not result.failed, "".join(said)


ELSEWHERE = {"sessionkit.plan.Plan.stream", "sessionkit.run.Run.write_png"}  # Spark, and a browser


def test_only_examples_that_need_spark_or_a_browser_are_left_out() -> None:
    left_out = {test.name for test in EXAMPLES for step in test.examples if step.options.get(doctest.SKIP)}
    assert {name.split(".")[1] for name in left_out - ELSEWHERE} <= {"spark", "widgets"}
    assert len(EXAMPLES) >= 35


# ---- what importing costs


def _loaded_by(code: str) -> list[str]:
    report = f"{code}\nimport sys\nprint(*sorted(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_importing_loads_nothing_heavy() -> None:
    assert [name for name in _loaded_by("import sessionkit") if name in HEAVY] == []


ARROW_RUN = """
import sessionkit as sk
windows = {}
plan = sk.group_by_key({}, timestamp="at", partition="p").windowed_by(windows)
named = dict(n=sk.count(), total=sk.sum("v"), typical=sk.mean("v"), most=sk.max("v"), newest=sk.last("w"))
run = plan.aggregate(**named).run({!r}, frame="arrow", trace={})
assert len(run.table())
"""
ITS_VIEWS = """
run.changelog(), run.dropped(), run.metrics(), run.losses(), run.explain(offset=0, partition=0)
run.trace.records(), run.trace.windows(), run.trace.where(reason="late"), repr(run), run._repr_html_()
"""


@pytest.mark.slow
@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("keys", ['"user"', '"user", "number", sep="@"', '"number"'])
@pytest.mark.parametrize("windows", [
    'sk.SessionWindows(inactivity_gap="1ms", grace="1ms")', 'sk.TimeWindows(size="2ms", grace="1ms")',
    'sk.SlidingWindows(time_difference="1ms", grace="1ms")',
])  # fmt: skip
def test_a_run_that_gives_arrow_tables_loads_little(windows: str, keys: str, trace: bool, tmp_path: Path) -> None:
    """From a file to its views: not even pandas, for which Arrow's own ways would look."""
    columns = {
        "user": ["ada", "bob", None, "ada", "ada"], "number": [1, 70_000, 3, 1, 1],
        "at": pa.array([1, 20, 3, 30, 2], pa.timestamp("ms", "UTC")), "p": [0, 0, 1, 0, 0],
        "v": [1.5, None, 2.5, 4.0, 5.0], "w": ["a", "b", None, "d", "e"],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path := str(tmp_path / "clicks.parquet"))
    code = ARROW_RUN.format(windows, keys, path, trace) + (ITS_VIEWS if trace else "")
    assert [name for name in _loaded_by(code) if name in HEAVY] == []


@pytest.mark.slow
def test_importing_prints_nothing_and_starts_nothing() -> None:
    code = "import sessionkit, threading; print(threading.active_count())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["pyspark", "ipywidgets", "polars", "duckdb", "rocksdict", "datasketches"])
def test_an_extra_that_is_not_installed_is_not_missed(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; import sessionkit as sk; print(len(sk.load_sample('flights')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.returncode) == ("28491\n", 0), done.stderr


# ---- code from data


@pytest.mark.thorough
def test_no_loader_that_runs_what_it_reads() -> None:
    """`tests/test_layers.py` bars the modules; these are the doors that others leave open."""
    forbidden = {"read_pickle", "to_pickle", "loads_pickle", "allow_pickle", "__import__", "globals", "getattr_static"}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            words = {getattr(node, "attr", None), getattr(node, "arg", None)}
            if isinstance(node, ast.Call):
                words.add(getattr(node.func, "id", None))
            with contextlib.suppress(TypeError):
                assert not forbidden & words, f"{file.name}:{getattr(node, 'lineno', 0)}"


# ---- what tab completion offers


def test_the_package_offers_its_public_names_alone() -> None:
    offered = [name for name in dir(sk) if not name.startswith("_")]
    assert set(offered) == {*sk.__all__, "aggregations", "errors", "stores", "windows"}
    assert all(hasattr(sk, name) for name in offered)


def test_a_plan_and_a_run_offer_what_users_call() -> None:
    plan = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size="1h", grace="0s")).count()
    run = plan.run(pa.table({"user": ["ada"], "at": [0]}), deployment=sk.Deployment.plain())
    for shown, offered in (
        (plan, {"run", "emit", "aggregate", "to_java", "with_windows", "windows"}),
        (run, {"table", "explain", "lanes", "trace", "timezone", "plan"}),
    ):
        assert offered <= set(dir(shown)) == set(object.__dir__(shown)), "nothing is hidden"
        for name in dir(shown):
            if not name.startswith("_"):
                member = getattr(shown, name)
                told = member if inspect.isroutine(member) else type(member)
                assert told.__module__.startswith("sessionkit"), f"help({name}) tells of {told}"
                assert inspect.getdoc(member), f"help({name}) says nothing"


# ---- words


def _pairs() -> list[tuple[str, str]]:
    """The pairs of the style page: a phrase that a reader stumbled over, and the plain one."""
    lines = (ROOT / "docs" / "style.md").read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ") and not line.startswith("| ---")]
    return [(before, after) for before, after in cells if before != "before"]


def test_what_the_style_page_mends_is_said_nowhere() -> None:
    assert len(_pairs()) >= 20
    places = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *PACKAGE.rglob("*.py")]
    places += [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "sessionkit").rglob("*.js")]
    for place in places:
        if place.name != "style.md":
            text = " ".join(place.read_text(encoding="utf-8").split())
            said = [before for before, _ in _pairs() if before.rstrip(".") in text]
            assert said == [], place
