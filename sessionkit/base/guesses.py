"""Names that people guess: which one exists for what they mean, or why there is none."""

from __future__ import annotations

import difflib
import inspect
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from sessionkit.base.assets import read_asset
from sessionkit.errors import NotOffered, UnknownName, problem

RULES_OF_SESSIONS = ("until", "max_length", "max_rows", "new_when", "starts_when", "ends_when", "new_at")
_AGGREGATIONS = "collect count_distinct earliest first last latest max mean median min std sum top"
_OWN = "sk.aggregation(…) and sk.reduce(…) take functions of your own, and dir(sk) lists the names"


@cache
def known() -> dict[str, Any]:
    """The tables of guesses.toml, which is read once a name or a call is wrong."""
    return tomllib.loads(read_asset("base/guesses.toml"))


def parameters_meant(name: str) -> list[str]:
    """The parameters that this one may stand for."""
    return _meant(name, known()["parameters"])


def needless(call: str, name: str) -> str | None:
    """Why a call, such as "plan.run", takes no parameter of this name, if there is more to say than its own names."""
    reason = _reason(name, known()["needless"].get(call, {}))
    return reason and reason.replace("NAME", name)


def unknown_name(owner: Any, shown: str, name: str, elsewhere: tuple[type, str] | None = None) -> AttributeError:
    """The error for a name that `owner`, which users write as `shown`, does not have.

    Args:
        elsewhere: a class whose objects may have it, and how one is written; where `owner` is known to lack it.
    Example:
        >>> print(unknown_name(plan, "plan", "windowed"))
        plan has no such name; got windowed; plan.windowed_by: The plan with these windows.
    """
    if name.startswith("_"):  # asked for by Python, copy, IPython and others
        return AttributeError(f"{shown} has no attribute {name!r}")
    offered = [each for each in dir(owner) if not each.startswith("_")]
    guessed = known()["meant"].get(shown, known()["meant"]["result"])
    meant = [each for each in _meant(name, guessed) if each in offered]
    near = meant or difflib.get_close_matches(name, offered, 1)
    there = ""
    if elsewhere is not None and name in [*dir(elsewhere[0]), *inspect.get_annotations(elsewhere[0])]:
        there = f"{elsewhere[1]}.{name}{_first_line(elsewhere[0], name)}"
    if reason := _reason(name, known()["lacks"].get(type(owner).__name__, {})):
        want = f"{there.removesuffix('.')}; {reason}" if there else reason
        return NotOffered(problem(f"{shown} has no such name", name, want))
    if shown == "plan" and name in _AGGREGATIONS.split():
        want = f'plan.aggregate({name}=sk.{name}("amount"))'
    elif there:
        want = there
    elif (reason := _reason(name, known()["without_counterpart"])) and not meant:
        want = reason
    elif near:
        kind = owner if hasattr(owner, "__path__") else type(owner)
        want = f"{shown}.{near[0]}{_first_line(kind, near[0])}"
    else:
        want = _OWN if shown == "sk" else f"dir({shown}) lists the names"
    return UnknownName(problem(f"{shown} has no such name", name, want))


def _meant(name: str, guesses: Mapping[str, str]) -> list[str]:
    return [each for each, others in guesses.items() if name in others.split()]


def _reason(name: str, reasons: Mapping[str, str]) -> str | None:
    return next((reason for names, reason in reasons.items() if name in names.split()), None)


def _first_line(kind: object, name: str) -> str:
    said = inspect.getdoc(getattr(kind, name)) if hasattr(kind, name) else None  # a field may have no value there
    return ": " + said.partition("\n")[0] if said else ""
