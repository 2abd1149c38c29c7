"""What the command line says: of arguments by its options, beside a result, and how far a command has come."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sessionkit.base.progress import progress

TYPED: ContextVar[str | None] = ContextVar("the command as it was typed", default=None)
_TYPES = re.compile(r'types=\{"([^"]*)": "(\w+)"\}(?: in group_by_key)?')
_AS_OPTIONS = (
    (re.compile(r'sort="timestamp" in group_by_key, without offset=,'), "--sort, with --partition alone,"),
    (re.compile(r'sort="timestamp" in group_by_key'), "--sort"),
    (re.compile(r"\b(partition|timezone)=(?: in group_by_key)?(?= )"), r"--\1"),
    (re.compile(r'on_bad_time="(\w+)"'), r"--on-bad-time \1"),
    (re.compile(r'(ambiguous|nonexistent)="(\w+)" or "(\w+)"'), r"--\1 \2 or --\1 \3"),
    (re.compile(r'(ambiguous|nonexistent)="(\w+)"'), r"--\1 \2"),
    (re.compile(r'separator="(.)"(?: in group_by_key)?'), r'--separator "\1"'),
    (re.compile(r"header=False(?: in group_by_key)? \(pandas: header=None\)"), "--no-header"),
    (re.compile(r'(?<!\], )\bformat=(?=")'), "--time-format "),
    (re.compile(r"\bformat= "), "--time-format "),
    (re.compile(r"^format must"), "--time-format must"),
    (re.compile(r"^separator must"), "--separator must"),
    (re.compile(r'prefix="(\w+)"'), r"--prefix \1"),
    (re.compile(r"\b(max|new|starts|ends)_(length|rows|when|at)="), r"--\1-\2 "),
    (re.compile(r"\b(max|new|starts|ends)_(length|rows|when|at)\b"), r"--\1-\2"),
    (re.compile(r'(?:sk\.)?CalendarWindows\("(\w+)", timezone="([^"]+)".*?\)'), r"--calendar \1 --timezone \2"),
    (re.compile(r'sk\.TimeWindows\(size="(\w+)", …\)'), r"--size \1"),
    (re.compile(r' offset="(\w+)" moves them'), r" --window-offset \1 moves them"),
    (re.compile(r"\bmax_ahead='(\w+)'"), r"--max-ahead \1"),
    (re.compile(r"\bmax_ahead="), "--max-ahead"),
    (re.compile(r'\bahead="(\w+)"'), r"--ahead \1"),
    (re.compile(r'timezone="([\w/+-]+)"'), r"--timezone \1"),
    (re.compile(r'unit="s", "ms", "us" or "ns"'), "--unit s, ms, us or ns"),
    (re.compile(r'\bunit="(\w+)"'), r"--unit \1"),
    (re.compile(r"\bseparator=(?=[: ])"), "--separator"),
)


def with_options(text: str) -> str:
    """The text with options where it names arguments of Python that the command line has."""
    text = _TYPES.sub(lambda found: f"--types {shlex.quote(f'{found[1]}={found[2]}')}", text)
    for argument, option in _AS_OPTIONS:
        text = argument.sub(option, text)
    return text


def say(*lines: str) -> None:
    """Prints remarks on stderr, where they cannot be taken for the command's result."""
    for line in lines:
        print(with_options(line), file=sys.stderr)


@contextmanager
def steps(count: int, plain: Callable[[str], None] = lambda step: None) -> Iterator[Callable[[str], None]]:
    """A function that is told each of `count` steps as it begins; without a terminal it is `plain`, which is silent."""
    if not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield plain
        return
    done = itertools.count()
    with progress("", count) as reached:
        yield lambda step: reached(next(done), step)
