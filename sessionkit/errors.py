"""Every error that sessionkit raises. Each class is also the builtin one, so `except ValueError` works."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

LABEL_LENGTH = 60
INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, and what breaks a line
MOST_CHARACTERS = 1_000  # of a part of an error, whatever a column is called

DISTRIBUTION = "sessionkit-streams"  # `sessionkit` on the public index is another project
_T = TypeVar("_T")


def shorten(text: object, length: int = LABEL_LENGTH) -> str:
    """`text` on one line, control characters made visible, cut in the middle to `length` characters.

    Example:
        >>> shorten("a" * 100, 9)
        'aaaa…aaaa'
    """
    # A far longer text is cut before it is cleaned, so that a key of a megabyte costs nothing.
    raw = str(text)
    if len(raw) > 4 * length:
        raw = raw[: 2 * length] + raw[-2 * length :]
    line = raw if raw.isprintable() else "".join(visible(character) for character in raw)
    if len(line) <= length:
        return line
    half = (length - 1) // 2
    return line[: length - 1 - half] + "…" + line[len(line) - half :]


def visible(character: str) -> str:
    """A character as it is, or its code where nothing would be seen of it."""
    if unicodedata.category(character) not in INVISIBLE:
        return character
    return character.encode("unicode_escape").decode()


def problem(what: str, got: object, want: str) -> str:
    """The text of an error, on one line: what is wrong, the value given, what would be right."""
    joined = (re.sub(r"\n(    |(?=\)))", "", str(part)) for part in (what, got, want))  # a plan's code
    said, given, right = (shorten(part, MOST_CHARACTERS) for part in joined)
    return f"{said}; got {given}; {right}"


def install(extras: str) -> str:
    """The command that brings the packages of these extras."""
    return f"pip install '{DISTRIBUTION}[{extras}]'"


class SessionkitError(Exception):
    """The root of all errors raised by sessionkit."""


@contextmanager
def errors_as(
    kind: type[SessionkitError],
    what: str,
    want: str,
    causes: type[Exception] | tuple[type[Exception], ...],
    length: int = 120,
) -> Iterator[None]:
    """Raises these errors of a library as one of ours, which gives so many characters of the library's words."""
    try:
        yield
    except causes as error:
        raise kind(problem(what, shorten(error, length), want)) from error


def attempted(
    call: Callable[..., _T], *arguments: Any, but: type[Exception] | tuple[type[Exception], ...], **options: Any
) -> _T | None:
    """Result of the call; None where it raises one of the errors `but`."""
    try:
        return call(*arguments, **options)
    except but:
        return None


class InvalidArgument(SessionkitError, ValueError):
    """A parameter is outside what its rule allows."""


class InvalidData(SessionkitError, ValueError):
    """The records given cannot be used as they are."""


class UnsupportedData(SessionkitError, TypeError):
    """The records, or one of their columns, are of a type that sessionkit does not take."""


class MissingColumn(SessionkitError, KeyError):
    """A column that the plan names is not in the data."""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0])


class UnknownName(SessionkitError, AttributeError):
    """A name was asked for that does not exist; the message has the one that is meant."""


class AggregationFailed(SessionkitError, RuntimeError):
    """A Python function of the aggregation raised; nothing of the run was committed."""


class NumberOverflow(SessionkitError, OverflowError):
    """A time or a sum does not fit into 64 bits."""


class BufferFull(SessionkitError, RuntimeError):
    """More results wait than the buffer of suppress may hold; nothing of the run was committed."""


class TooLarge(SessionkitError, MemoryError):
    """What was asked for would not fit into the memory that is free; nothing was begun."""


class WriteFailed(SessionkitError, OSError):
    """The disk refused results: it is full, read-only or broken. What was there before is as it was."""


class UnknownRecord(SessionkitError, LookupError):
    """No record with this partition and offset, or no such key, is in the run."""


class NotKept(SessionkitError, RuntimeError):
    """The view needs something that this run was told not to keep."""


class NotBuilt(SessionkitError, NotImplementedError):
    """A combination that sessionkit does not offer yet."""


class NotOffered(UnknownName, NotBuilt):
    """A view that other kinds of runs have, and this one has not; the message says why, and what there is instead."""


class StoreError(SessionkitError, RuntimeError):
    """A store refused a call."""


class StoreClosed(StoreError):
    """The store was closed before the call."""


class StoreCorrupted(StoreError):
    """What is on disk is damaged, or is no store of sessionkit. It was left as it is."""


class StoreLocked(StoreError):
    """The store is open already, in this process or in another."""


class StoreMismatch(StoreError):
    """The store was made with other settings than those it was opened with."""


class StoreFailed(StoreError):
    """The disk refused a read or a write: it is full, read-only or broken."""


class StoreUnavailable(StoreError, ImportError):
    """The packages that stores of this kind are made of are not installed."""


class BrokenTrace(SessionkitError, AssertionError):
    """A law that every trace keeps does not hold: a bug in sessionkit, please report it."""


class SparkUnavailable(SessionkitError, RuntimeError):
    """Spark, or a Java that it accepts, is not on this machine."""


class WidgetsUnavailable(SessionkitError, ImportError):
    """The packages that widgets are made of are not installed."""


class SketchesUnavailable(SessionkitError, ImportError):
    """The package that approximate aggregations are made of is not installed."""


class PicturesUnavailable(SessionkitError, RuntimeError):
    """Kaleido, or the browser by which it makes pictures of charts, is not on this machine."""
