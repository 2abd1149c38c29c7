"""What users meet as they call: which names are offered, what answers a wrong call, and where a warning points to."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sessionkit.errors import InvalidArgument, problem

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def called_as(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function refuse arguments that it does not take with `example`, a call that is right.

    Python's own TypeError says what is wrong, by the name of the function inside, and not what would be right.

    Raises:
        InvalidArgument: by the function so made; a TypeError from inside it stays what it is.
    Example:
        >>> @called_as("f(x=3)")
        ... def f(*, x): ...
        >>> f(3)
        Traceback (most recent call last):
        sessionkit.errors.InvalidArgument: f cannot be called like this; got too many positional arguments; f(x=3)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise  # it was called, and failed inside
                name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
                raise InvalidArgument(
                    problem(f"{name} cannot be called like this", _wrong(function, args, kwargs), example)
                ) from None

        return call

    return decorate


def _wrong(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return "arguments that it does not take"


def not_offered(*names: str) -> Callable[[C], C]:
    """Leaves out of `dir()` of a class's objects, and so of what tab completion offers, what only our own code uses.

    Example:
        >>> "run_batch" in dir(plan), hasattr(plan, "run_batch")
        (False, True)
    """

    def decorate(kind: C) -> C:
        inherited: Any = kind.__dir__  # of the class, so that it takes the object

        def offered(self: object) -> Iterable[str]:
            return [name for name in inherited(self) if name not in names]

        kind.__dir__ = offered  # type: ignore[assignment]
        return kind

    return decorate


def level_of_user() -> int:
    """The `stacklevel` with which a function that warns points to the user's own line."""
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level
