"""What users meet as they call: what answers a wrong call, and where a warning points to."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from sessionkit.base.guesses import needless, parameters_meant, unknown_name
from sessionkit.errors import InvalidArgument, problem, shorten

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def called_as(
    example: str = "", *, owner: str = "", hands_on_to: Callable[..., object] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function refuse arguments that it does not take with `example`, a call that is right.

    Python's own TypeError says what is wrong, by the name of the function inside, and not what would be right. An error
    from inside is answered, too, where an argument is not of the type that the function says.

    Args:
        owner: what a method's object is called where the example is made from the method's signature.
        hands_on_to: what takes the `**options` of the function; a call is then checked before the function begins.
    Raises:
        InvalidArgument: by the function so made; any other error from inside it stays what it is.
    Example:
        >>> @called_as("f(x=3)")
        ... def f(*, x): ...
        >>> f(3)
        Traceback (most recent call last):
        sessionkit.errors.InvalidArgument: f cannot be called like this; got too many positional arguments; f(x=3)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if hands_on_to is not None:
            own, more = inspect.signature(function), inspect.signature(hands_on_to).parameters
            every = {**more, **{name: each for name, each in own.parameters.items() if each.kind not in _MANY}}
            function.__signature__ = own.replace(parameters=[*every.values()])  # type: ignore[attr-defined]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if hands_on_to is not None and (answer := refusal(function, args, kwargs, owner, example)):
                raise answer
            try:
                return function(*args, **kwargs)
            except Exception as error:
                says_it = isinstance(error, InvalidArgument) and not error.__suppress_context__  # of a call inside
                answer = None if says_it else refusal(function, args, kwargs, owner, example)
                if answer is None:
                    raise  # it was called as it should be, and failed inside
                raise answer from None

        call.answers = True  # type: ignore[attr-defined]
        return call

    return decorate


def refusal(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, Any], owner: str, example: str = ""
) -> InvalidArgument | None:
    """The error for arguments that a function does not take, by name, number or type; None if it takes them."""
    signature, right = inspect.signature(function), example or _example(owner, function)
    name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
    owned = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else None
    name = f"{owned.__name__}.{function.__name__}" if "." in name and owned else name
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        got = re.sub(r"^missing a required (\S+ )?argument:", "no argument", str(error).removeprefix("got "))
        right = _with_names(right, signature, kwargs)
        return InvalidArgument(problem(f"{name} cannot be called like this", got, right))
    for each in signature.parameters.values():
        kinds = [kind.partition("[")[0] for kind in str(each.annotation).split(" | ")]
        if each.name not in bound or each.kind in _MANY or not all(kind in _KINDS for kind in kinds):
            continue
        value = bound[each.name]
        if not any(_KINDS[kind][0](value) for kind in kinds):
            wanted = " or ".join(dict.fromkeys(_KINDS[kind][1] for kind in kinds if kind != "None"))
            got = f"{type(value).__name__} {shorten(repr(value))}"
            return InvalidArgument(problem(f"{name} takes {wanted} as {each.name}", got, right))
    return None


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# For each annotation of a parameter: whether a value fits it, and the words for such a value.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "None": (lambda value: value is None, ""),
    "bool": (lambda value: type(value).__name__ in ("bool", "bool_"), "True or False"),
    "int": (lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    "str": (lambda value: isinstance(value, str), "text"),
    "Path": (lambda value: isinstance(value, os.PathLike), "a path"),
    "os.PathLike": (lambda value: isinstance(value, os.PathLike), "a path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "a dict"),
    "Run": (lambda value: type(value).__name__ == "Run", "a run in this process"),
}


def _with_names(right: str, signature: inspect.Signature, given: Iterable[str]) -> str:
    """The example `right`, with the parameter nearest to an unknown name, or with all parameters if none is near."""
    names = {name: each for name, each in signature.parameters.items() if each.kind not in _MANY and name != "self"}
    lacking = [name for name, each in names.items() if each.default is each.empty and name not in given]
    for wrong in (name for name in given if name not in names):
        if reason := needless(right.partition("(")[0], wrong):
            return f"{right}; {reason}"
        near = [name for name in parameters_meant(wrong) if name in names]
        near = near or difflib.get_close_matches(wrong, lacking, 1) or difflib.get_close_matches(wrong, names, 1)
        if near:
            return f"{near[0]}= is the nearest name: {right}"
        return right if all(name in right for name in names) else f"{right}; it takes {', '.join(names)}"
    return right


def answers_calls(
    owner: str, *, guesses: bool = True, elsewhere: tuple[type, str] | None = None, value_of: str = ""
) -> Callable[[C], C]:
    """Makes every public method of a class refuse wrong arguments as `called_as` does, where it does not yet.

    With `guesses` its objects, which users write as `owner`, answer a name that they lack with the one that is meant
    (or with where it is, as `unknown_name` does), and `owner["x"]` and a loop over it with its table. A class whose
    objects are an attribute, `value_of.owner`, answers `value_of.owner()`.

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

        if value_of:
            name, answers = f"{value_of}.{owner}", cast("Any", kind)

            def refuse(self: object, *args: object, **kwargs: object) -> Any:
                raise InvalidArgument(problem(f"{name} is a value, not a method", f"{name}()", name))

            answers.__call__ = refuse
        return answers_names(owner, elsewhere)(kind) if guesses else kind

    return decorate


def answers_names(owner: str, elsewhere: tuple[type, str] | None = None) -> Callable[[C], C]:
    """Makes objects answer names that they lack (see `unknown_name`), and `owner["x"]` and loops with their table."""

    def decorate(kind: C) -> C:
        def missing(self: object, name: str) -> Any:
            raise unknown_name(self, owner, name, elsewhere)

        def item(self: object, key: object) -> Any:
            what, want = ("table", "table() is one") if hasattr(self, "table") else ("text", "code is one")
            raise InvalidArgument(problem(f"{owner} is no {what}", f"{owner}[{key!r}]", f"{owner}.{want}"))

        answers: Any = kind  # so that a checker of types still refuses what they answer
        answers.__getattr__ = missing
        if hasattr(kind, "table") or owner == "export":
            answers.__getitem__ = item
        return kind

    return decorate


class AnswersNames(type):
    """The class of a kind of windows that Kafka makes by static methods: it answers their names with the call here."""


def _missing(kind: type, name: str) -> Any:
    raise unknown_name(kind, f"sk.{kind.__name__}", name)


_answers: Any = AnswersNames  # so that a checker of types still refuses what it answers
_answers.__getattr__ = _missing


def _example(owner: str, method: Callable[..., object]) -> str:
    """A call of a method with all its arguments, each as it is by default."""
    arguments = []
    for name, each in [*inspect.signature(method).parameters.items()][1:]:
        if each.default is ...:  # left out of a call that does not need it
            continue
        if each.default is not each.empty:
            arguments.append(f"{name}={json.dumps(each.default) if isinstance(each.default, str) else each.default}")
        elif each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            arguments.append(f"{name}={name}" if each.kind == each.KEYWORD_ONLY else name)
    return f"{owner}.{method.__name__}({', '.join(arguments)})"


def level_of_user() -> int:
    """The `stacklevel` with which a function that warns points to the user's own line."""
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level
