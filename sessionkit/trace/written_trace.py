"""`WrittenTrace`: what `plan.write(data, records=…)` wrote, read from its files as it is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit import errors
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.decisions import DECISIONS, LATE, MERGED, REASONS
from sessionkit.base.progress import progress
from sessionkit.base.result_folders import MANIFEST, listed_in
from sessionkit.base.text import escape_html, html_block, one_of, plural
from sessionkit.errors import InvalidArgument, InvalidData, UnknownRecord, attempted, problem, shorten
from sessionkit.records.files.parquet import readable
from sessionkit.records.frames import Frame, FrameKind, checked_frame, to_frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

MOST_ROWS = 2_000_000  # of a frame, unless more are asked for
MOST_WAITING = 1_000_000  # sums of keys, before they are added up
_Condition: TypeAlias = tuple[str, str, Any]
_SUMS = ["key", "records", "late", "merges"]
_TEXT, _NUMBER = ("string", "large_string"), ("int32", "int64")
_KINDS = {"key": (*_TEXT, *_NUMBER, "large_binary"), "decision": _TEXT, "reason": _TEXT}  # others are numbers
_COLUMNS = ("partition", "offset", "key", "timestamp_ms", "stream_time_ms", "decision", "reason")
_OF_SESSIONS, _OF_WINDOWS = ("window_id", "merged_count"), ("window_count", "missed_count")
_WANT = 'the folder of records= in plan.write(data, records="records")'
_AGAIN = "the folder as it was written; or write it again"


@answers_calls("trace", value_of="written")
@dataclass(frozen=True, repr=False)
class WrittenTrace(Generic[Frame]):
    """The decisions that `plan.write` wrote of all records, read a million at a time, and only what is asked for.

    Frames have the columns of `run.trace.records()`: times are milliseconds, several key columns are one text.

    Example:
        >>> trace = plan.write(monday, records="records").trace
        >>> len(trace), trace.counts(), trace.records("ada")["decision"].tolist()
        (3, {'opened': 2, 'added': 1}, ['opened', 'added'])
    """

    folder: Path
    _files: Sequence[Any]
    _schema: pa.Schema
    _rows: int
    _frame: FrameKind

    def __len__(self) -> int:
        return self._rows

    def counts(self) -> dict[str, int]:
        """How many records did what, by decision and by reason; only what happened. Reads two columns of all records.

        Raises:
            InvalidData: a file is damaged.
        Example:
            >>> plan.write(monday, records="records").trace.counts()
            {'opened': 2, 'added': 1}
        """
        seen = dict.fromkeys([*DECISIONS.values(), *REASONS.values()], 0)
        for table in self._parts("counting records", ["decision", "reason"]):
            for each in pc.value_counts(pc.coalesce(table["reason"], table["decision"])).to_pylist():
                if each["values"] not in seen:
                    raise InvalidData(problem("a record did what no record can", shorten(repr(each["values"])), _AGAIN))
                seen[each["values"]] += each["counts"]
        return {word: count for word, count in seen.items() if count}

    @called_as('trace.records("ada")')
    def records(
        self,
        *keys: Any,
        partition: int | None = None,
        from_offset: int | None = None,
        until_offset: int | None = None,
        decision: Literal["opened", "added", "merged", "dropped"] | None = None,
        most: int | None = None,
    ) -> Frame:
        """The records of these keys, or of all, in the order in which they were written.

        Args:
            keys: as column `key` has them.
            from_offset, until_offset: the offsets of the first and the last record, both included.
            decision: only those that did this.
            most: at most so many, the first ones; more than 2 million have to be asked for.
        Raises:
            UnknownRecord: there is no record of one of the keys, where nothing else is asked.
            TooLarge: they are more than 2 million, and `most` is not given.
            InvalidArgument: there is no such decision, or `most` is below 1.
            InvalidData: a file is damaged.
        Example:
            >>> trace = plan.write(monday, records="records").trace
            >>> trace.records("ada", most=1)[["offset", "decision"]].values.tolist()
            [[0, 'opened']]
        """
        if decision is not None:
            one_of("decision", decision, (*DECISIONS.values(), "dropped"))
        asked: list[_Condition] = [
            ("partition", "==", partition),
            ("offset", ">=", from_offset),
            ("offset", "<=", until_offset),
            ("decision", "==", decision),
        ]
        where = [each for each in asked if each[2] is not None]
        table = self._found(keys, [where], most)
        for key in keys if not where and most is None else ():
            if not pc.any(pc.equal(table["key"], self._as_stored(key))).as_py():
                raise UnknownRecord(problem("there is no record of this key", shorten(repr(key)), "another key"))
        return to_frame(table, self._frame)

    @called_as('trace.dropped("ada", reason="late")')
    def dropped(self, *keys: Any, reason: str | None = None, most: int | None = None) -> Frame:
        """The records that were dropped or came too late for one of their windows, a row each, as in `records`.

        What `plan.write(data, dropped=…)` writes has a row for each window that a record missed.

        Args:
            reason: only those that were dropped for it, such as "late" (also for one of their windows) or "null_key".
            keys, most: as in `records`.
        Raises:
            UnknownRecord: a key is of another type than those that there are.
            TooLarge, InvalidArgument, InvalidData: as `records`.
        Example:
            >>> waves.write(flights, records="records").trace.dropped("EV@EWR", most=2)["reason"].tolist()
            ['late', 'late']
        """
        if reason is not None:
            one_of("reason", reason, (*REASONS.values(),))
        of_windows = "missed_count" in self._schema.names and reason in (None, REASONS[LATE])
        partly: list[list[_Condition]] = [[("missed_count", ">", 0)]] if of_windows else []
        first = ("decision", "==", "dropped") if reason is None else ("reason", "==", reason)
        return to_frame(self._found(keys, [[first], *partly], most), self._frame)

    @called_as("trace.losses(10)")
    def losses(self, most: int | None = None) -> Frame:
        """Which keys lose the most records, as `run.losses`: key, records, late, share and merges of each.

        Reads three columns of all records. A key takes some 100 bytes of memory.

        Args:
            most: at most this many keys; all by default.
        Raises:
            InvalidArgument: `most` is below 1.
            InvalidData: a file is damaged.
        Example:
            >>> waves.write(flights, records="records").trace.losses(1)[["key", "records", "late"]].values.tolist()
            [['EV@EWR', 3556, 140]]
        """
        _check_most(most)
        late = "missed_count" if "missed_count" in self._schema.names else "reason"
        sums, waiting = _losses_of(self._schema.empty_table()), list[pa.Table]()
        for table in self._parts("counting losses", ["key", "decision", late]):
            waiting.append(_added_up(_losses_of(table)))
            if sum(map(len, waiting)) > max(len(sums), MOST_WAITING):
                sums, waiting = _added_up(pa.concat_tables([sums, *waiting])), []
        sums = _added_up(pa.concat_tables([sums, *waiting]))
        sums = sums.take(pc.sort_indices(sums, [("late", "descending"), ("records", "descending")])[:most])
        share = pc.divide(sums["late"].cast(pa.float64()), sums["records"].cast(pa.float64()))
        return to_frame(sums.add_column(3, "share", share), self._frame)

    def _as_stored(self, key: Any) -> Any:
        """The key as its column has it."""
        kind = self._schema.field("key").type
        found = attempted(pa.scalar, key, kind, but=(pa.ArrowException, TypeError, ValueError, OverflowError))
        if found is None or not found.is_valid:
            want = f"keys of type {str(kind).removeprefix('large_')}, of several key columns the joined text"
            raise UnknownRecord(problem("there is no record of this key", shorten(repr(key)), want))
        return found

    def _found(self, keys: Sequence[Any], either: list[list[_Condition]], most: int | None) -> pa.Table:
        """The first records of these keys that meet all conditions of one of the lists."""
        from pyarrow.parquet import filters_to_expression

        _check_most(most)
        if keys:
            values = pa.array([self._as_stored(key).as_py() for key in keys], self._schema.field("key").type)
            either = [[*each, ("key", "in", values)] for each in either]
        tables, count = [self._schema.empty_table()], 0
        condition = filters_to_expression(either) if any(either) else None
        for table in self._parts("looking for records", self._schema.names, condition):
            tables.append(table)
            count += len(table)
            if count > MOST_ROWS and most is None:
                want = "most=, how many of them to read; or keys, or offsets from and until which there are fewer"
                raise errors.TooLarge(problem("these are many records for a frame", f"more than {MOST_ROWS:,}", want))
            if most is not None and count >= most:
                break
        return pa.concat_tables(tables).slice(0, most)

    def _parts(self, words: str, columns: list[str], condition: Any = None) -> Iterator[pa.Table]:
        """These columns of the records that meet the condition, a row group at a time."""
        groups = []
        for file in self._files:
            with readable(file.path):
                groups += file.split_by_row_group(condition)
        ends = np.cumsum([group.row_groups[0].num_rows for group in groups]).tolist()
        with progress(words, self._rows) as reached:
            for group, end in zip(groups, ends, strict=True):
                with readable(group.path):
                    # the columns of the condition come first: a rare key is in few groups
                    is_there = condition is None or group.count_rows(filter=condition) > 0
                    table = group.to_table(columns=columns, filter=condition) if is_there else None
                if table is not None:
                    yield table
                reached(end)

    def __repr__(self) -> str:
        files = plural(len(self._files), "file")
        return f"Trace of {plural(len(self), 'record')} in {shorten(self.folder, 200)} ({files})"

    def _repr_html_(self) -> str:
        calls = "<code>.counts()</code>, <code>.records(key)</code>, <code>.dropped()</code> and <code>.losses()</code>"
        return html_block(f"<p>{escape_html(repr(self))}; {calls} read what they need of it.</p>")


@overload
def open_trace(folder: str | Path, *, frame: Literal["pandas"] = "pandas") -> WrittenTrace[pd.DataFrame]: ...
@overload
def open_trace(folder: str | Path, *, frame: Literal["polars"]) -> WrittenTrace[pl.DataFrame]: ...
@overload
def open_trace(folder: str | Path, *, frame: Literal["arrow"]) -> WrittenTrace[pa.Table]: ...
@called_as('sk.open_trace("records")')
def open_trace(folder: str | Path, *, frame: FrameKind = "pandas") -> WrittenTrace[Any]:
    """The decisions that `plan.write(data, records=folder)` wrote, to be read as they are asked for.

    Args:
        frame: the kind of its frames: "pandas", "polars" or "arrow".
    Raises:
        InvalidArgument: this is no folder that `write` wrote, or that of another result.
        InvalidData: one of its files is gone, was changed or is damaged.
        MissingColumn, UnsupportedData: a file lacks a column, or has it with another type.
    Example:
        >>> written = plan.write(monday, records="records")
        >>> sk.open_trace("records")
        Trace of 3 records in records (1 file)
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    kind, folder = checked_frame(frame, on_spark=False) or "pandas", Path(os.path.expanduser(folder))
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    form, files, rows, schema = ds.ParquetFileFormat(default_fragment_scan_options=options), [], 0, None
    for path in _listed(folder):
        with readable(path):
            file = form.make_fragment(str(path), LocalFileSystem())
            found, rows = file.physical_schema.remove_metadata(), rows + file.metadata.num_rows
        schema = schema or _checked(path, found)
        if not _checked(path, found).equals(schema):
            want = "the types of the first file; " + _AGAIN
            raise errors.UnsupportedData(problem("the columns of a file have other types", shorten(path, 200), want))
        files.append(file)
    return WrittenTrace(folder, files, schema, rows, kind)


