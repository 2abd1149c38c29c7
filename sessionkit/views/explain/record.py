"""Why a record did what it did, in words with the numbers in them, whatever the kind of its windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, IDLE, LATE, OPENED
from sessionkit.base.durations import about, grace_with, lacked, show_duration
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.dropped import missed_by
from sessionkit.views.words import (
    PLAIN,
    clock,
    decision_in_words,
    in_zone,
    lag_words,
    lower_first,
    record_name,
    span_words,
)
from sessionkit.windows.contract import SessionKind, WindowKind

_KEPT_AHEAD = (
    'Its time lies further ahead of its arrival than max_ahead= allows: it moves no stream time, as ahead="keep" says '
    "(a rule of sessionkit's own, which Kafka does not have)."
)


class Explanation(str):
    """A few sentences; prints as they are, and shows as a paragraph in a notebook. That of a record has a picture."""

    __slots__ = ("_decision",)
    _decision: tuple[Trace, WindowKind, int] | None

    def __new__(cls, text: str = "", decision: tuple[Trace, WindowKind, int] | None = None) -> Explanation:
        explanation = super().__new__(cls, text)
        explanation._decision = decision
        return explanation

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The chain that led to a decision: the record, the close line, stream time, and the record that moved it.

        Raises:
            InvalidArgument: it explains a window, or a record that has no place in time, or came before stream time.
        Example:
            >>> run = waves.run(flights)
            >>> figure = run.explain(offset=int(run.dropped(missing_grace=False)["offset"][0])).figure()
        """
        from sessionkit.views.explain.figure import chain_figure

        if self._decision is None:
            got, want = shorten(self), "run.explain(offset=…) of a record that has a time; run.plane(key) shows windows"
            raise InvalidArgument(problem("only the decision on a record in time has a chain", got, want))
        return chain_figure(*self._decision, theme=theme)

    def __reduce__(self) -> tuple[type[Explanation], tuple[str]]:
        return Explanation, (str(self),)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}</p>")


def explain_decision(trace: Trace, windows: WindowKind, index: int) -> Explanation:
    """What became of record `index` and why, who had moved stream time, and what would keep it."""
    name, code, at = record_name(trace, index), int(trace.decision[index]), clock(trace)
    if code in PLAIN:
        return Explanation(f"{name} {PLAIN[code]}.")
    became, *more = EXPLAINED[type(trace)](trace, windows, index, at)
    said = f"{name}, event time {at(int(trace.batch.timestamp_ms[index]))}, {became}."
    if trace.batch.still is not None and trace.batch.still[index]:
        more.append(_KEPT_AHEAD)
    text = " ".join([said, *more, who_moved(trace, index), *in_zone(trace)])
    return Explanation(text, (trace, windows, index) if trace.stream_time_ms[index] >= 0 else None)


def _of_sessions(trace: SessionTrace, windows: SessionKind, index: int, at: Callable[[int], str]) -> list[str]:
    """That a record opened, joined, bridged or was dropped; then sentences with the reason."""
    code, time = int(trace.decision[index]), int(trace.batch.timestamp_ms[index])
    stream, close = int(trace.stream_time_ms[index]), int(trace.close_time_ms[index])
    words = [decision_in_words(trace, windows, index)]
    line = f"sessions that ended before {at(close)} were closed ({at(stream)}{lag_words(windows, '−')})"
    if code == LATE:
        nothing = f"No session of its key, open or closed, was {windows.near_in_words()}."
        closed = _gone_near(trace, windows, index) or [nothing]
        _, missing_ms = missed_by(trace, windows, index)
        enough, grace = grace_with(windows.grace_ms, missing_ms), show_duration(windows.grace_ms)
        kept = f"It came {lacked(missing_ms)} too late: with grace {enough} instead of {grace} it would have been kept."
        return [*words, f"It arrived when stream time was {at(stream)}, so {line}.", *closed, kept]
    if code != OPENED and time < close:
        kept = "But it was kept, as it touches a session that was still open."
        words.append(f"It was late, {about(close - time)} behind the close line: {line}. {kept}")
    return words + _gone_near(trace, windows, index)


