"""`Written`: what `plan.write` wrote, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessionkit.base.calls import answers_calls
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import InvalidArgument, problem

if TYPE_CHECKING:
    import pandas as pd

    from sessionkit.trace.written_trace import WrittenTrace


@answers_calls("written")
@dataclass(frozen=True, repr=False)
class Written:
    """The folders that `plan.write` or `sk.sessionize(out=)` wrote, each of Parquet files with rows in order.

    Example:
        >>> written = plan.write(monday, table="sessions")
        >>> written
        Written: 3 records, 0 dropped · table: 2 rows
        >>> written.folders["table"].name, written.rows, written.counts, written.remarks()
        ('sessions', {'table': 2}, {'opened': 2, 'added': 1}, [])
    """

    folders: Mapping[str, Path]  # by the name of the argument
    rows: Mapping[str, int]  # of each
    counts: Mapping[str, int]  # records by decision, or by the reason for which they were dropped
    merges: int
    record_count: int
    dropped_count: int  # records that are in no window
    _remarks: Sequence[str] = ()

    @property
    def trace(self) -> WrittenTrace[pd.DataFrame]:
        """Every decision, read from the folder of `records=` as it is asked for, as `sk.open_trace` gives it.

        Raises:
            InvalidArgument: `records=` was not given, or its folder is no longer there.
            InvalidData, MissingColumn, UnsupportedData: its files are not as they were written.
        Example:
            >>> plan.write(monday, records="records").trace.records("bob")["decision"].tolist()
            ['opened']
        """
        from sessionkit.trace.written_trace import open_trace

        if "records" not in self.folders:
            got, want = ", ".join(f"{name}=" for name in self.folders), 'plan.write(data, records="records")'
            raise InvalidArgument(problem("no decisions were written", f"folders of {got}", want))
        return open_trace(self.folders["records"])

    def remarks(self) -> list[str]:
        """What is to be known of how the records were read, and why many came too late, where a cause is found."""
        return [*self._remarks]

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {plural(count, 'row')}" for name, count in self.rows.items())
        first = f"Written: {plural(self.record_count, 'record')}, {self.dropped_count:,} dropped · {rows}"
        return "\n".join([first, *self._remarks])

    def _repr_html_(self) -> str:
        return html_block("".join(f"<p>{escape_html(line)}</p>" for line in repr(self).splitlines()))
