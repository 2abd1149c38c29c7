"""A call that a function does not take is answered with one that it does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sessionkit.errors import InvalidArgument, problem

P = ParamSpec("P")
R = TypeVar("R")


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
