"""The pieces of a generated Java class that no plan changes; `java.py` puts those that are needed together."""

from __future__ import annotations

import re
from string import Template

from sessionkit.base.assets import read_asset
from sessionkit.exports.lengths import java_duration
from sessionkit.suppression.settings import Suppression

IMPORTS = re.findall("import (.+);", read_asset("exports/imports.java"))  # of which a class has those that it needs

JSON = "\n" + read_asset("exports/json.java")


def _methods(file: str) -> dict[str, str]:
    """The methods that a file of Java holds, by their names; empty lines part them."""
    methods = read_asset(f"exports/{file}.java").strip("\n").split("\n\n")
    return {re.findall(r"(\w+)\((?:final|\))", method)[0]: f"\n{method}\n" for method in methods}


FRAME = _methods("frame")  # of every class, or of one that reads event times from values
MADE = {name: Template(method) for name, method in _methods("made").items()}  # with what a plan says in them
HELPERS = _methods("helpers")  # what reads a column, and what combines values or the aggregates of two sessions
# How a column is read, by whether a name has dots.
COLUMN = {False: FRAME["column"], True: _methods("nested")["column"]}

# How an event time in a record's value is read, by its unit; without one it is text.
_SCALED = {
    "s": "Math.multiplyExact(time.longValue(), 1000L)",
    "ms": "time.longValue()",
    "us": "Math.floorDiv(time.longValue(), 1_000L)",
    "ns": "Math.floorDiv(time.longValue(), 1_000_000L)",
}
MILLISECONDS: dict[str | None, str] = {None: FRAME["milliseconds"]}
MILLISECONDS |= {unit: MADE["milliseconds"].substitute(scaled=scaled) for unit, scaled in _SCALED.items()}


def suppress_call(suppression: Suppression | None) -> str:
    """The call of suppress behind the aggregation."""
    if suppression is None:
        return ""
    sizes = {"maxRecords": suppression.most_records, "maxBytes": suppression.most_bytes}
    limits = [f"{name}({size}L)" for name, size in sizes.items() if size is not None] or ["unbounded()"]
    config = f"BufferConfig.{limits[0]}"
    if len(limits) > 1:
        config += f".with{limits[1][0].upper()}{limits[1][1:]}"
    if suppression.is_limited and suppression.shuts_down:
        config += ".shutDownWhenFull()"
    if suppression.wait_ms is None:
        return f"\n                .suppress(Suppressed.untilWindowCloses({config}))"
    return f"\n                .suppress(Suppressed.untilTimeLimit({java_duration(suppression.wait_ms)}, {config}))"
