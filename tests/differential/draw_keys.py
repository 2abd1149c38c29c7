"""Keys of a random case: text, whole numbers or bytes, also empty, long, and such that one begins with another."""

import base64
from random import Random
from typing import Any

TEXTS = (
    ("a", "b", "c", "d", "e", "f"),
    ("a", "aa", "aaa", "ab", "b", "ba"),
    ("é", "ß", "日本", "\uffee", "😀", "z"),
    ("", "a", "user-1", "user-10", "user-2", "x" * 40),
)
INTEGERS = (0, 1, -1, 255, 256, 2**63 - 1, -(2**63))
BYTES = (b"\x00", b"\x00", b"\x01", b"a", b"\x7f", b"\x80", b"\xff", b"\xff")
LONGEST = 3_000


def draw_keys(rng: Random, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Gives the records, whose keys are numbers, keys of one kind; what the case has to say of it."""
    numbers = sorted({record["key"] for record in records if record["key"] is not None})
    kind = rng.choice(("text", "text", "text", "bytes", "bytes", "int"))
    drawn = {"text": _text, "bytes": _bytes, "int": _integers}[kind](rng, len(numbers))
    names = dict(zip(numbers, drawn, strict=True))
    for record in records:
        record["key"] = None if record["key"] is None else names[record["key"]]
    return {} if kind == "text" else {"keys": kind}


def _text(rng: Random, count: int) -> list[str]:
    family = rng.choice(TEXTS)
    if count > len(family):
        return [f"key-{number}" for number in range(count)]
    return rng.sample(family, count)


def _integers(rng: Random, count: int) -> list[str]:
    numbers = [*INTEGERS, *range(2, count + 2)] if count > len(INTEGERS) else INTEGERS
    return [str(number) for number in rng.sample(numbers, count)]


def _bytes(rng: Random, count: int) -> list[str]:
    found: dict[bytes, None] = {}
    while len(found) < count:
        stem = rng.choice([b"", *found])  # the one begins with the other
        length = rng.randint(0, 3 if count <= 6 else 6)
        key = stem + b"".join(rng.choice(BYTES) for _ in range(length))
        if rng.random() < 0.03:
            key += rng.choice(BYTES) * rng.choice((100, LONGEST))
        found[key[:LONGEST]] = None
    return [base64.b64encode(key).decode() for key in found]
