"""The folders are the layers: a folder imports only from folders to its left, and nothing goes round in a circle."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sessionkit"

ORDER = (
    "errors < base < records < trace | stores < windows < aggregations < suppression < engine < deployed | exports "
    "< views < session_rules < steps < run < plan < advice < audits < spark < sessionize < other_sessions < widgets "
    "< report < cli < replay_source | __main__ | __init__"
)
PLACE = {name: place for place, names in enumerate(ORDER.split(" < ")) for name in names.split(" | ")}
# The two doors upward: `Plan.run` hands a Spark DataFrame to what knows Spark and loads it only then, and the registry
# of stores finds a kind of store by the name of its module.
DOORS = {("plan", "spark.batch_run"), ("stores.registry", "spark.checkpoint")}

MOST_FILES, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 14, 400, 60
FACES, MOST_LINES_OF_A_FACE = {"plan", "run", "spark.batch_run", "spark.stream_run"}, 1_000  # they only hand on
# The compiled session loop, one record's way from top to bottom; and a function with as many rules as people ask for,
# whose docstring says what each does: half of it.
LONG_FUNCTIONS = {"run_sessions", "sessionize"}

# Who alone may import a library.
HOMES = {
    "pyspark": "spark/",
    "ipywidgets": "widgets/",
    "anywidget": "widgets/",
    "plotly": ("views/drawing/", "views/plane/", "views/lanes/", "views/emissions/"),  # and files called figure
    "rocksdict": "stores/rocksdb/",
    "datasketches": "aggregations/",
    "typer": "cli/",
    "tqdm": "base/",
}
NEVER = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}

# A kind of window answers for itself; where it is asked for by name all the same, there are this many places.
KIND_QUESTIONS = 9
KINDS_OF_WINDOWS = {"SessionWindows", "TimeWindows", "CalendarWindows", "SlidingWindows", "SessionTrace", "WindowTrace"}


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name, without "sessionkit."; the package itself is "__init__"."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = file
    return found


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def folder(module: str) -> str:
    """The folder, or file, right below the package that a module is in."""
    return module.partition(".")[0]


def imported(node: ast.AST) -> Iterator[str]:
    """The full names of the modules that a statement may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(tree(file)))


@cache
def loaded(file: Path) -> list[ast.AST]:
    """The statements of a file that are carried out: all but those that only a type checker reads."""
    found: list[ast.AST] = [tree(file)]
    for node in found:  # which grows
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        found += node.orelse if for_types else ast.iter_child_nodes(node)
    return found


