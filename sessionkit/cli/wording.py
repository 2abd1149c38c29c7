"""What the package says of arguments, as the options of the command line."""

from __future__ import annotations

import re

_AS_OPTIONS = (
    (re.compile(r'types=\{"([^"]*)": "(\w+)"\}(?: in group_by_key)?'), r"--types \1=\2"),
    (re.compile(r'sort="timestamp" in group_by_key, without offset=,'), "--sort, without --partition and --offset,"),
    (re.compile(r'sort="timestamp" in group_by_key'), "--sort"),
    (re.compile(r"\b(partition|timezone)= in group_by_key"), r"--\1"),
    (re.compile(r'on_bad_time="(\w+)"'), r"--on-bad-time \1"),
    (re.compile(r'(ambiguous|nonexistent)="(\w+)"'), r"--\1 \2"),
    (re.compile(r'separator="(.)" in group_by_key'), r'--separator "\1"'),
    (re.compile(r"header=False in group_by_key \(pandas: header=None\)"), "--no-header"),
    (re.compile(r'\bformat=(?=")'), "--time-format "),
    (re.compile(r"\bformat= "), "--time-format "),
    (re.compile(r"^format must"), "--time-format must"),
    (re.compile(r'prefix="(\w+)"'), r"--prefix \1"),
    (re.compile(r'timezone="([\w/+-]+)"'), r"--timezone \1"),
    (re.compile(r'unit="s", "ms", "us" or "ns"'), "--unit s, ms, us or ns"),
    (re.compile(r'\bunit="(\w+)"'), r"--unit \1"),
    (re.compile(r"\bseparator=(?=:)"), "--separator"),
)


def with_options(text: str) -> str:
    """The text with options where it names arguments of Python that the command line has.

    Example:
        >>> with_options('drop them, or pass on_bad_time="drop" to count them as dropped')
        'drop them, or pass --on-bad-time drop to count them as dropped'
    """
    for argument, option in _AS_OPTIONS:
        text = argument.sub(option, text)
    return text
