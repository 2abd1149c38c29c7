"""How a store shows itself: in a line, in a notebook, and as a pandas frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from sessionkit.base.durations import show_duration
from sessionkit.base.moments import show_time
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import shorten
from sessionkit.records.inputs.opened import frame_of_columns
from sessionkit.stores.locking import SharedStore

SHOWN_ROWS = 20
COUNTED_ROWS = 100_000  # counting more takes longer than what a store shows of itself should


class ShownStore(SharedStore):
    """The base of every store that a person opens."""

    noun: ClassVar[str]
    holds: ClassVar[str]  # "sessions" or "windows"
    kept_by: ClassVar[str]  # "ends" or "starts": what of one decides when it expires
    columns: ClassVar[tuple[str, ...]]
    retention_ms: int | None

    def __len__(self) -> int:
        return self._count(None)

    @property
    @abstractmethod
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which it holds windows, rising."""

    def to_pandas(self) -> Any:
        """Everything in it as a pandas frame, by partition and then in the store's own order."""
        rows, names = list(self._table()), ("partition", *self.columns)
        return frame_of_columns({name: [row[place] for row in rows] for place, name in enumerate(names)})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Everything in it, window by window as the rows of `to_pandas`."""
        for row in self._table():
            yield dict(zip(("partition", *self.columns), row, strict=True))

    def facts(self) -> list[str]:
        """What there is to say of it: the oldest and the newest window, and what expires next."""
        return list(self._facts()) if self._is_open else []

    def __repr__(self) -> str:
        kind = type(self).__name__
        if not self._is_open:
            return f"{kind}({self.name!r}): closed"
        kept = "for ever" if self.retention_ms is None else f"for {show_duration(self.retention_ms)}"
        count = self._count(COUNTED_ROWS + 1)
        shown = plural(count, self.noun) if count <= COUNTED_ROWS else f"more than {plural(COUNTED_ROWS, self.noun)}"
        return f"{kind}({self.name!r}): {shown}, kept {kept}"

    def _repr_html_(self) -> str:
        said = f"<p>{escape_html(repr(self))}</p>"
        if not self._is_open:
            return html_block(said)
        titles = "".join(f"<th>{title.replace('_', ' ')}</th>" for title in ("partition", *self.columns))
        rows = [[escape_html(shorten(value)) for value in row] for row in self._first(SHOWN_ROWS)]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
        facts = "".join(f"<li>{escape_html(fact)}</li>" for fact in self.facts())
        return html_block(f"{said}<ul>{facts}</ul>{table}" if facts else f"{said}{table}")

    def _facts_of_times(
        self, oldest: list[tuple[int, int]], newest: list[int], *, at_boundary: bool = False
    ) -> Iterator[str]:
        """Oldest and newest, from one (time, partition) of each partition, and what expires next."""
        if not oldest:
            return
        word = f"a {self.noun} that {self.kept_by} at"
        time_ms, partition = min(oldest)
        yield f"oldest: {word} {show_time(time_ms)}; newest: {word} {show_time(max(newest))} (UTC)"
        if self.retention_ms is not None:
            then = show_time(time_ms + self.retention_ms + at_boundary)
            yield f"the oldest expires when {word} {then} is put into partition {partition}"

    @property
    @abstractmethod
    def _is_open(self) -> bool:
        """False once it was closed."""

    @abstractmethod
    def _count(self, limit: int | None) -> int:
        """How many windows there are; `limit`, if there are as many or more."""

    @abstractmethod
    def _table(self) -> Iterator[tuple[Any, ...]]:
        """The rows of `to_pandas`."""

    def _first(self, most: int) -> Iterator[tuple[Any, ...]]:
        """The first rows of it."""
        return islice(self._table(), most)

    @abstractmethod
    def _facts(self) -> Iterator[str]:
        """What there is to say of it."""
