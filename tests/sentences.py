"""Looks at every sentence that the tests make: no "1 records", and no 100 % of nothing."""

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import sessionkit
from sessionkit.errors import SessionkitError

# What texts go through: the doors to HTML, to charts and to errors.
DOORS = ("escape_html", "escape_label", "problem")
TELLING = ("words", "summary", "remarks", "facts", "line", "__repr__", "_repr_html_", "__str__")
_ONE = re.compile(r"(?<![\w.,:/^−–-])1 ([a-z]+s)\b(?! *=)")
_SINGULAR = {
    *("is", "was", "has", "does", "as", "its", "this", "less", "plus", "minus", "times", "always", "across", "stands"),
    *("ms", "ns", "us", "s"),  # units
}
_ALL_OF_NOTHING = re.compile(
    r"(?<![\d.,])0 (?!m?s\b|min\b|[hd]\b)[a-z]+s?\b[^.;]{0,30}\b100(?:\.0+)? ?%"
    r"|\b0 of 0\b(?!\.)|\b100(?:\.0+)? ?% of 0\b"
)

found: list[str] = []  # of the test that runs


def wrong_in(text: str) -> str:
    """What is wrong with a text; "" if nothing is.

    Example:
        >>> wrong_in("1 records"), wrong_in("1 record"), wrong_in("0 records, kept 100 %")
        ('1 records', '', '0 records, kept 100 %')
    """
    for match in _ONE.finditer(text):
        if match[1] not in _SINGULAR and not match[1].endswith("ss"):
            return match[0]
    nothing = _ALL_OF_NOTHING.search(text)
    return nothing[0] if nothing else ""


def look(text: object) -> None:
    for each in text if isinstance(text, list | tuple) else [text]:
        if isinstance(each, str) and (wrong := wrong_in(each)):
            found.append(f"{wrong!r} in {each[:300]!r}")


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def told(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        look(result)
        return result

    return told


def modules() -> Iterator[ModuleType]:
    """Those of the package that can be loaded here."""
    for found_module in pkgutil.walk_packages(sessionkit.__path__, "sessionkit."):
        if not found_module.name.endswith("__main__"):
            try:
                yield importlib.import_module(found_module.name)
            except ImportError:  # of a package that is not installed
                continue


def watch_all() -> None:
    """Has every text of the package looked at, from now on."""
    doors = {id(getattr(module, name)): name for module in modules() for name in DOORS if hasattr(module, name)}
    watched: dict[int, Callable[..., Any]] = {}
    for module in modules():
        for name in DOORS:
            function = getattr(module, name, None)
            if id(function) in doors and callable(function):
                setattr(module, name, watched.setdefault(id(function), _watched(function)))
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and not issubclass(kind, SessionkitError):
                for name in TELLING:
                    method = vars(kind).get(name)
                    if inspect.isfunction(method):
                        setattr(kind, name, _watched(method))
