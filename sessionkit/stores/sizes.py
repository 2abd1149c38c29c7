"""Sizes in bytes as Kafka counts them: of a value, of where a record stood, and of lengths written as "10MB"."""

from __future__ import annotations

import json
import re
from typing import Any

from sessionkit.errors import InvalidArgument, problem, shorten

TOPIC = "input"  # the topic of the exported class, too
RECORD_BYTES = 8 + 8 + 4 + len(TOPIC)  # timestamp, offset, partition, topic: ProcessorRecordContext
_UNITS = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_TEXT = re.compile(r"\s*(\d+)\s*(b|kb|mb|gb)\s*", re.IGNORECASE)


def value_bytes(value: Any) -> int:
    """The length of a value as Kafka's serializers write it, or as JSON what none of them takes; 0 for none."""
    if value is None:
        return 0
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 8
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str).encode())


def byte_count(text: str, name: str) -> int:
    """The number of bytes that a text such as "10MB" or "512 kB" names; a kB has 1,024."""
    found = _TEXT.fullmatch(text)
    if found is None:
        want = 'a whole number with B, KB, MB or GB, such as "10MB"'
        raise InvalidArgument(problem(f"{name} is no number of bytes", shorten(repr(text)), want))
    return int(found[1]) * _UNITS[found[2].lower()]


def byte_text(count: int) -> str:
    """A number of bytes in the largest unit that divides it, as `byte_count` reads it."""
    unit, size = next(each for each in reversed(_UNITS.items()) if count % each[1] == 0 and (count or each[1] == 1))
    return f"{count // size}{unit.upper()}"
