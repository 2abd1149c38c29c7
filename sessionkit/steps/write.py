"""`plan.write`: any number of records to folders of Parquet, a step at a time, in memory that does not grow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Longs, Rows, order_by
from sessionkit.base.decisions import DECISIONS, LATE, REASONS, REPLAYED
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.process import handing_over
from sessionkit.base.progress import progress
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import WriteFailed
from sessionkit.records.keys import key_ranks
from sessionkit.records.lateness.order import MANY, order_causes
from sessionkit.steps.notes import Note, schema_of, schema_text
from sessionkit.steps.partition_run import Steps
from sessionkit.steps.reading import STEP_RECORDS, Reading, add_remarks, read_ahead
from sessionkit.steps.targets import Place, check_apart
from sessionkit.steps.views import columns_of, trace_of
from sessionkit.steps.written import Written
from sessionkit.stores.contract import PlanStore, Snapshot, StoredColumns, no_columns
from sessionkit.stores.locking import alone_with
from sessionkit.stores.state.column_state import ColumnState
from sessionkit.views import tables
from sessionkit.views.dropped import dropped_table

TARGETS = ("table", "changelog", "dropped", "records")
TRACED_RECORDS = 500_000  # in a step, where each record has rows: these are the memory
NOTE_RECORDS = 50_000_000  # after so many it is noted how far it came


@dataclass(frozen=True, kw_only=True)
class WriteJob:
    """What to write, and where."""

    plan: str  # as code
    reading: Reading
    aggregations: Mapping[str, Aggregation]
    strategy: str
    retention_ms: int
    schemas: Mapping[str, pa.Schema]  # of each view
    paths: Mapping[str, Path]
    store: PlanStore | None
    bound: Mapping[str, str]  # what a store notes of the plan
    overwrite: bool

    @property
    def keep_trace(self) -> bool:
        return self.store is not None or {*self.paths} != {"table"}

    @property
    def can_go_on(self) -> bool:
        """Whether a later call can know that it is the same: of files, and without functions of Python."""
        return bool(self.reading.pieces.marks) and all(each.parts for each in self.aggregations.values())

    @cached_property
    def call(self) -> str:
        """A digest of all that decides what is written."""
        paths = {name: str(path.absolute()) for name, path in self.paths.items()}
        parts = [self.plan, self.bound, self.reading.pieces.marks, paths, self.retention_ms, self.store is not None]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write(job: WriteJob) -> Written:
    """Writes all of it; see `Plan.write`."""
    check_apart(job.paths)
    with alone_with(job.store):
        return _Writing(job).run()


class _Writing:
    """One call: its targets, its state, and the note of how far it has come."""

    def __init__(self, job: WriteJob) -> None:
        self._job, self._store, self._reading, self._windows = job, job.store, job.reading, job.reading.windows
        self._places = {name: Place(path, job.schemas[name]) for name, path in job.paths.items()}
        self._first = next(iter(self._places.values()))
        self._folder = self._first.aside  # where the note is
        self._is_noted = False
        numbers = [] if job.store is None else job.store.read_partitions
        self._now = {} if job.store is None else {number: job.store.snapshot(number) for number in numbers}
        self._note = self._earlier() or Note(job.call, self._now)

    def _earlier(self) -> Note | None:
        """The note of an earlier call of the same."""
        note = Note.read(self._folder) if self._job.can_go_on else None
        if note is None or note.call != self._job.call:
            return None
        is_whole = not note.state or (self._folder / note.state).exists()
        is_same = note.begun == self._now or (note.is_done and {**note.begun, **note.snapshots} == self._now)
        return note if is_whole and is_same else None

    def run(self) -> Written:
        note, job = self._note, self._job
        self._is_noted = note.rows > 0 or note.is_done
        if not note.is_done:
            for place in self._places.values():
                place.check(overwrite=job.overwrite)
        with ExitStack() as stack:
            for name, place in self._places.items():
                stack.push(partial(self._end, place))
                place.begin(files=note.files.get(name, {}))
                if name in note.schemas:
                    place.schema = schema_of(note.schemas[name])
            if not note.is_done:
                self._decide_all()
            for place in self._places.values():
                place.place(note.owner, overwrite=job.overwrite)
            self._commit()
            for place in [*self._places.values()][::-1]:
                place.clear()
                if place is not self._first:
                    place.end(remove=True)
            note.forget(self._folder)  # last, so that a call after a kill removes what is left
        return self._written()

    def _end(self, place: Place, kind: Any, error: BaseException | None, trace: Any) -> None:
        can_be_mended = isinstance(error, WriteFailed | MemoryError | KeyboardInterrupt)
        place.end(remove=not (self._is_noted and can_be_mended))

    # ---- the steps

    def _decide_all(self) -> None:
        job, note, state = self._job, self._note, self._begun_state()
        # what the store has read already is passed over, as in a run
        began = {number: note.begun.get(number, Snapshot()).position for number in state.snapshots}
        read = {number: each.position for number, each in state.snapshots.items() if each.position > began[number]}
        steps = Steps(self._windows, job.aggregations, job.retention_ms, state, keep_trace=job.keep_trace, read=read)
        most, rows = TRACED_RECORDS if job.keep_trace else STEP_RECORDS, self._reading.pieces.rows
        noted, batch = note.rows, self._reading.none
        note.remarks = note.remarks or [*self._reading.pieces.head.remarks]
        with progress("writing", rows) as reached, handing_over() as hand:
            waiting: Callable[[], object] = _nothing
            for _, batch in read_ahead(self._reading.batches(note.rows, most)):
                outcome, left = steps.take(batch)
                self._count(outcome)
                waiting()
                waiting = hand(partial(self._put_step, outcome, left))
                reached(note.rows)
                if job.can_go_on and note.rows - noted >= NOTE_RECORDS:
                    waiting()
                    waiting, noted = _nothing, note.rows
                    self._take_note(state)
            waiting()
        if note.rows and "table" in self._places:
            self._places["table"].part(table_columns(*steps.finish(batch), note.begun))
        note.is_done = True
        self._take_note(state)

    def _begun_state(self) -> ColumnState:
        """The state that the first step goes on from: that of an earlier call, or the store's."""
        note, state = self._note, ColumnState(self._windows.holds)
        if not note.rows:
            if (stored := self._stored()) is not None:
                state.fill(stored, self._now)
            return state
        state.snapshots = dict(note.snapshots)
        if (held := note.windows(self._folder, self._windows.holds)) is not None:
            state.fill(held, note.snapshots, untouched=note.untouched)
        return state

    def _stored(self) -> StoredColumns | None:
        if self._store is None or not self._now:
            return None
        kind = self._reading.none.keys.type
        return self._store.load(pa.nulls(0, kind), dict.fromkeys(self._now, INT64_MAX), tuple(self._job.aggregations))

    def _count(self, outcome: Outcome) -> None:
        note, batch = self._note, outcome.batch
        if not note.rows:
            note.remarks += self._why_late(outcome)
        note.rows += len(batch)
        note.counts.update(outcome.dropped)
        note.merges += outcome.merge_count
        add_remarks(note.remarks, batch)

    def _why_late(self, outcome: Outcome) -> list[str]:
        """Why many records of the first step came too late, where a cause is found."""
        late, batch = outcome.dropped.get(LATE, 0), outcome.batch
        if late < MANY * len(batch):  # to look for a cause takes as long as to decide
            return []
        first = "" if len(batch) == self._reading.pieces.rows else "Of the records that were read first, "
        lag_ms = self._windows.close_lag_ms
        return [first + each.words(late, lag_ms) for each in order_causes(batch, self._reading.source, lag_ms, late)]

    def _put_step(self, outcome: Outcome, left: Rows) -> None:
        views: dict[str, Callable[[], Mapping[str, Any]]] = {
            "table": lambda: table_columns(outcome, left, self._note.begun),
            "changelog": lambda: shown(outcome, tables.changelog(outcome, self._job.strategy)),
            "dropped": lambda: shown(
                outcome, columns_of(dropped_table(trace_of(outcome), self._windows, missing_grace=False))
            ),
            "records": lambda: columns_of(trace_of(outcome).records()),
        }
        for name, place in self._places.items():
            place.part(views[name]())

    # ---- how far it came

    def _take_note(self, state: ColumnState) -> None:
        note = self._note
        for name, place in self._places.items():
            place.close(last=note.is_done)
            note.files[name], note.schemas[name] = place.files, schema_text(place.schema)
        note.snapshots, note.untouched = state.snapshots, state.untouched
        if self._job.can_go_on or self._store is not None:
            with self._first.results.writing(self._folder):
                note.save(self._folder, state.everything)
            self._is_noted = self._job.can_go_on

    def _commit(self) -> None:
        """Moves the store on, once."""
        note, store, job = self._note, self._store, self._job
        if store is None or note.begun != self._now:  # an earlier call did, and was killed before it ended
            return
        held = note.windows(self._folder, self._windows.holds)
        before = self._stored()
        key = pa.nulls(0, self._reading.none.keys.type).type
        none = no_columns(self._windows.holds, key, job.aggregations)
        store.bind(job.bound)
        store.commit(none if before is None else before, none if held is None else held, note.snapshots)

    def _written(self) -> Written:
        note, job = self._note, self._job
        reasons = {code: count for code, count in note.counts.items() if code in REASONS and code != REPLAYED}
        words = {**DECISIONS, **REASONS}
        return Written(
            folders=dict(job.paths),
            rows={name: sum(files.values()) for name, files in note.files.items()},
            counts={words[code]: note.counts[code] for code in words if note.counts[code]},
            merges=note.merges,
            record_count=note.rows,
            dropped_count=sum(reasons.values()),
            _remarks=[*note.remarks, *self._reading.lacking(reasons, note.rows)],
        )


