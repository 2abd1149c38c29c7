"""`Tuner`: one set of records under windows that change; what a tuner shows, without a widget."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from sessionkit.advice.replay import Replay
from sessionkit.advice.sweep import Sweep, sweep_replay
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND, Duration, duration_ms, show_duration
from sessionkit.errors import InvalidArgument, attempted, problem, shorten
from sessionkit.plan import Plan
from sessionkit.run import Run
from sessionkit.stores.contract import EmitStrategy
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.tables import sent_count

# Lengths that a person would choose, in ms: a step of a slider is a step of this ladder.
LADDER_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * SECOND for count in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(count * MINUTE for count in (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90)),
    *(count * HOUR for count in (2, 3, 4, 5, 6, 8, 10, 12, 16)),
    *(count * DAY for count in (1, 2, 3, 5, 7, 14, 28, 56, 91, 182, 364)),
)
_AROUND = 30  # a slider reaches so many times below and above the value it starts from
_KEPT_RUNS = 4
_SWEPT = 7  # values of each setting in the grid of what they cost


class Count(NamedTuple):
    """A number in a widget: what it counts, words below it, and what it was when a snapshot was kept."""

    name: str
    value: int
    words: str
    is_duration: bool = False
    shown: str | None = None  # how it reads, if not as a number or a length of time
    before: int | None = None


class Tuner:
    """Records that are run again under each setting that is tried."""

    def __init__(self, plan: Plan, data: Any) -> None:
        plan._check()
        self.plan = plan
        self.snapshot: Run | None = None
        self._before: dict[str, int] = {}  # the snapshot's numbers
        self.replay = Replay.of(plan, data)
        self._runs: OrderedDict[str, Run] = OrderedDict()

    @property
    def run(self) -> Run:
        """The run under the current settings."""
        name = repr(self.plan)
        if name not in self._runs:  # the newest few are kept: settings are tried back and forth
            self._runs[name] = self.plan._run_batch(self.replay.batch)
            while len(self._runs) > _KEPT_RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(name)
        return self._runs[name]

    @property
    def settings(self) -> dict[str, int]:
        parameters: Mapping[str, Any] = self.plan._complete_windows.arguments()[1]
        return {name.removesuffix("_ms"): ms for name, ms in parameters.items() if name.endswith("_ms")}

    def set(self, **changed: Duration | int) -> None:
        """Changes lengths of the windows, as `Plan.with_windows` does."""
        self.plan = self.plan.with_windows(**changed)

    def emit(self, strategy: EmitStrategy) -> None:
        """Changes when results go out."""
        plan = self.plan.emit(strategy)
        plan._check()
        self.plan = plan

    def keep(self) -> None:
        """Keeps the current run as the snapshot that later ones are compared with."""
        self.snapshot = self.run
        self._before = {count.name: count.value for count in _counts(self.run, self.replay.usable)}

    def counts(self) -> list[Count]:
        """The numbers of the current run, beside those of the snapshot."""
        now = _counts(self.run, self.replay.usable)
        return [count._replace(before=self._before.get(count.name)) for count in now]

    def sweep(self) -> Sweep:
        """What settings around the current ones cost: a grid of the first and the last length of the windows."""
        names = [*self.settings]
        chosen = names if len(names) <= 2 else [names[0], names[-1]]
        longest = max(self.settings.values()) or HOUR
        values = {
            f"{name}_ms": [
                ms for ms in _near(self.settings[name], self.settings[name] or longest) if self._can_be(name, ms)
            ]
            for name in chosen
        }
        return sweep_replay(self.plan, self.replay, values)

    def _can_be(self, name: str, value_ms: int) -> bool:
        # not with a size below the advance
        return attempted(self.plan.with_windows, **{f"{name}_ms": value_ms}, but=InvalidArgument) is not None


def plan_code(plan: Plan) -> str:
    """A plan as code to paste into a cell."""
    return f"import sessionkit as sk\n\nplan = {plan!r}"


def ladder(value_ms: int, around_ms: int, span: tuple[Duration, Duration] | None, name: str) -> list[int]:
    """The lengths that a slider offers, from short to long: round ones within a span, or around a length.

    Args:
        value_ms: the value it starts from, which is always among them.
        around_ms: without a span: the ladder goes from a thirtieth of this to thirty times as much; a grace from 0.
        span: the shortest and the longest.
        name: of the setting, for an error.
    Example:
        >>> ladder(0, 60_000, ("0s", "30s"), "grace")[:3]
        [0, 1, 2]
    """
    given: Any = span
    if span is not None and (not isinstance(given, list | tuple) or len(given) != 2):
        raise InvalidArgument(problem(f"a span of {name} has two ends", shorten(repr(given)), f'{name}=("0s", "6h")'))
    if span is None:
        low, high = around_ms // _AROUND, around_ms * _AROUND
        ends = [0] if name == "grace" else []
    else:
        low, high = (duration_ms(each, name) for each in span)
        ends = [low, high]
    if high < low:
        got = f"{show_duration(low)} to {show_duration(high)}"
        raise InvalidArgument(problem(f"the span of {name} ends before it starts", got, "swap them"))
    return sorted({*ends, value_ms, *(ms for ms in LADDER_MS if low <= ms <= high)})


def _near(value_ms: int, around_ms: int) -> list[int]:
    """A few lengths on both sides of a value, and itself."""
    steps = ladder(value_ms, around_ms, None, "grace" if value_ms == 0 else "")
    if value_ms == 0:
        return steps[:: max(len(steps) // _SWEPT, 1)][:_SWEPT]
    low = max(min(steps.index(value_ms) - _SWEPT // 2, len(steps) - _SWEPT), 0)
    return steps[low : low + _SWEPT]


def _counts(run: Run, usable: int) -> list[Count]:
    metrics, noun = run.metrics(), run.plan._complete_windows.noun
    late = int(run._outcome.dropped.get(LATE, 0))
    share = f"{late / usable:.2%} of the records" if usable else "no records"
    open_now = f"{metrics['windows-closed']:,} final, {metrics['windows-open']:,} open"
    counts = [Count(f"{noun}s", metrics["windows"], open_now)]
    dropped, end = Count("dropped", late, share), "its end"
    if isinstance(run.trace, SessionTrace):  # sessions alone merge, and are kept open by what they take in
        kept = int(run.trace.late_but_kept.sum())
        counts.append(Count("merges", metrics["windows-merged"], "times a record joined two"))
        counts += [dropped, Count("late but kept", kept, "they touched an open session")]
        end = "its last record"
    else:
        counts.append(dropped)
        if partly := int((run.trace.late_for_some & run.trace.accepted).sum()):
            counts.append(Count("partly late", partly, "too late for some of their windows"))
    lag_ms = run.plan._complete_windows.close_lag_ms
    counts.append(Count("until final", lag_ms, f"after {end}, in stream time", is_duration=True))
    sent = sent_count(run._outcome, run.plan._strategy)
    word = "finals, one a window" if run.plan._strategy == "on_window_close" else "updates and tombstones"
    counts.append(Count("sent", sent, word))
    return counts
