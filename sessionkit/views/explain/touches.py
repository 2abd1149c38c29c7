"""Why a record counts in the windows in which it counts, in words: tumbling, hopping and sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, OPENED
from sessionkit.base.durations import grace_with, show_duration
from sessionkit.base.text import plural
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.explain.record import Explanation, explain_record, who_moved
from sessionkit.views.words import PLAIN, clock, in_zone, record_name
from sessionkit.windows.contract import WindowKind

EFFECTS = (OPENED, ADDED, COPIED, COPIED_ADDED, LATE)
NAMED_WINDOWS = 3  # so many are named one by one; of more, the first and the last


def explain_touches(trace: WindowTrace, windows: WindowKind, index: int) -> Explanation:
    """Which windows record `index` is in, made, or missed, who had moved stream time, and what would keep it."""
    at, name = clock(trace), record_name(trace, index)
    code, time = int(trace.decision[index]), int(trace.batch.timestamp_ms[index])
    if code in PLAIN:
        return Explanation(f"{name} {PLAIN[code]}.")
    touches = trace.touches
    mine = np.flatnonzero(touches.record == index)
    effect, start_ms = touches.effect[mine], touches.start_ms[mine]
    starts = {each: sorted(set(start_ms[effect == each].tolist())) for each in EFFECTS}
    counted = sorted({*starts[OPENED], *starts[ADDED], *starts[COPIED_ADDED]})
    said = f"counts in {plural(len(counted), 'window')}: {_spans(trace, at, counted)}" if counted else "was dropped"
    words = [f"{name}, event time {at(time)}, {said}."]
    made = sorted({*starts[OPENED], *starts[COPIED_ADDED]})
    if made and len(made) < len(counted):
        words.append(f"It opened {_spans(trace, at, made)}.")
    elif made:
        words.append("It opened it." if len(made) == 1 else "It opened all of them.")
    if starts[COPIED]:
        what = "cut out of what later records had left there; the record itself is before it"
        words.append(f"It also makes the window {_spans(trace, at, starts[COPIED])}, {what}.")
    words += _taken_along(trace, index, counted, at)
    if starts[LATE]:
        words.append(_missed(trace, windows, index, starts[LATE], at))
    elif time < trace.close_time_ms[index]:
        behind, grace = show_duration(int(trace.close_time_ms[index]) - time), show_duration(windows.grace_ms)
        line = f"the close line ({at(int(trace.stream_time_ms[index]))} − grace {grace})"
        kept = "its window was still open" if len(counted) == 1 else "its windows were still open"
        words.append(f"It was late, {behind} behind {line}, but {kept}.")
    words += [who_moved(trace, index), *in_zone(trace)]
    return Explanation(" ".join(words))


def _taken_along(trace: WindowTrace, index: int, counted: list[int], at: Callable[[int], str]) -> list[str]:
    """The windows that came to hold a record later, as copies of its own; of sliding windows."""
    later = sorted(set(trace.window_columns.start_ms[trace.windows_of(index)].tolist()) - set(counted))
    if not later:
        return []
    one = len(later) == 1
    said = "A later window holds it, too, as a copy" if one else f"{len(later):,} later windows hold it, too, as copies"
    words = [f"{said}: {_spans(trace, at, later)}."]
    behind = [start for start in later if start > trace.batch.timestamp_ms[index]]
    if behind:
        words.append(f"It lies before {_spans(trace, at, behind)}: Kafka Streams copies a window whole.")
    return words


def _missed(trace: WindowTrace, windows: WindowKind, index: int, starts: list[int], at: Callable[[int], str]) -> str:
    stream, close = int(trace.stream_time_ms[index]), int(trace.close_time_ms[index])
    last = trace.last_instant_ms(trace.ends_ms(np.array(starts, np.int64)))
    enough = grace_with(windows.grace_ms, int(close - last.min()))
    grace = show_duration(windows.grace_ms)
    one = len(starts) == 1
    ended = "before" if trace.inclusive_end else "up to"
    return (
        f"It came too late for {plural(len(starts), 'window')}, {_spans(trace, at, starts)}: "
        f"stream time was {at(stream)}, so windows that ended {ended} {at(close)} were closed (− grace {grace}); "
        f"with grace {enough} it would have counted in {'it' if one else 'all of them'}."
    )


def _spans(trace: WindowTrace, at: Callable[[int], str], starts: list[int]) -> str:
    spans = [f"{at(start)} to {at(trace.ends_ms(start))}" for start in starts]
    if len(spans) <= NAMED_WINDOWS:
        return " and ".join(", ".join(spans).rsplit(", ", 1))
    return f"{spans[0]}, …, {spans[-1]}"


EXPLAINED: dict[type[Trace], Callable[..., Explanation]] = {
    SessionTrace: explain_record,
    WindowTrace: explain_touches,
}


def explain_decision(trace: Any, windows: Any, index: int) -> Explanation:
    """Why record `index` opened, joined, bridged or was dropped."""
    return EXPLAINED[type(trace)](trace, windows, index)
