"""A module imports only from layers below its own: the table is the structure, and this test holds the code to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sessionkit"

# From the ground up. Members of one layer do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("text",),
    ("errors", "assets", "compiled", "decisions", "exports", "views", "windows"),
    ("plain_columns",),
    ("checkpoint_damage",),
    (
        *(
            "durations",
            "packing",
            "spark_worker",
            "columns",
            "fold_loops",
            "contracts",
            "keys",
            "parquet_files",
            "frames",
            "text_files",
            "spark_types",
            "java",
            "typed",
        ),
        *(
            "views.charts.palettes",
            "stores.binding",
            "stores.byte_loops",
            "stores.read_only",
            "stores.strict",
            "stores.logs",
            "stores.sharing",
            "exports.export",
            "exports.java_parts",
            "windows.cells",
            "windows.blocks",
        ),
    ),
    (
        "files",
        "parquet_layout",
        "results",
        "samples",
        "stores.rows",
        "stores.folder",
        "stores.shown",
        "touch_loops",
        "windows.emission",
        "windows.touches",
    ),
    (
        *("aggregations", "partitioner", "pieces", "source", "views.html"),
        *("stores.columns", "stores.codec", "stores.named_cache", "stores.segments"),
    ),
    ("stores.cache", "stores.in_memory", "stores.database", "stores.chunks", "windows.sliding_places"),
    (
        *("shared_files", "stores.cached_windows", "stores.memory", "stores.memory_windows"),
        *("stores.scan", "windows.sliding_steps"),
    ),
    ("stores.column_codec", "stores.persistent", "windows.sliding_kernel"),
    ("stores.bulk", "windows.sliding_folds"),
    ("stores.rocksdb", "stores.rocksdb_windows"),
    ("spark_store",),
    ("times", "stores", "stores.forgetting"),
    ("records",),
    ("trace", "replay_source"),
    ("session_trace", "window_trace", "window_columns", "views.charts.rows"),
    ("windows.sliding_running", "windows.sliding_touches"),
    ("accumulators", "windows.sliding_run"),
    ("folds", "windows.session_kernel", "windows.timed_kernel", "views.charts.history"),
    ("windows.session", "windows.sliding", "windows.timed"),
    ("views.charts.window_history",),
    ("views.charts.board",),
    ("engine", "grace", "recording", "deploying"),
    ("commit", "processing", "views.explain", "window_engine"),
    ("views.tables", "views.charts.grammar", "views.explain_windows", "views.explain_life"),
    ("views.audit_words", "views.kafka_metrics"),
    ("step_views",),
    ("steps", "spark_scan", "views.charts.labels"),
    ("by_key", "key_grace"),
    ("views.charts.base", "views.charts.playback", "views.charts.plain"),
    ("views.charts.audit", "views.charts.choosing", "views.charts.held", "views.charts.lineage"),
    (
        *("views.charts.scene", "views.charts.window_scene", "views.charts.plane_words"),
        *("views.charts.parts", "views.charts.lane_parts", "views.charts.emission_part"),
    ),
    ("views.charts.lane_words", "views.charts.lane_density", "views.charts.emission_scene"),
    (
        "views.charts.session_plane",
        "views.charts.session_lanes",
        "views.charts.window_plane",
        "views.charts.window_lanes",
    ),
    ("views.charts.plane", "views.charts.lanes"),
    ("views.charts",),
    ("views.charts.comparison", "views.charts.over_time", "views.charts.emissions"),
    ("comparing", "views.lineage", "views.over_time", "views.emissions", "parts"),
    ("run",),
    ("exports.request",),
    ("exports.java", "exports.ksql", "exports.flink", "exports.spark"),
    ("exports.methods",),
    ("plan", "sent_results", "retentions"),
    ("replaying", "noticing"),
    ("progress", "spark_input", "spark_state", "views.charts.watched"),
    ("listening", "stream_folders"),
    ("streaming", "spark_reading"),
    ("spark", "auditing", "choosing", "sweeping"),
    ("tuning", "kafka"),
    ("watching", "widgets.parts"),
    ("widgets.run_views", "widgets.player", "widgets.store_browser", "widgets.watch_board"),
    ("widgets.tune_board",),
    ("widgets",),
    ("",),
    ("report_page",),
    ("report",),
    ("__main__",),
)
PLACE = {module: height for height, layer in enumerate(LAYERS) for module in layer}
# `Plan.run` hands a Spark DataFrame to the module that knows Spark, and loads it only then.
UPWARD = {("plan", "spark")}


@cache
def _modules() -> dict[str, Path]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _imports(file: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, also inside functions."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sessionkit":
            base = (node.module or "").removeprefix("sessionkit").lstrip(".")
            for alias in node.names:
                member = f"{base}.{alias.name}".lstrip(".")
                yield member if member in modules else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "sessionkit":
                    yield alias.name.removeprefix("sessionkit").lstrip(".")


def test_every_module_has_its_place() -> None:
    assert sorted(_modules()) == sorted(PLACE)


@pytest.mark.parametrize("module", sorted(_modules()))
def test_imports_go_down(module: str) -> None:
    modules = _modules()
    for imported in _imports(modules[module], modules):
        if (module, imported) not in UPWARD:
            assert PLACE[imported] < PLACE[module], f"{module or 'sessionkit'} imports {imported or 'sessionkit'}"


def test_files_and_functions_stay_short() -> None:
    long_functions = {"run_sessions"}  # the compiled session loop: one record's way from top to bottom
    for module, file in _modules().items():
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, f"{module}: more than 400 lines"
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.FunctionDef) and node.name not in long_functions:
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= 60, f"{module}.{node.name}: {lines} lines"


def test_nothing_in_the_package_runs_code_from_data() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    for module, file in _modules().items():
        for node in ast.walk(_tree(file)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not forbidden & {name.partition(".")[0] for name in names}, module
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), f"{module}:{node.lineno}"


def test_a_late_session_record_is_dropped_in_one_place() -> None:
    """Only `session_is_late` compares with the close time to drop a record; processor and kernel both call it."""
    callers = {
        module
        for module, file in _modules().items()
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "session_is_late"
    }
    assert callers == {"windows.session", "windows.session_kernel"}
