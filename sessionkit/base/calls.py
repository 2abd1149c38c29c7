"""What users meet as they call: which names are offered, what answers a wrong call, and where a warning points to."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sessionkit.errors import InvalidArgument, problem

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def called_as(example: str = "", *, owner: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function refuse arguments that it does not take with `example`, a call that is right.

    Python's own TypeError says what is wrong, by the name of the function inside, and not what would be right.

    Args:
        owner: what a method's object is called where the example is made from the method's signature.
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
            except TypeError:
                got = _wrong(function, args, kwargs)
                if got is None:
                    raise  # it was called, and failed inside
                name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
                want = example or _example(owner, function)
                raise InvalidArgument(problem(f"{name} cannot be called like this", got, want)) from None

        call.answers = True  # type: ignore[attr-defined]
        return call

    return decorate


def answers_calls(owner: str) -> Callable[[C], C]:
    """Makes every public method of a class refuse wrong arguments as `called_as` does, where it does not yet.

    Example:
        >>> @answers_calls("a")
        ... class A:
        ...     def f(self): ...
        >>> A().f(3)
        Traceback (most recent call last):
        sessionkit.errors.InvalidArgument: A.f cannot be called like this; got too many positional arguments; a.f()
    """

    def decorate(kind: C) -> C:
        for name, method in {k: v for base in reversed(kind.__mro__) for k, v in vars(base).items()}.items():
            if not name.startswith("_") and inspect.isfunction(method) and not hasattr(method, "answers"):
                setattr(kind, name, called_as(owner=owner)(method))
        return kind

    return decorate


def _example(owner: str, method: Callable[..., object]) -> str:
    """A call of a method with all its arguments, each as it is by default."""
    given = []
    for name, each in [*inspect.signature(method).parameters.items()][1:]:
        if each.default is not each.empty:
            given.append(f"{name}={json.dumps(each.default) if isinstance(each.default, str) else each.default}")
        elif each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            given.append(f"{name}={name}" if each.kind == each.KEYWORD_ONLY else name)
    return f"{owner}.{method.__name__}({', '.join(given)})"


def _wrong(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> str | None:
    """Python's words for arguments that a function does not take, as they follow on "got"; None if it takes them."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return re.sub(r"^missing a required (\S+ )?argument:", "no argument", str(error).removeprefix("got "))
    return None


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