def _listed(folder: Path) -> list[Path]:
    """The files that the manifest lists, if it is one of `write`, and they are of the size that it says."""
    _, _, files = listed_in(folder / MANIFEST)
    listed = sorted((file.name.rpartition("/")[2], file.size) for file in files)
    if not listed or not all(re.fullmatch(r"part-\d+\.parquet", name) for name, _ in listed):
        raise InvalidArgument(problem("this is no folder that plan.write wrote", shorten(folder, 200), _WANT))
    for name, size in listed:
        found = attempted(os.path.getsize, folder / name, but=OSError)
        if found != size:
            got = f"{shorten(folder / name, 200)} {'is gone' if found is None else f'has {found:,} of {size:,} bytes'}"
            raise InvalidData(problem("a file is not as it was written", got, _AGAIN))
    return [folder / name for name, _ in listed]


def _checked(path: Path, schema: pa.Schema) -> pa.Schema:
    """The columns of a trace in a file."""
    if not {"decision", "stream_time_ms"} & {*schema.names}:
        got = f"{shorten(path, 200)} with columns {shorten(', '.join(schema.names), 100)}"
        raise InvalidArgument(problem("this is another result of plan.write, without its records", got, _WANT))
    names = (*_COLUMNS, *(_OF_WINDOWS if {*_OF_WINDOWS} & {*schema.names} else _OF_SESSIONS))
    for name in names:
        if name not in schema.names:
            got = f"no column {name!r} in {shorten(path, 200)}"
            raise errors.MissingColumn(problem("a file lacks a column of its records", got, _AGAIN))
        kind, kinds = str(schema.field(name).type), _KINDS.get(name, _NUMBER)
        if kind not in kinds:
            got, want = f"{name!r}: {shorten(kind)} in {shorten(path, 200)}", " or ".join(kinds)
            raise errors.UnsupportedData(problem("a column of the records is of another type", got, want))
    return pa.schema([schema.field(name) for name in names])


def _check_most(most: int | None) -> None:
    if most is not None and most < 1:
        raise InvalidArgument(problem("most= is the number of rows to give", f"most={most}", "1 or more"))


def _losses_of(table: pa.Table) -> pa.Table:
    """What each record adds to the losses of its key; those without one are left out."""
    table = table.filter(pc.is_valid(table["key"]))
    if "missed_count" in table.column_names:
        late = pc.greater(table["missed_count"], 0)
    else:
        late = pc.fill_null(pc.equal(table["reason"], REASONS[LATE]), False)
    merged = pc.equal(table["decision"], DECISIONS[MERGED])
    return pa.table([table["key"], np.ones(len(table), np.int64), late.cast("int64"), merged.cast("int64")], _SUMS)


def _added_up(table: pa.Table) -> pa.Table:
    """The sums of each key, in the order in which the keys come first."""
    sums = table.group_by("key", use_threads=False).aggregate([(name, "sum") for name in _SUMS[1:]])
    return sums.select(["key", *(f"{name}_sum" for name in _SUMS[1:])]).rename_columns(_SUMS)