def named(node: ast.AST) -> Iterator[str]:
    """The full name of the module of the package that a text is: whoever writes it down may import it by that."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        first, _, rest = node.value.partition(".")
        if first == "sessionkit" and rest in modules():
            yield node.value


@cache
def ours(module: str) -> list[str]:
    """The modules of the package that a module imports, also inside functions, or by their names; not mere types."""
    found = []
    for node in loaded(modules()[module]):
        for name in (*imported(node), *named(node)):
            first, _, rest = name.partition(".")
            if first == "sessionkit":
                outside = rest.rpartition(".")[0]
                found.append(rest if rest in modules() else outside if outside in modules() else "__init__")
    return found


def test_the_order_of_the_folders_is_that_which_contributors_read() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = text[text.index("    errors < base") :].partition("\n\n")[0]
    assert " ".join(shown.split()) == ORDER


def test_every_folder_has_its_place() -> None:
    assert {folder(module) for module in modules()} == set(PLACE)


@pytest.mark.parametrize("name", sorted(PLACE))
def test_a_folder_imports_only_from_folders_to_its_left(name: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for module in modules()
        if folder(module) == name
        for other in ours(module)
        if folder(other) != name and PLACE[folder(other)] >= PLACE[name] and (module, other) not in DOORS
    ]
    assert wrong == []


def test_no_circle_inside_a_folder() -> None:
    seen: dict[str, bool] = {}  # False: on the way

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert seen.get(module, True), " → ".join((*way[way.index(module) :], module))
        if module in seen:
            return
        seen[module] = False
        for other in ours(module):
            if folder(other) == folder(module) and other != module:
                visit(other, (*way, module))
        seen[module] = True

    for module in modules():
        visit(module, ())


def test_folders_files_and_functions_stay_small() -> None:
    for place in {file.parent for file in modules().values()}:
        files = [file.name for file in place.glob("*.py") if file.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{place.name}: {len(files)} files"
    for module, file in modules().items():
        most = MOST_LINES_OF_A_FACE if module in FACES else MOST_LINES
        assert file.read_text(encoding="utf-8").count("\n") <= most, f"{module} is too long"
        for node in nodes(file):
            if isinstance(node, ast.FunctionDef) and node.name not in LONG_FUNCTIONS:
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= MOST_LINES_OF_A_FUNCTION, f"{module}.{node.name}: {lines} lines"


def packed(function: ast.AST) -> Iterator[str]:
    """Calls that are handed the parts of a tuple which the same function has packed."""
    tuples = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                tuples |= {
                    name.id for name, value in pairs if isinstance(name, ast.Name) and isinstance(value, ast.Tuple)
                }
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) != "zip":
            given = [part.value for part in node.args if isinstance(part, ast.Starred)]
            if any(isinstance(value, ast.Name) and value.id in tuples for value in given):
                yield f"{node.lineno} {ast.unparse(node)[:80]}"


def test_no_arguments_are_packed_into_a_tuple_to_be_splatted() -> None:
    found = {
        f"{name}:{call}"
        for name, file in modules().items()
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        for call in packed(node)
    }
    assert found == set()


def test_every_folder_says_its_idea_in_one_sentence() -> None:
    for module, file in modules().items():
        if file.name == "__init__.py":
            said = ast.get_docstring(tree(file)) or ""
            first = said.partition("\n\n")[0]
            assert first.endswith(".") and len(first) > 20, f"{module}: {first!r}"


def test_a_library_is_imported_only_where_it_is_at_home() -> None:
    for module, file in modules().items():
        place = file.relative_to(PACKAGE).as_posix()
        for node in loaded(file):
            for name in imported(node):
                library = name.partition(".")[0]
                assert library not in NEVER, f"{module} imports {library}"
                home = HOMES.get(library, "")
                is_home = place.startswith(home) or (library == "plotly" and "figure" in file.name)
                assert is_home, f"{module} imports {library}, which is for {home}"


def test_what_a_worker_of_spark_loads_is_in_its_folder() -> None:
    """Functions that are handed to Spark come along with what they import: `worker/`, `reading/` and what lies left."""
    for module in modules():
        if not module.startswith("spark.worker"):
            continue
        for other in ours(module):
            is_left = folder(other) != "spark"
            assert is_left or other.startswith(("spark.worker", "spark.reading")), f"{module} imports {other}"


def test_nothing_in_the_package_runs_code_from_data() -> None:
    for module, file in modules().items():
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), f"{module}:{node.lineno}"


def test_each_kind_has_one_late_rule() -> None:
    """A kind's processor asks `windows.is_late`, which asks the compiled rule; else only its kernel asks that one."""
    asked: dict[str, set[str]] = {}
    for module, file in modules().items():
        for node in nodes(file):
            if isinstance(node, ast.Call) and "is_late" in (name := ast.unparse(node.func).rpartition(".")[2]):
                asked.setdefault(name, set()).add(module)
    assert asked == {
        "is_late": {"windows.session", "windows.hopping", "windows.sliding.windows"},
        "session_is_late": {
            "windows.session",
            "windows.session_kernel",
            "deployed.compiled.cached_session_kernel",
            "audits.met_again",
        },
        "window_is_late": {"windows.hopping", "windows.hopping_kernel", "windows.hopping_by_slot"},
        "sliding_is_late": {"windows.sliding.windows"},
    }


def asks_for_a_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        named = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
        return bool(named & KINDS_OF_WINDOWS)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(isinstance(side, ast.Constant) and side.value in ("session", "sessions") for side in sides)
    return False


def test_a_kind_of_window_is_rarely_asked_for_by_name() -> None:
    places = [
        f"{module}:{getattr(node, 'lineno', 0)}"
        for module, file in modules().items()
        if folder(module) not in ("windows", "trace", "engine", "deployed")
        for node in nodes(file)
        if asks_for_a_kind(node)
    ]
    assert len(places) <= KIND_QUESTIONS, places