def _nothing() -> None:
    """Waits for nothing."""


# ---- rows as they are written


def shown(outcome: Outcome, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with keys and times as the plan shows them."""
    return outcome.batch.form.shown(columns)


def table_columns(outcome: Outcome, left: Rows, begun: Mapping[int, Snapshot]) -> dict[str, Any]:
    """`run.table()` of the windows at `left`, in the order of closing.

    Left out: what is no result, and what a store gave that had closed before it was read, and that no record met since.
    """
    windows = outcome.window_columns
    position = np.array(
        [begun.get(number, Snapshot()).position for number in outcome.batch.partitions.tolist()], np.int64
    )
    closed_before = windows.closed_before[left]
    is_new = (closed_before < 0) | (closed_before > position[windows.partition[left]])
    rows = closing_order(outcome, left[outcome.is_result[left] & is_new])
    return shown(outcome, tables.window_table(outcome, rows))


def closing_order(outcome: Outcome, rows: Rows) -> Longs:
    """The windows by partition and end, which is the order of closing; those of one end by key bytes and start.

    What is open comes last. So the order in a partition does not depend on where the steps are cut.
    """
    windows = outcome.window_columns
    rows = rows[order_by(~outcome.closed[rows], windows.partition[rows], windows.end_ms[rows])]
    partition, end_ms = windows.partition[rows], windows.end_ms[rows]
    is_tie = (partition[1:] == partition[:-1]) & (end_ms[1:] == end_ms[:-1])
    tied = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie)) if len(rows) else rows[:0]
    if len(tied):
        keys, code = np.unique(windows.key[rows[tied]], return_inverse=True)
        rank = key_ranks(outcome.keys.take(pa.array(keys)))[code]
        group = np.cumsum(np.append(True, ~is_tie))[tied]
        rows[tied] = rows[tied][order_by(group, rank, windows.start_ms[rows[tied]])]
    return rows
