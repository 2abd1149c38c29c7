"""docs/functions.md: every public function with its signature, what it gives and an example, out of docstrings."""

import inspect
import textwrap
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import sessionkit as sk
from sessionkit.advice.kinds import Kinds
from sessionkit.advice.suggest import GapSuggestion, GraceSuggestion
from sessionkit.advice.sweep import Cell, Sweep
from sessionkit.other_sessions.compare import SessionComparison
from sessionkit.spark.batch_run import SparkRun
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.views.summaries import SparkAudit
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from sessionkit.trace.written_trace import WrittenTrace
from sessionkit.views.comparison.comparison import Comparison
from sessionkit.views.drawing.palettes import Options
from sessionkit.views.drop_calendar.drop_calendar import DropCalendar
from sessionkit.views.emissions.emissions import Emissions
from sessionkit.views.explain.clock import Clock
from sessionkit.views.explain.record import Explanation
from sessionkit.views.key_steps import Steps
from sessionkit.views.lineage.lineage import Lineage
from sessionkit.views.over_time.over_time import Latency, OpenWindows
from sessionkit.views.partition_times import PartitionTimes
from tests.docs.pages import ROOT
from tests.public_api import _function, _signature, _type

PAGE = ROOT / "docs" / "functions.md"
# Each section with what is in it. A class comes with its methods if they are named by what a variable of it is called.
SECTIONS: dict[str, list[tuple[Any, str]]] = {
    "Which session does a row belong to": [(sk.sessionize, "")],
    "Plans": [(sk.group_by_key, ""), (sk.Plan, "plan")],
    "Windows": [(sk.SessionWindows, ""), (sk.TimeWindows, ""), (sk.CalendarWindows, ""), (sk.SlidingWindows, "")],
    "Aggregations": [
        (getattr(sk, name), "")
        for name in (
            *("count", "sum", "mean", "min", "max", "first", "last", "earliest", "latest", "count_distinct"),
            *("top", "median", "quantile", "std", "collect", "reduce", "aggregation"),
        )
    ],
    "Runs": [
        (sk.Run, "run"), (Explanation, "explanation"), (Steps, "steps"), (Lineage, "lineage"),
        (Emissions, "emissions"),
        (Latency, "latency"), (OpenWindows, "open_windows"), (DropCalendar, "drops"), (Clock, "clock"),
        (PartitionTimes, "times"), (Comparison, "comparison"), (sk.Written, "written"),
        (sk.open_trace, ""), (WrittenTrace, "trace"),
    ],
    "Deployments and audits": [
        (sk.Deployment, "deployment"),
        (sk.audit, ""),
        (sk.Audit, "audit"),
        (sk.SuppressAudit, "audit"),
    ],
    "Choosing a gap and a grace": [
        (sk.suggest_gap, ""), (GapSuggestion, "suggestion"), (sk.suggest_grace, ""), (GraceSuggestion, "suggestion"),
        (sk.sweep, ""), (Sweep, "sweep"), (Cell, "cell"),
    ],
    "Sessions of another tool": [(sk.compare_sessions, ""), (SessionComparison, "compared")],
    "Kinds of windows beside each other": [(sk.kinds, ""), (Kinds, "kinds")],
    "Stores": [(sk.open_store, ""), (MemorySessionStore, "store"), (MemoryWindowStore, "store"), (sk.read_state, "")],
    "Pictures": [(Options, "sk.options")],
    "Boards": [(sk.tune, ""), (sk.play, ""), (sk.browse, ""), (sk.watch, "")],
    "Exports": [(sk.Export, "export")],
    "Spark and Kafka": [
        (SparkRun, "run"), (StreamRun, "run"), (SparkAudit, "audit"), (sk.from_kafka, ""), (sk.to_kafka, ""),
    ],
    "More": [(sk.load_sample, ""), (sk.partition_for, "")],
}  # fmt: skip
# What a plan calls on a store, and a user does not.
INSIDE = {
    *("all_or_nothing", "bind", "check_names", "check_windows", "commit", "commit_snapshots", "facts", "load"),
    *("fetch_step_by_step", "fetch_to_update", "partitions", "write"),
}
HEAD = """# Every public function

This page is made from the docstrings (`make docs`). `help(sk.sessionize)` shows more: the arguments, the errors that \
are raised, and where a rule comes from. In the examples `monday` is a frame with the columns `user`, `at`, `amount` \
and `page`, `flights` is `sk.load_sample("flights")`, and `plan` and `waves` are plans over them; the tests run every \
example that does not need Spark. Errors are in `sk.errors`; each is also the builtin one that fits. What windows, \
stores and aggregations of your own need is in [extending](extending.md).
"""


def text() -> str:
    parts = [HEAD]
    for title, entries in SECTIONS.items():
        parts.append(f"## {title}\n")
        for entry, variable in entries:
            parts += _entry(entry, variable)
    return "\n".join(parts)


def _entry(entry: Any, variable: str) -> Iterator[str]:
    is_public = getattr(sk, entry.__name__, None) is entry
    yield f"### {'sk.' if is_public else ''}{entry.__name__}\n"
    if not inspect.isclass(entry):
        yield _code(f"sk.{entry.__name__}{_signature(entry)}")
    elif not variable:
        yield _code(f"sk.{entry.__name__}{_signature(entry.__init__, bound=True)}")
    yield from _told(entry)
    for name in members(entry) if variable else ():
        value = inspect.getattr_static(entry, name)
        yield f"#### {variable}.{name}{'' if is_function(value) else ' (a value)'}\n"
        if is_function(value):
            yield _code(f"{variable}.{name}{_signature(getattr(value, '__func__', value), bound=True)}")
        else:
            getter = value.fget if isinstance(value, property) else value.func
            kind = _type(_function(getter).__annotations__["return"])
            yield f"It is read as it stands, without parentheses: `{kind}`.\n"
        yield from _told(getattr(entry, name), entry.__name__)


def _told(value: Any, of_class: str = "") -> Iterator[str]:
    yield f"{first_sentence(value)}\n"
    if example := example_of(value):
        yield f"```pycon\n{example}\n```\n"
    elif of_class:
        yield f"It is in the example of `{of_class}`.\n"


def _code(text: str) -> str:
    return f"```text\n{textwrap.fill(text, 110, subsequent_indent='    ', break_long_words=False)}\n```\n"


def members(kind: type) -> list[str]:
    """The public methods and computed values that an object of a class offers, without what it inherits from others."""
    offered = {name for name in kind.__dir__(kind.__new__(kind)) if not name.startswith("_")}
    if kind in (MemorySessionStore, MemoryWindowStore):
        offered -= INSIDE
    found = {name: inspect.getattr_static(kind, name, None) for name in sorted(offered)}
    return [name for name, value in found.items() if _is_ours(value) and (is_function(value) or _is_computed(value))]


def is_function(value: Any) -> bool:
    """Whether it is called, rather than read; not where it only says what to call instead."""
    if inspect.isfunction(value):
        return _type(value.__annotations__.get("return", "")) != "NoReturn"
    return isinstance(value, classmethod | staticmethod)


def _is_computed(value: Any) -> bool:
    return isinstance(value, property | cached_property)


def _is_ours(value: Any) -> bool:
    function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
    return str(getattr(function, "__module__", "")).startswith("sessionkit")


def first_sentence(value: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def example_of(value: Any) -> str:
    """The example of a docstring, as it would be typed."""
    lines = (inspect.getdoc(value) or "").partition("Example:\n")[2].splitlines()
    end = next((at for at, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip().replace("  # doctest: +SKIP", "")


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")
