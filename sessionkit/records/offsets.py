"""Offsets rise within a partition: where they do not, this says so, whoever finds it."""

from __future__ import annotations

from sessionkit.errors import InvalidData, problem

IN_ORDER = "give the records in offset order, or pass sort=True in the plan"
ONCE = "remove the duplicate"
FROM_A_SOURCE = (
    "a source that delivers each partition in increasing order of offsets, such as Kafka; with files, one range of "
    "offsets each"
)


def not_after(partition: int, offset: int, before: int, *, row: int | None = None, want: str = "") -> InvalidData:
    """The error for an offset that does not come after the one before it in its partition.

    Args:
        row: of the record, where it has one that the user knows.
        want: what would be right, where neither sorting nor removing it would do.
    """
    place = f"partition {partition}" if row is None else f"partition {partition}, row {row}"
    got = f"{place}: offset {offset} after {before}"
    if offset == before:
        return InvalidData(problem("an offset appears twice", got, want or ONCE))
    return InvalidData(problem("offsets must increase within a partition", got, want or IN_ORDER))
