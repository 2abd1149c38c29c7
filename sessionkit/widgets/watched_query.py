"""What a widget that watches a query shows, without the widget: numbers, partitions, and the windows of chosen keys."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, TextIO

from sessionkit.base.durations import show_duration
from sessionkit.base.moments import show_time
from sessionkit.base.text import plural
from sessionkit.spark.checkpoint import KEPT_WINDOWS
from sessionkit.spark.query.progress import QueryProgress
from sessionkit.spark.query.running import Running
from sessionkit.views.words import records_dropped
from sessionkit.widgets.tuner import Count

TITLES = ("partition", "last offset", "stream time", "closed up to", "records", "dropped", "windows", "")
_LINE_S = 10.0  # between two lines where a line cannot be written over


def counts(progress: QueryProgress) -> list[Count]:
    """The numbers of a query as of its last micro-batch."""
    total, batches = progress.counts(), progress.batches
    if not batches:
        return [Count("micro-batches", 0, "waiting for the first one")]
    last = batches[-1]
    records, seconds = sum(each.records for each in batches), sum(each.seconds for each in batches)
    speed = f"{records / seconds:,.0f} a second" if seconds else "so far"
    states = ""
    if "windows" in total:  # a state from before they were counted does not have them
        states = f"; {total['windows-open']:,} are open, {total['windows-closed']:,} closed so far"
    if expected := progress.expected_windows:
        states += f"; at this rate about {expected:,} are to be expected, more where sessions last long"
    dropped = records_dropped(total)
    share = f"{dropped / total['process-total']:.1%} of the records" if dropped else "none so far"
    shown = [
        Count("records", total["process-total"], speed),
        Count("dropped", dropped, share),
        Count("merged", total["windows-merged"], "times a session was joined with another"),
        Count("windows", progress.windows, f"in the state now{states}"),
        Count("state", last.state_bytes, "in Spark's state store", shown=_bytes(last.state_bytes)),
        Count("micro-batches", last.number + 1, f"the last took {show_duration(round(last.seconds * 1000))}"),
    ]
    if not total["windows-merged"]:
        del shown[2]
    if last.behind is not None:
        shown.append(Count("behind", last.behind, "records that the topic has and the query has not"))
    return shown


# Spark's names of what a micro-batch spends its time on, in words
_SPENT = {
    "latestOffset": "asking the source what is new",
    "getBatch": "fetching what is new",
    "queryPlanning": "planning",
    "walCommit": "noting what will be read",
    "addBatch": "running the plan",
    "commitOffsets": "noting what was done",
    "commitBatch": "noting what was done",
}
# and what its tasks spend it on
_SPENT_BY_TASKS = {
    "read_us": "reading",
    "pack_us": "packing for the shuffle",
    "unpack_us": "unpacking behind it",
    "state_us": "reading the state",
    "engine_us": "playing the records",
}
_WORTH_TELLING = 0.01  # of a micro-batch's time


def time_spent(progress: QueryProgress) -> str:
    """Where the time of the last micro-batch went, the most first; "" before the first one."""
    if not progress.batches:
        return ""
    last = progress.batches[-1]
    total_ms = last.spent_ms.get("triggerExecution", round(last.seconds * 1000))
    parts = sorted(((ms, _SPENT[name]) for name, ms in last.spent_ms.items() if name in _SPENT), reverse=True)
    told = [f"{show_duration(ms)} {what}" for ms, what in parts if ms >= _WORTH_TELLING * total_ms]
    if last.update_ms and told:
        written = f", and {show_duration(last.commit_ms)} to write it" if last.commit_ms else ""
        told.append(f"in it {show_duration(last.update_ms)} of all tasks together in sessionkit and the state{written}")
    now = [each for each in progress.partitions.values() if each.batch == last.number]
    took_ms = {
        what: sum(getattr(each, name, 0) for each in (last, *now)) // 1_000 for name, what in _SPENT_BY_TASKS.items()
    }
    tasks = [f"{show_duration(ms)} {what}" for what, ms in took_ms.items() if ms]
    tasks_told = f" Its tasks together spent {', '.join(tasks)}." if tasks else ""
    spent = f": {', '.join(told)}" if told else ""
    took = f"Micro-batch {last.number} took {show_duration(total_ms)} for {plural(last.records, 'record')}"
    return f"{took}{spent}.{tasks_told}"


class Pulse:
    """Since when a query has been doing what it does: what is asked of Spark now and then becomes a sentence.

    Example:
        >>> pulse = Pulse(100.0)
        >>> pulse.words(QueryProgress("clicks"), Running(True, "Initializing sources"), 107.0)
        'No micro-batch has ended yet. Micro-batch 0 has been running for 7 s: Initializing sources.'
    """

    def __init__(self, started_s: float) -> None:
        self._since_s, self._doing = started_s, (0, True)

    def words(self, progress: QueryProgress, now: Running | None, now_s: float) -> str:
        """What goes on at this second; "" once the query has ended."""
        if progress.ended:
            return ""
        number = progress.batches[-1].number + 1 if progress.batches else 0
        none_yet = "" if progress.batches else "No micro-batch has ended yet. "
        is_active = True if now is None else now.is_active or not progress.batches
        if (number, is_active) != self._doing:
            self._since_s, self._doing = now_s, (number, is_active)
        for_s = show_duration(max(round(now_s - self._since_s), 0) * 1000)
        message = f": {now.message}" if now is not None and now.message else ""
        if not is_active:
            return f"Between two micro-batches for {for_s}{message}."
        tasks = ""
        if now is not None and now.tasks:
            tasks = f" {now.done:,} of {plural(now.tasks, 'task')} {'is' if now.done == 1 else 'are'} done."
        read = f" They have read {plural(now.records, 'record')} so far." if now is not None and now.records else ""
        return f"{none_yet}Micro-batch {number} has been running for {for_s}{message}.{tasks}{read}"


def partition_rows(progress: QueryProgress) -> list[tuple[str, ...]]:
    """A row for each partition, for the columns `TITLES`."""
    rows, zone = [], progress.timezone
    times_ms = [each.stream_time_ms for each in progress.partitions.values()]
    slowest_ms, newest_ms = min(times_ms, default=0), max(times_ms, default=0)
    for number, each in sorted(progress.partitions.items()):
        note = f"idle since micro-batch {each.batch}: its stream time stands still" if progress.is_idle(number) else ""
        if not note and each.stream_time_ms == slowest_ms < newest_ms:
            note = f"the slowest: its stream time is {show_duration(newest_ms - slowest_ms)} behind the newest"
        rows.append(
            (
                *(str(number), f"{each.position:,}", show_time(each.stream_time_ms, zone)),
                show_time(each.last_close_time_ms, zone) if each.last_close_time_ms >= 0 else "nothing yet",
                *(f"{count:,}" for count in (each.counts["process-total"], records_dropped(each.counts))),
                *(f"{each.windows:,}", note),
            )
        )
    return rows


class KeptWindows:
    """The windows of chosen keys: those in the state when it was last looked at, and those that have closed since.

    A session that grew or was joined to another is shown as it is now.

    Example:
        >>> kept = KeptWindows()
        >>> kept.take([{"partition": 0, "key": "ada", "window_start_ms": 0, "last_ms": 5}], {0: 3})
        >>> [row["closed"] for row in kept.rows()]
        [False]
        >>> kept.take([], {0: 9})
        >>> [row["closed"] for row in kept.rows()]
        [True]
    """

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[int, Any, int], dict[str, Any]] = OrderedDict()

    def take(self, held: Iterable[dict[str, Any]], close_time_ms: dict[int, int]) -> None:
        """What the state holds now, and up to when each partition's windows are closed."""
        now = {(row["partition"], row["key"], row["window_start_ms"]): row for row in held}
        for place, row in [*self._rows.items()]:
            is_closed = row["last_ms"] < close_time_ms.get(row["partition"], -1)
            if place not in now and not is_closed:  # it is part of a larger one now
                del self._rows[place]
        self._rows.update(now)
        for row in self._rows.values():
            row["closed"] = row["last_ms"] < close_time_ms.get(row["partition"], -1)
        while len(self._rows) > KEPT_WINDOWS:
            self._rows.popitem(last=False)

    def rows(self) -> list[dict[str, Any]]:
        return [self._rows[place] for place in sorted(self._rows, key=lambda each: (str(each[1]), each[0], each[2]))]

    def clear(self) -> None:
        """Forgets all of them."""
        self._rows.clear()


class ProgressLine:
    """A line in a terminal that follows a query: written over where that can be, else a new one now and then."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._width, self._written, self._line = 0, 0.0, "nothing yet"

    def __repr__(self) -> str:
        return f"ProgressLine: {self._line}"

    def show(self, progress: QueryProgress) -> None:
        """Writes where the query stands."""
        line, now = progress.line(), time.monotonic()
        self._line = line
        if self._out.isatty():
            end = "\n" if progress.ended else ""
            self._out.write(f"\r{line:<{self._width}}{end}")
            self._width = len(line)
        elif progress.ended or now - self._written >= _LINE_S or not self._written:
            self._out.write(f"{line}\n")
            self._written = now
        self._out.flush()


def _bytes(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000  # type: ignore[assignment]
    return f"{size:.1f} GB"
