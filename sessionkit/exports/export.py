"""`Export`: a plan as code for another system, with what differs there."""

from __future__ import annotations

from dataclasses import dataclass

from sessionkit.base.calls import answers_calls
from sessionkit.base.text import comment, escape_html, html_block

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
        told = [comment(f"* {sentence}", mark) for sentence in self.differences]
        return "\n".join([*head, comment("What it assumes, and what differs:", mark), *told, "", self.code])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        told = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in self.differences)
        return html_block(f"<ul>{told}</ul><pre>{escape_html(self.code)}</pre>")