def _gone_near(trace: SessionTrace, windows: SessionKind, index: int) -> list[str]:
    """Words for the session that a record would have joined, had it not been closed or forgotten; none if none is.

    Those that reach it with the bounds that they have at the end are looked through: bounds only grow.
    """
    time, close, columns = int(trace.batch.timestamp_ms[index]), int(trace.close_time_ms[index]), trace.window_columns
    opened_at = np.append(np.full(columns.loaded_count, -1), np.flatnonzero(trace.decision == OPENED))
    first_ms, last_ms = windows.reach_of_ms(columns.start_ms, columns.end_ms)
    is_near = (trace.window_slot == trace.slot[index]) & (first_ms <= time) & (time <= last_ms) & (opened_at < index)
    rows = np.flatnonzero(is_near & (trace.ended_in != trace.survivor[index]))
    near = [trace.bounds_before(row, index) for row in rows.tolist()]
    reached = [each for each in near if windows.reach_of_ms(*each)[0] <= time <= windows.reach_of_ms(*each)[1]]
    if not reached:
        return []
    start, end = max(reached, key=lambda bounds: (bounds[1], -bounds[0]))  # of a merge the whole
    at, gone = clock(trace), "was closed already"
    if not windows.is_ever_closed:
        gone = f"was forgotten: {windows.forgets_in_words()}"
    elif end >= close:
        gone = "the store had forgotten it"
    elif trace.decision[index] != LATE:
        enough, grace = grace_with(windows.grace_ms, close - end), show_duration(windows.grace_ms)
        gone += f": what ended before {at(close)} was; with grace {enough} instead of {grace} it would have been open"
    return [f"The session {span_words(at, start, end)} would have taken it, but {gone}."]


def who_moved(trace: Trace, index: int) -> str:
    """Which record had moved stream time to where record `index` met it."""
    if trace.stream_time_ms[index] < 0:
        return "No record had moved stream time yet."
    stream, key = clock(trace)(int(trace.stream_time_ms[index])), trace.batch.key
    mover = int(trace.moved_by(np.array([index]))[0])
    if mover < 0:
        return f"Stream time {stream} was loaded from the store, from an earlier run."
    if mover == index:
        return f"It moved stream time to {stream} itself."
    whose = (
        ", of the same key" if key[mover] == key[index] else ", of another key: stream time belongs to the partition"
    )
    by = f"{lower_first(record_name(trace, mover))}{'' if trace.decision[mover] == IDLE else whose}"
    return f"Stream time had been moved to {stream} by {by}."


NAMED_WINDOWS = 3  # so many are named one by one; of more, the first and the last


def _of_windows(trace: WindowTrace, windows: WindowKind, index: int, at: Callable[[int], str]) -> list[str]:
    """How many windows a record counts in; then sentences on those that it made, brought along or missed."""
    touches, time = trace.touches, int(trace.batch.timestamp_ms[index])
    mine = np.flatnonzero(touches.record == index)
    effect, start_ms = touches.effect[mine], touches.start_ms[mine]
    effects = (OPENED, ADDED, COPIED, COPIED_ADDED, LATE)
    starts = {each: sorted(set(start_ms[effect == each].tolist())) for each in effects}
    counted = sorted({*starts[OPENED], *starts[ADDED], *starts[COPIED_ADDED]})
    words = [f"counts in {plural(len(counted), 'window')}: {_spans(trace, at, counted)}" if counted else "was dropped"]
    made = sorted({*starts[OPENED], *starts[COPIED_ADDED]})
    if made:
        every = "it" if len(made) == 1 else "all of them"
        words.append(f"It opened {every if made == counted else _spans(trace, at, made)}.")
    if starts[COPIED]:
        what = "cut out of what later records had left there; the record itself is before it"
        words.append(f"It also makes the window {_spans(trace, at, starts[COPIED])}, {what}.")
    later = sorted(set(trace.window_columns.start_ms[trace.windows_of(index)].tolist()) - set(counted))
    if later:  # of sliding windows: copies of its own
        one, many = "A later window holds it, too, as a copy", f"{len(later):,} later windows hold it, too, as copies"
        words.append(f"{one if len(later) == 1 else many}: {_spans(trace, at, later)}.")
    if behind := [start for start in later if start > time]:
        words.append(f"It lies before {_spans(trace, at, behind)}: Kafka Streams copies a window whole.")
    stream, close_ms = at(int(trace.stream_time_ms[index])), int(trace.close_time_ms[index])
    grace = show_duration(windows.grace_ms)
    if late := starts[LATE]:
        ended, one = "before" if trace.inclusive_end else "up to", "it" if len(late) == 1 else "all of them"
        enough = grace_with(windows.grace_ms, missed_by(trace, windows, index)[1])
        words.append(
            f"It came too late for {plural(len(late), 'window')}, {_spans(trace, at, late)}: "
            f"stream time was {stream}, so windows that ended {ended} {at(close_ms)} were closed (− grace {grace}); "
            f"with grace {enough} it would have counted in {one}."
        )
    elif time < close_ms:
        kept = "its window was" if len(counted) == 1 else "its windows were"
        line = f"{about(close_ms - time)} behind the close line ({stream} − grace {grace})"
        words.append(f"It was late, {line}, but {kept} still open.")
    return words


def _spans(trace: WindowTrace, at: Callable[[int], str], starts: list[int]) -> str:
    spans = [f"{at(start)} to {at(trace.ends_ms(start))}" for start in starts]
    if len(spans) <= NAMED_WINDOWS:
        return " and ".join(", ".join(spans).rsplit(", ", 1))
    return f"{spans[0]}, …, {spans[-1]}"


EXPLAINED: dict[type[Trace], Callable[..., list[str]]] = {SessionTrace: _of_sessions, WindowTrace: _of_windows}
