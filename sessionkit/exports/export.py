"""`Export`: a plan as code for another system, with what differs there; `Target`: what such a system can take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.calls import answers_calls
from sessionkit.base.text import comment, escape_html, html_block
from sessionkit.errors import NotBuilt, problem, shorten
from sessionkit.suppression.settings import Suppression
from sessionkit.windows.contract import WindowKind

COMMENT_MARKS = {"java": "//", "ksql": "--", "flink_sql": "--", "spark": "#"}


@answers_calls("export")
@dataclass(frozen=True, repr=False, kw_only=True)
class Export:
    """A plan as code for another system; `print(export)` shows it with what differs there as comments on top.

    Args:
        target: "java", "ksql", "flink_sql" or "spark".
        code: the code alone.
        differences: sentences that say what the code assumes, and where its results differ from the plan's.
        plan: the plan, with one call per line.
    Example:
        >>> export = plan.to_ksql()
        >>> export.differences[0]
        'The key of each record of topic "input" is the text in column "user".'
    """

    target: str
    code: str
    differences: list[str]
    plan: tuple[str, ...]

    def __str__(self) -> str:
        mark = COMMENT_MARKS[self.target]
        lines = ["Written by sessionkit from this plan:", *(f"    {line}" for line in self.plan)]
        head = [comment(line, mark) for line in lines]
        notes = [comment(f"* {sentence}", mark) for sentence in self.differences]
        return "\n".join([*head, comment("What it assumes, and what differs:", mark), *notes, "", self.code])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in self.differences)
        return html_block(f"<ul>{notes}</ul><pre>{escape_html(self.code)}</pre>")


# what comes nearest to an aggregation that is not Kafka's
NEAREST = {"earliest": "sk.first, by arrival; or ", "latest": "sk.last, by arrival; or "}
NEAREST |= dict.fromkeys(
    ("count_distinct", "approx_count_distinct", "top", "median", "approx_median", "quantile", "approx_quantile", "std"),
    "sk.collect, out of whose list it can be worked out; or ",
)

W = TypeVar("W")
A = TypeVar("A")


@dataclass(frozen=True, kw_only=True)
class Target(Generic[W, A]):
    """Another system: what is written for each kind of window, by its class, and for each aggregation, by its name.

    `missing` names the kinds that Kafka has and it has not, each with what comes nearest; `suppresses` tells whether it
    can hold results back so, and `takes_offset` whether its windows can have an offset.
    """

    system: str
    kinds: Mapping[type, Callable[..., W]]
    aggregations: Mapping[str, A]
    missing: Mapping[type, tuple[str, str]] = field(default_factory=dict)
    suppresses: Callable[[Suppression], bool] = field(default=lambda suppression: False)
    takes_offset: bool = False

    def check(
        self,
        windows: WindowKind,
        aggregations: tuple[tuple[str, Aggregation], ...],
        suppression: Suppression | None = None,
    ) -> None:
        """Refuses windows, aggregations and a suppress that this export does not know."""
        kind = type(windows)
        if kind in self.missing:
            name, nearest = self.missing[kind]
            raise NotBuilt(problem(f"{self.system} has no {name} as Kafka has them", repr(windows), nearest))
        if kind not in self.kinds:
            _, nearest = windows.not_in_kafka or ("", " or ".join(sorted(each.__name__ for each in self.kinds)))
            raise NotBuilt(problem(f"windows of this kind cannot be written for {self.system}", repr(windows), nearest))
        if getattr(windows, "offset_ms", 0) and not self.takes_offset:
            want = "windows without one; plan.to_flink_sql() and plan.to_spark() write it"
            raise NotBuilt(problem(f"{self.system} has no windows with an offset", repr(windows), want))
        if suppression is not None and not self.suppresses(suppression):
            want = 'leave out suppress; .emit("on_window_close") sends final results'
            raise NotBuilt(problem(f"{self.system} has no such buffer", suppression.code(), want))
        for name, aggregation in aggregations:
            if aggregation.built_in not in self.aggregations:
                what = f"this aggregation cannot be written for {self.system}: result {shorten(repr(name))}"
                want = f"{NEAREST.get(aggregation.built_in, '')}one of {', '.join(self.aggregations)}"
                raise NotBuilt(problem(what, shorten(aggregation.code), want))

    def windows(self, windows: WindowKind, *more: Any) -> W:
        return self.kinds[type(windows)](windows, *more)

    def used(self, built_ins: Collection[str]) -> list[A]:
        """Entries of the table for these aggregations, each once, in the order of the table."""
        return [each for name, each in self.aggregations.items() if name in built_ins]
