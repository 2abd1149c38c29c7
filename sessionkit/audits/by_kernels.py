"""An audit that kernels play, and what its results depend on: how late the looks come, and a few sessions.

With any retention that Kafka allows, a record meets the same windows as on a store that forgets nothing, but for a
session that was closed before. So it is found out once which sessions are met again; these few are played by themselves
(`met_again.py`). Of all others a retention decides one thing: whether the look for final results still finds them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from sessionkit.audits.met_again import Few, MetAgain, Spans, events_of, few_of, met_again, noticed_of
from sessionkit.audits.noticing import are_sliding, waiting_of
from sessionkit.audits.retentions import KEPT_PATHS, Losing, is_live, most_replays
from sessionkit.audits.settings import Settings
from sessionkit.audits.sides import Windows, no_windows
from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.run import null_values, runs_compiled
from sessionkit.deployed.compiled.session_cache import AHEAD, FOUND, IS_KEPT
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.independent_parts import WHOLE, span_ms
from sessionkit.deployed.lives import FORGETTING, task_store, together
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.deployed.processor_run import Deployed
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.engine.outcome import Outcome
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.run import Run
from sessionkit.stores.sizes import byte_count
from sessionkit.trace.trace import WindowColumns
from sessionkit.windows.finals import Looks
from sessionkit.windows.sliding.shown import latest_put_ms

BY_LOOKS = "found by looks"  # the part of all windows that are not met again


def kernels_know(plan: Plan, batch: RecordBatch, settings: Settings, caching: bool | str) -> bool:
    """Whether kernels play this audit, and it can be told by columns what its results depend on."""
    windows, named, strategy = plan._complete_windows, dict(plan._aggregations), plan._strategy
    can_evict = settings.is_cached and isinstance(caching, str)
    counts_bytes = plan._suppression is not None and plan._suppression.counts_bytes
    if len(settings.starts) > 1 or counts_bytes or (are_sliding(windows) and can_evict):
        return False
    store = task_store(str(settings.deployment.store), windows, strategy, settings.retention_ms)
    most = byte_count(caching, "caching") if isinstance(caching, str) else caching
    life = Life(retention_ms=settings.retention_ms, emit=strategy, caching=most)
    batch = with_idle_ticks(batch)
    return runs_compiled(windows, named, batch, store, life) and not len(null_values(named, batch))


class Seen(NamedTuple):
    """The windows that are not met again, by the looks that find them: those that hide the others."""

    time_ms: Longs  # by which the store keeps it
    observed_ms: Longs  # what the store has observed when the look comes


class ByKernels:
    """What an audit notices of runs that kernels play."""

    def __init__(
        self, plan: Plan, batch: RecordBatch, settings: Settings, *, caching: bool | str, depends: bool
    ) -> None:
        """`depends` is False where no retention can change results: then there is nothing to notice."""
        self._plan, self._batch, self._settings = plan, batch, settings
        self._caching = settings.is_cached and caching
        self._windows, self._on_disk = plan._complete_windows, settings.deployment.store == "rocksdb"
        self._holds_sessions = FORGETTING[self._windows.holds].finds_closed
        # a cache without a limit shows looks all final results of tumbling and hopping windows
        self._depends = depends and (self._holds_sessions or self._caching is not True)
        self._first: Run | None = None

    def take(self, run: Run) -> None:
        """Takes note of a run of all records; the first one tells what is the same with any retention."""
        self._first = self._first or run

    @property
    def _did(self) -> Deployed:
        """What the first run did."""
        assert self._first is not None, "it comes first"
        assert self._first.deployed is not None, "it was deployed"
        return self._first.deployed

    @property
    def _looks(self) -> Looks | None:
        return self._did.spans

    @property
    def _hangs_ms(self) -> list[int]:
        """How far behind sliding windows lie of which another retention could show some."""
        return list(self._did.answers)

    def store(self, retention_ms: int) -> Any:
        """The store of a run."""
        store = task_store(str(self._settings.deployment.store), self._windows, self._plan._strategy, retention_ms)
        if self._depends and self._caching:
            store.is_asked = True
        return store

    def waiting(self, expected: Run, run: Run) -> Windows:
        """Final results that the store still has at the end, as no look came after they had become final."""
        return waiting_of(expected, run) if self._is_on_close else no_windows(expected)

    @property
    def _is_on_close(self) -> bool:
        return self._plan._strategy == "on_window_close"

    def noticed(self, retention_ms: int, run: Run) -> Mapping[Hashable, Noticed]:
        """What the results of a run with this retention depended on, by part of the records."""
        if not self._depends:
            return {}
        assert run.deployed is not None, "it was deployed"
        noticed, smallest_ms = dict(self._found_by_looks), self._settings.default_retention_ms
        if are_sliding(self._windows):
            noticed[WHOLE] = found = Noticed()
            for behind_ms in self._hangs_ms:
                found.within(behind_ms, is_true=retention_ms > behind_ms)
        elif self._caching:
            noticed = self._noticed_behind_cache(run.deployed.answers, retention_ms)
        elif self._is_met.any():
            noticed |= self._noticed_of(self._events, retention_ms, smallest_ms, on_disk=self._on_disk)
        if self._is_met.any():
            nothing_ms = np.full_like(self._events.highest_ms, -1)
            ours = self._events._replace(highest_ms=nothing_ms)  # which look for no final results
            kept_ms = max(retention_ms, smallest_ms + 1)
            for part, each in self._noticed_of(ours, kept_ms, smallest_ms + 1, on_disk=False).items():
                noticed.setdefault(part, Noticed()).add(each)
        return noticed

    def _noticed_of(self, events: MetAgain, kept_ms: int, lowest_ms: int, *, on_disk: bool) -> dict[Hashable, Noticed]:
        return noticed_of(self._windows, events, kept_ms, lowest_ms, on_disk=on_disk, is_one=self._is_one)

    def _noticed_behind_cache(self, answers: Any, retention_ms: int) -> dict[Hashable, Noticed]:
        """What the store behind a cache was asked, but by records that are late however long it keeps sessions."""
        trace: Any = self._everything.trace
        if self._holds_sessions:
            answers = answers[(answers["what"] != FOUND) | (trace.decision[answers["at"]] != LATE)]
        # in a cache without limit each window is there as in `_everything`
        of = itertools.repeat(WHOLE) if self._is_one else trace.ended_in[answers["row"]].tolist()
        noticed: defaultdict[Hashable, Noticed] = defaultdict(Noticed)
        for part, (_, time_ms, other_ms, _, what, is_true) in zip(of, answers.tolist(), strict=False):
            if what == AHEAD:
                noticed[part].in_segments(time_ms, other_ms, retention_ms, self._span_ms)
            elif self._on_disk and what == IS_KEPT:
                noticed[part].kept(time_ms, other_ms, is_true=bool(is_true))
            else:
                noticed[part].within(other_ms - time_ms, is_true=bool(is_true))
        return noticed

    @cached_property
    def _span_ms(self) -> int:
        """How far behind the store can need a window."""
        return span_ms(self._windows, self._batch, waits=self._settings.deployment._emit_interval_ms > 0)

    def known(self, retention_ms: int) -> Outcome | None:
        """What our own rules come to with this retention, if nothing is forgotten that a record could meet."""
        if not self._depends or (self._is_met.any() and retention_ms < FOREVER_MS):
            return None
        return self._everything._outcome

    def losing(self, wrong: Windows, noticed: Mapping[Hashable, Noticed], retention_ms: int) -> Losing:
        """The parts of the records of which these results are wrong, and on what that depended."""
        if not len(wrong.start_ms):
            return ()
        if not self._depends or self._is_one:
            return ((WHOLE, noticed.get(WHOLE, Noticed())),)
        session = self._session_of(wrong)
        lost = self._lost_by_looks(retention_ms) or [noticed.get(WHOLE, Noticed())] if (session < 0).any() else []
        return (*_parts(session, noticed), *((BY_LOOKS, each) for each in lost))

    # ---- with other retentions, of the few records that decide

    def most_replays(self) -> int:
        """How often a search may replay what decides."""
        few = self.few(self._settings.default_retention_ms)
        return most_replays(len(self._batch if few is None else few.batch))

    def few(self, retention_ms: int) -> Few | None:
        """The records by which it is decided whether this retention loses nothing; None: it can be any of them."""
        suppression = self._plan._suppression
        is_limited = suppression is not None and not (suppression.is_final and suppression.most_records is None)
        if not self._depends or self._caching or is_limited or self._hides(retention_ms):
            return None
        return self._few

    def _hides(self, retention_ms: int) -> bool:
        """Whether records can have been shown other sliding windows than on a store that forgets nothing."""
        if not are_sliding(self._windows):
            return False
        return retention_ms <= max(self._hangs_ms, default=-1)

    @cached_property
    def _few(self) -> Few:
        trace: Any = self._everything.trace
        if not self._is_met.any():
            return Few(trace.batch.take(np.empty(0, np.int64)), [])
        lag_ms = None if self._plan._suppression is None else self._windows.close_lag_ms
        looks_at = np.empty(0, np.int64) if self._looks is None else self._looks.at
        return few_of(trace, self._events, looks_at, lag_ms)

    def run_few(self, few: Few, retention_ms: int) -> Run:
        """Runs these records; looks come when they come among all of them."""
        plan = self._plan
        how = Life(retention_ms=retention_ms, emit=plan._strategy, emit_interval_ms=1, clock=few.clock)
        run = plan._run_life(few.batch, self.store(retention_ms), how)
        return Run(plan, run._outcome, deployed=together((run,), ()), _store=run._store)

    def losing_of_few(self, wrong: Windows, noticed: Mapping[Hashable, Noticed], retention_ms: int) -> Losing:
        """As `losing`, where only the sessions that are met again are compared."""
        session = self._session_of(wrong)
        if self._is_one:
            return ((WHOLE, noticed.get(WHOLE, Noticed())),) if (session >= 0).any() else ()
        lost = [(BY_LOOKS, each) for each in self._lost_by_looks(retention_ms)]
        return (*_parts(session, noticed), *lost)

    # ---- the windows that no record meets once they are closed

    @property
    def _found_in_segments(self) -> bool:
        """Whether a look finds what live segments hold, whatever reads see."""
        return self._holds_sessions and self._on_disk

    @property
    def _most_behind_ms(self) -> int:
        seen, boundary_ms = self._seen, int(self._on_disk)  # of windows on disk one just `retention` behind is read
        return int((seen.observed_ms - seen.time_ms).max()) - boundary_ms

    @cached_property
    def _found_by_looks(self) -> dict[Hashable, Noticed]:
        """On what it depends that looks find them all; nothing where they do with any retention."""
        if self._looks is None or not len(self._seen.time_ms):
            return {}
        found = Noticed()
        if self._found_in_segments:
            found.live = dict(zip(self._seen.time_ms.tolist(), self._seen.observed_ms.tolist(), strict=True))
        else:
            found.more_than_ms = self._most_behind_ms
        return {BY_LOOKS: found}

    def _lost_by_looks(self, retention_ms: int) -> list[Noticed]:
        """Of the windows that looks do not find with this retention those that decide most."""
        lost: list[Noticed] = []
        if not self._found_by_looks:
            return lost
        if not self._found_in_segments:
            if retention_ms <= self._most_behind_ms:
                lost.append(Noticed())
                lost[0].at_most_ms = self._most_behind_ms
            return lost
        time_ms, observed_ms = self._seen
        gone = np.flatnonzero(~is_live(time_ms, observed_ms, np.array([retention_ms])))
        for at in gone[np.argsort(time_ms[gone] - observed_ms[gone], kind="stable")[:KEPT_PATHS]].tolist():
            lost.append(Noticed())
            lost[-1].gone[int(time_ms[at])] = int(observed_ms[at])
        return lost

    @cached_property
    def _seen(self) -> Seen:
        times, looks = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        columns = self._everything.trace.window_columns
        own_ms = columns.end_ms if self._holds_sessions else columns.start_ms
        for p, (_, highest_ms, at) in enumerate(self._spans):
            mine = own_ms[(columns.partition == p) & (columns.merged_into < 0) & ~self._is_met]
            first_ms = np.full(len(at) + 1, INT64_MAX)  # that each look finds; behind the last one what none does
            np.minimum.at(first_ms, np.searchsorted(highest_ms, mine), mine)
            is_any = first_ms[:-1] < INT64_MAX
            times.append(first_ms[:-1][is_any])
            looks.append(at[is_any])
        time_ms, observed_ms = np.concatenate(times), self._observed_with_ms(np.concatenate(looks))
        order = np.lexsort((-observed_ms, time_ms))  # one that is later hides none that is observed later still
        time_ms, observed_ms = time_ms[order], observed_ms[order]
        before_ms = np.append(-1, np.maximum.accumulate(observed_ms))[:-1]
        counts = (observed_ms > before_ms) & (observed_ms - time_ms >= self._settings.default_retention_ms)
        return Seen(time_ms[counts], observed_ms[counts])

    def _observed_with_ms(self, records: Longs) -> Longs:
        """The largest time that was put into the store of their partition, with each of these records."""
        trace: Any = self._everything.trace
        if are_sliding(self._windows):
            return latest_put_ms(trace, np.full(len(trace.batch.partitions), -1))[records]
        stream_time_ms, advance_ms = trace.stream_time_ms[records], self._windows.advance_ms
        return stream_time_ms if advance_ms is None else stream_time_ms // advance_ms * advance_ms

    @cached_property
    def _spans(self) -> Spans:
        """(lowest, highest, record) of the looks of each partition, and of one more behind its last record."""
        looks, trace, spans = self._looks, dataclasses.replace(self._everything.trace), []  # see `_met`
        if looks is None:
            return []
        first, rows = trace._by_partition
        length_ms = 1 if self._holds_sessions else self._windows.reach_ms
        for p in range(len(first) - 1):
            own = slice(looks.first[p], looks.first[p + 1])
            lowest_ms, highest_ms, at = looks.lowest_ms[own], looks.highest_ms[own], looks.at[own]
            last = rows[max(first[p], first[p + 1] - 1) : first[p + 1]]  # of a partition without records none
            end_ms = trace.stream_time_ms[last] - self._windows.close_lag_ms - length_ms
            from_ms = max(highest_ms[-1:].tolist(), default=-1) + 1
            last, end_ms = last[end_ms >= from_ms], end_ms[end_ms >= from_ms]
            begin_ms = np.full(len(last), from_ms)
            spans.append((np.append(lowest_ms, begin_ms), np.append(highest_ms, end_ms), np.append(at, last)))
        return spans

    # ---- sessions that some record meets once they are closed

    @cached_property
    def _everything(self) -> Run:
        """The same records on a store that forgets nothing."""
        run = self._plan.suppress(None)._run_batch(self._batch, retention_ms=FOREVER_MS - 1)
        if self._first is None:
            return run
        # most of its columns are those of the first run, which need no room of their own
        pairs: Any = zip(run._outcome.window_columns, self._first._outcome.window_columns, strict=True)
        columns = WindowColumns._make(b if np.array_equal(a, b) else a for a, b in pairs)
        trace = dataclasses.replace(run._outcome.kept_trace, window_columns=columns)
        return Run(run.plan, dataclasses.replace(run._outcome, window_columns=columns, kept_trace=trace))

    @property
    def _is_one(self) -> bool:
        """Whether a part has an effect on others: what suppress holds, or evicts a cache, goes by other windows too."""
        return self._plan._suppression is not None or (self._caching is not False and self._caching is not True)

    @property
    def _is_met(self) -> Flags:
        """True for each session of `_everything` that some record meets once it is closed."""
        return self._met[0]

    @property
    def _events(self) -> MetAgain:
        """What happens to these sessions."""
        _, events = self._met
        assert events is not None, "windows are no sessions"
        return events

    @cached_property
    def _met(self) -> tuple[Flags, MetAgain | None]:
        trace: Any = dataclasses.replace(self._everything.trace)  # which forgets what it works out for this
        if not self._holds_sessions:
            return np.zeros(len(trace.window_columns.key), np.bool_), None
        is_met = met_again(trace, self._windows.close_lag_ms)
        return is_met, events_of(trace, is_met, self._spans)

    def _session_of(self, windows: Windows) -> Longs:
        """The session that is met again in which each of these windows lies; -1 for none."""
        found, trace = np.full(len(windows.start_ms), -1), self._everything.trace
        columns = trace.window_columns
        session = np.flatnonzero(columns.merged_into < 0 if self._caching else self._is_met)
        if not len(session):
            return found
        keys = trace.keys.take(columns.key[session]).unique()
        code = pc.fill_null(pc.index_in(windows.key, value_set=keys), -1).to_numpy(zero_copy_only=False)
        asked = np.flatnonzero(code >= 0)
        of = pc.index_in(trace.keys.take(columns.key[session]), value_set=keys).to_numpy(zero_copy_only=False)
        starts_ms = np.unique(columns.start_ms[session])

        def places(key: Longs, partition: Longs, start_ms: Longs) -> Longs:
            number = np.searchsorted(trace.batch.partitions, partition)
            slot = number.astype(np.int64) * len(keys) + key
            return slot * len(starts_ms) + np.searchsorted(starts_ms, start_ms, "right") - 1

        place = places(of, trace.batch.partitions[columns.partition[session]], columns.start_ms[session])
        order = np.argsort(place)
        wanted = places(code[asked], windows.partition[asked], windows.start_ms[asked])
        rank = np.searchsorted(place[order], wanted, "right") - 1
        candidate = session[order[np.maximum(rank, 0)]]
        number = trace.batch.partitions[columns.partition[candidate]]
        key = of[order[np.maximum(rank, 0)]]
        is_in = (rank >= 0) & (key == code[asked]) & (number == windows.partition[asked])
        is_in &= windows.end_ms[asked] <= columns.end_ms[candidate]
        found[asked[is_in]] = candidate[is_in]
        return found


def _parts(session: Longs, noticed: Mapping[Hashable, Noticed]) -> Losing:
    met = np.unique(session[session >= 0]).tolist()
    return tuple((part, noticed.get(part, Noticed())) for part in met)
