"""`sessionize(out=)`: the rows of files of any length with their sessions, in the order in which they stand.

What sessions depend on goes to parts first, each of a range of keys that fits into memory. Sessions are found in one
part after another, and join the rows when the files are read again.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from sessionkit.base.arrays import Longs, arrow_array, numpy_array
from sessionkit.base.process import check_room, hand_each, handing_over
from sessionkit.base.progress import Reached, progress
from sessionkit.base.text import plural
from sessionkit.errors import InvalidData, errors_as, problem
from sessionkit.records.batch import RecordBatch, batch_of
from sessionkit.records.inputs.pieces import Pieces, of_files
from sessionkit.records.inputs.plain_columns import decoded
from sessionkit.records.row_names import lacking_remarks, rows_named
from sessionkit.records.source import Source
from sessionkit.records.time_text import is_text_type
from sessionkit.session_rules.cut import Unmet, cut_by_rules, days_remarks, words_of
from sessionkit.session_rules.rules import SessionRules, columns_of_gaps
from sessionkit.steps.ranges import ROW, ROW_BYTES, STEP_ROWS, Ranges, batches_of
from sessionkit.steps.reading import add_remarks, check_source, gathered, read_ahead
from sessionkit.steps.targets import Place, check_apart
from sessionkit.steps.written import Written
from sessionkit.views.assignment import taken, with_timestamps
from sessionkit.views.stable_ids import Ids, with_ids
from sessionkit.windows.contract import WindowKind


@dataclass(frozen=True, kw_only=True)
class SessionsJob:
    """What to read, the rules, and where the rows go."""

    data: Any  # paths of files
    source: Source
    windows: WindowKind
    rules: SessionRules
    offset: str | None
    ids: Ids
    prefix: str
    path: Path
    overwrite: bool

    @cached_property
    def pieces(self) -> Pieces:
        """What sessions depend on."""
        wanted = [*self.source.columns(), *self.rules.columns(), *([self.offset] if self.offset else [])]
        with columns_of_gaps(self.rules):
            return of_files(self.data, list(dict.fromkeys(wanted)), self.source)

    def cut(self, table: pa.Table, row: Longs, unmet: Unmet) -> tuple[RecordBatch, pa.Table]:
        """These rows, which have such numbers, as they are inside, and what is to be known of the session of each."""
        opened = dataclasses.replace(self.pieces.head, table=table, original=None)
        with rows_named(lambda place: f"row {row[place]}"):
            batch = batch_of(opened, self.source)
            zone, offset = batch.timezone, self.offset
            added = cut_by_rules(opened, batch, self.rules, self.source, zone=zone, offset=offset, unmet=unmet)
        unmet.update({("days", said): said for said in days_remarks(self.rules, self.windows, batch, added)})
        return batch, added

    def shown(self, added: pa.Table, table: pa.Table, zone: str, before: int = 0) -> pa.Table:
        """What is known of sessions, as it is asked for; there are so many `before` them."""
        shown = with_ids(added, table, self.source.own_columns(), self.ids)
        if self.ids == "number":
            shown = shown.set_column(0, shown.column_names[0], pc.add(shown[0], before))
        shown = with_timestamps(shown, zone)
        want = "timestamps instead of texts, or sessionize without out="
        with errors_as(
            InvalidData, f"column {self.source.timestamp!r} has texts finer than a microsecond", want, pa.ArrowInvalid
        ):
            for name in ("session_start", "session_end"):  # the same in all parts, of which some have no finer times
                place = shown.column_names.index(name)
                shown = shown.set_column(place, name, shown[place].cast(pa.timestamp(self._unit, zone)))
        return shown.rename_columns([self.prefix + name for name in shown.column_names])

    @cached_property
    def _unit(self) -> str:
        """As fine as the times can be: by the types of their columns."""
        names = [name for name in (self.source.timestamp, self.rules.until) if name is not None]
        kinds = [self.pieces.head.table.schema.field(name).type for name in names]
        units = {each.unit for each in kinds if pa.types.is_timestamp(each)}
        units |= {"us" if is_text_type(each) else self.source.unit for each in kinds if not pa.types.is_timestamp(each)}
        return next((unit for unit in ("ns", "us") if unit in units), "ms")


def write_sessions(job: SessionsJob) -> Written:
    """Writes all of it; see `sk.sessionize`."""
    check_apart({"out": job.path})
    check_source(job.source, "sessionize(out=)", "sessionize without out=")
    batch, added = job.cut(job.pieces.head.table, np.empty(0, np.int64), {})
    added = job.shown(added, job.pieces.head.table, batch.timezone)
    whole = of_files(job.data, None, job.source)
    names = whole.head.table.column_names
    if clash := [name for name in added.column_names if name in names]:
        raise taken(clash[0], "prefix=")
    schema = pa.schema([*whole.head.table.schema, *_plain(added).schema])
    place = Place(job.path, schema)
    place.check(overwrite=job.overwrite)
    try:
        place.begin(files={})
        written = _Writing(job, place).run(whole)
        place.close(last=True)
        place.place(f"sessionize {uuid4().hex}", overwrite=job.overwrite)
    finally:
        place.end(remove=True)
    return written


class _Writing:
    """One call: the files beside its place, and what is counted."""

    def __init__(self, job: SessionsJob, place: Place) -> None:
        self._job, self._place, self._folder = job, place, place.aside / "parts"
        self._writing = partial(place.results.writing, place.path)
        self._schema = job.pieces.head.table.schema.append(pa.field(ROW, pa.int64()))
        self._rows = self._looked_at = self._sessions = 0
        self._rejected = np.zeros(256, np.int64)  # rows by what is wrong with them
        self._remarks: list[str] = [*job.pieces.head.remarks]
        self._unmet: Unmet | None = None  # by any part so far

    def run(self, whole: Pieces) -> Written:
        shutil.rmtree(self._folder, ignore_errors=True)  # of a call that was killed
        with self._writing():
            self._folder.mkdir()
        rows = self._job.pieces.rows
        with progress("reading the rows", None if rows is None else 3 * rows) as reached, handing_over() as hand:
            parts = self._parts(reached)
            hand_each(
                hand, (partial(self._place.part, columns) for columns in self._with_sessions(whole, parts, reached))
            )
        lacking = lacking_remarks(dict(enumerate(self._rejected.tolist())), self._rows, self._job.source.lacks)
        remarks = [*self._remarks, *lacking, *words_of(self._unmet or {})]
        return Written({"out": self._place.path}, {"out": self._rows}, {}, 0, self._rows, 0, remarks)

    def _read(self, reached: Reached) -> Iterator[pa.Table]:
        for opened in read_ahead(gathered(self._job.pieces.read(0, STEP_ROWS), STEP_ROWS)):
            number = np.arange(self._rows, self._rows + len(opened.table))
            self._rows += len(number)
            yield opened.table.append_column(ROW, arrow_array(number))
            reached(self._rows, "reading the rows")

    def _parts(self, reached: Reached) -> list[_Part]:
        """The sessions of all rows, a part after another."""
        paths = [self._folder / name for name in ("places", "sessions")]
        writers: list[Any] = []
        ranges = Ranges(self._job.source, self._schema, self._folder, self._writing)
        waiting = self._schema.empty_table()
        for table, goes_on in ranges.parts(self._read(reached), self._job.pieces.rows):
            if len(waiting):
                table = pa.concat_tables([waiting, table]).sort_by(ROW)
                check_room(len(table), ROW_BYTES, "rows of one session", "a shorter gap")
            batches, waiting = self._part(table, goes_on=goes_on)
            with self._writing():
                writers = writers or [
                    ipc.new_file(*each) for each in zip(paths, (b.schema for b in batches), strict=True)
                ]
                for writer, batch in zip(writers, batches, strict=True):
                    writer.write_batch(batch)
            reached(self._rows + self._looked_at, "looking for sessions")
        with self._writing():
            for writer in writers:
                writer.close()
        places, sessions = ([*batches_of(path)] for path in paths) if writers else ([], [])
        return [*map(_Part, places, sessions)]

    def _part(self, table: pa.Table, *, goes_on: bool) -> tuple[tuple[pa.RecordBatch, pa.RecordBatch], pa.Table]:
        """((number, session and position of each row; the sessions), rows of a session that may go on)."""
        job, row = self._job, numpy_array(table[ROW])
        unmet: Unmet = {}
        batch, added = job.cut(table, row, unmet)
        before = unmet if self._unmet is None else self._unmet
        self._unmet = {what: said for what, said in before.items() if what in unmet}
        add_remarks(self._remarks, batch)
        session, position = (numpy_array(added[name], absent=-1) for name in ("session_id", "position_in_session"))
        count = int(session.max(initial=-1)) + 1
        some_row = np.empty(count, np.int64)
        own = np.flatnonzero(session >= 0)
        some_row[session[own]] = own
        sessions = added.drop_columns(["position_in_session", "late"]).take(arrow_array(some_row))
        ended = _ended(sessions, job.rules) if goes_on else count
        is_whole = session < ended
        self._looked_at += int(np.count_nonzero(is_whole))
        if batch.rejected is not None:
            self._rejected += np.bincount(batch.rejected, minlength=256)
        at = arrow_array(some_row[:ended])
        shown = job.shown(sessions.slice(0, ended), table.take(at), batch.timezone, before=self._sessions)
        self._sessions += ended
        columns = {"row": row, "session": session, "position": position}
        places = pa.table({name: column[is_whole] for name, column in columns.items()})
        return (_one_batch(places), _one_batch(_plain(shown))), table.filter(arrow_array(~is_whole))

    def _with_sessions(self, whole: Pieces, parts: list[_Part], reached: Reached) -> Iterator[dict[str, Any]]:
        """All columns of the rows, some rows at a time."""
        first = 0
        for opened in read_ahead(gathered(whole.read(0, STEP_ROWS), STEP_ROWS)):
            count = len(opened.table)
            if first + count <= self._rows:
                yield _by_name(opened.table) | self._beside(parts, first, count)
            first += count
            reached(2 * self._rows + first, "writing the rows")
        if first != self._rows:
            got = f"{plural(self._rows, 'row')} at first, and {first:,} later"
            raise InvalidData(problem("the files changed while they were read", got, "files that stay as they are"))

    def _beside(self, parts: list[_Part], first: int, count: int) -> dict[str, pa.ChunkedArray]:
        """The columns that are added to the rows from `first` on."""
        row, position, sessions = zip(*(part.until(first + count) for part in parts), strict=True)
        place = np.empty(count, np.int64)
        place[np.concatenate(row) - first] = np.arange(count)
        at = arrow_array(place)
        found = pa.concat_tables(sessions).combine_chunks().take(at)
        told = np.concatenate(position)[place]
        more = {"position_in_session": arrow_array(told, told < 0), "late": arrow_array(np.zeros(count, np.bool_))}
        return _by_name(found) | {self._job.prefix + name: column for name, column in more.items()}


class _Part:
    """The rows of some keys by number, and their sessions; read from a file as they are wanted."""

    def __init__(self, places: pa.RecordBatch, sessions: pa.RecordBatch) -> None:
        self._row, self._session, self._position = (numpy_array(column) for column in places)
        self._sessions = pa.Table.from_batches([sessions])
        self._next = 0

    def until(self, row: int) -> tuple[Longs, Longs, pa.Table]:
        """(number, position, session) of the rows that follow, before the one of this number."""
        begin, self._next = self._next, self._next + int(np.searchsorted(self._row[self._next :], row))
        own = slice(begin, self._next)
        session = self._session[own]
        return self._row[own], self._position[own], self._sessions.take(arrow_array(session, session < 0))


def _ended(sessions: pa.Table, rules: SessionRules) -> int:
    """How many of these, which are of one key and in the order of time, later rows neither join nor look at."""
    if not len(sessions):
        return 0
    if rules.until is None and rules.gap_column is None:  # the last one tells how far it reaches; ids look at its start
        start = numpy_array(sessions[1].cast(pa.int64()))
        return int(np.searchsorted(start, start[-1]))
    if not rules.cuts:
        return len(sessions) - 1
    by_gap = np.flatnonzero(numpy_array(pc.equal(sessions["session_ended_by"], "gap"), absent=False))
    return int(by_gap[-1]) + 1 if len(by_gap) else 0


def _by_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, as each part would have its own."""
    return pa.table(dict(zip(table.column_names, map(decoded, table.columns), strict=True)))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    whole = table.combine_chunks()
    return whole.to_batches()[0] if len(whole) else pa.RecordBatch.from_pylist([], schema=whole.schema)
