"""Proposals for a gap and a grace, from the data and with their price; never a silent guess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from sessionkit.advice.pauses import Pauses
from sessionkit.advice.replay import Replay, order_advice, replay_of
from sessionkit.advice.valleys import EMPTY_COUNT, Valley, curve, dents, empty_valleys
from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import DAY, HOUR, MAX_DURATION_MS, MINUTE, about, enough_ms, show_duration
from sessionkit.base.progress import progress
from sessionkit.base.text import ALL, percent, plural
from sessionkit.engine.apart import Apart
from sessionkit.errors import InvalidArgument, problem
from sessionkit.plan import Plan, plan_and_data
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.windows.hopping import TimeWindows

CLEAR_DEPTH = 1.3  # of a valley: how many times higher the lower of its two peaks is
FEWEST_PAUSES = 100
RESOLUTIONS = 4  # a valley of fewer ticks of the data's clock is not there
CURVE_POINTS = 33
MOSTLY_BEATS, BEATS = 0.9, 3  # of the pauses are alike, where a device reports; so many of them part its records
DAILY = 0.5  # of the pauses of a day or more are within 3 h of whole days, where a quarter of them would be by chance
ANY_WINDOWS = TimeWindows(size_ms=1, grace_ms=0)  # pauses are not those of windows
BURST_MS = MINUTE  # what lies closer together is a burst, not a visit


@answers_calls("suggestion")
@dataclass(frozen=True, kw_only=True, repr=False)
class GapSuggestion(Pictured):
    """A gap that the pauses between records speak for, or none.

    `gap_ms` is None where no valley is clear. `burst_ms` is a valley below a minute, which parts bursts and not visits.

    Example:
        >>> suggestion = sk.suggest_gap(waves, flights)
        >>> suggestion.gap_ms is None, suggestion.depth > 2
        (False, True)
        >>> print(suggestion.words()[0])
        gap 5 h 18 min: pauses of about 5 h 18 min are rare, shorter and longer ones 2.03 times ...
        >>> figure = suggestion.figure()
    """

    gap_ms: int | None
    depth: float
    burst_ms: int | None
    valleys: tuple[Valley, ...]
    pauses: int
    curve: tuple[Floats, Longs]  # log10 of a pause in ms; how many are so long
    keys: str
    remarks: tuple[str, ...] = ()  # on how the records were read, and on those that were left out
    beat_ms: int | None = None  # the length of nearly all pauses, where a few are several times as long
    beat_gap_ms: int | None = None  # parts the records where reports are missing
    pace_ms: int | None = None  # a valley that lies between the paces of different keys
    daily_share: float | None = None  # of the pauses of a day or more, about whole days long, where they are many

    def _judged(self, gap_ms: int, *, in_order: bool) -> str:
        """What the pauses say of a gap that was chosen, in a sentence; `in_order`: no record came too late."""
        for valley in self.valleys:
            if valley.empty_ms is not None and valley.empty_ms[0] <= gap_ms < valley.empty_ms[1]:
                same = ", so every gap between gives the same sessions" if in_order else ""
                return f"The gap is well chosen: {valley.empty_in_words()}{same}."
        begins = "No gap stands out:" if self.gap_ms is None else "A gap stands out,"
        return f"{begins} {self.words()[0].removeprefix('gap ').removeprefix('unsure: ')}"

    def words(self) -> list[str]:
        """What was found, as sentences."""
        if self.pauses < FEWEST_PAUSES:
            found = f"{plural(self.pauses, 'pause')} between records of one key"
            return [f"unsure: {found}: too few to judge (at least {FEWEST_PAUSES}).", *self.remarks]
        said, by = [], f"by {self.keys}" if self.keys else f"of {ALL}"
        best = max(self.valleys, key=lambda valley: valley.clearness, default=None)
        chosen = next((valley for valley in self.valleys if valley.gap_ms == self.gap_ms), None)
        if chosen is not None:
            others = f"shorter and longer ones {chosen.depth:.2f} times as frequent"
            rare = f"pauses of about {show_duration(chosen.gap_ms)} are rare, {others}"
            rare = rare if chosen.empty_ms is None else chosen.empty_in_words()
            sure = ", but not for sure" if chosen.is_rare and chosen.depth < EMPTY_COUNT else ""
            said.append(f"gap {show_duration(chosen.gap_ms)}{sure}: {rare} ({by}; {plural(self.pauses, 'pause')}).")
        elif self.burst_ms is not None:
            said.append(f"unsure: the pauses ({by}) have no clear valley of {show_duration(BURST_MS)} or more.")
        elif best is not None and best.empty_ms is not None:
            empty = f"{best.empty_in_words()} ({by}; {self.pauses:,} pauses)"
            said.append(f"unsure: {empty}; it may be a mere interruption.")
        elif best is not None:
            said.append(
                f"unsure: the best valley of the pauses ({by}) lies at {show_duration(best.gap_ms)}, but pauses beside "
                f"it are only {best.depth:.2f} times as frequent; {CLEAR_DEPTH} would be clear."
            )
        else:
            said.append(f"unsure: the pauses ({by}) have no clear valley; no gap separates them by itself.")
        if self.burst_ms is not None:
            at = show_duration(self.burst_ms)
            said.append(f"A valley at {at} separates bursts of records, not visits: do not take it for a session gap.")
        if self.pace_ms is not None:
            at = show_duration(self.pace_ms)
            said.append(f"A valley at {at} parts keys of different pace, not visits: some keys hardly pause for less.")
        if self.gap_ms is None and self.beat_ms is not None:
            what = f"Nearly all pauses are about {about(self.beat_ms)} long, as of a device that reports so often"
            said.append(f"{what}: a gap of {about(self.beat_gap_ms or 0)} parts the records where reports are missing.")
        if self.gap_ms is None and self.daily_share is not None:
            share = f"{percent(self.daily_share)} of the pauses of 18 h or more are within 3 h of whole days"
            said.append(f"{share}: the dips between whole days are the rhythm of the day, not the end of a visit.")
        return [*said, *self.remarks]

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The pauses over a logarithm of time, with the valleys."""
        from sessionkit.advice.figures import gap_figure

        return gap_figure(self, theme=theme)


@called_as("sk.suggest_gap(plan, data)")
def suggest_gap(plan: Plan, data: Any) -> GapSuggestion:
    """Looks for a gap in the pauses between records of one key: a length that few pauses have.

    Args:
        plan: a plan that starts with `sk.group_by_key(…)`; its windows and aggregations are ignored.
        data: what `plan.run` takes. Of a Spark DataFrame only the lengths of pauses, each once, come to this process.
    Raises:
        InvalidArgument: a streaming DataFrame.
    Example:
        >>> sk.suggest_gap(waves, flights).gap_ms // 3_600_000
        5
    """
    plan, data = plan_and_data(plan, data, "suggest_gap")
    plan = Plan(plan.source, ANY_WINDOWS)
    with replay_of(plan, data, "a suggestion", many=True) as replay:
        return gap_of(replay, ", ".join(plan.source.keys))


def gap_of(replay: Replay, keys: str) -> GapSuggestion:
    """The gap that the pauses of these records speak for; `keys` are what sentences call their key columns."""
    pauses = replay.pauses()
    logs, found, valleys = np.empty(0), np.empty(0, np.int64), tuple[Valley, ...]()
    if pauses.total >= FEWEST_PAUSES:
        tick, empty = int(np.gcd.reduce(pauses.lengths)), empty_valleys(pauses.lengths, pauses.counts)
        logs, found, height = curve(pauses.lengths, pauses.counts, tick)
        stretches = [valley.empty_ms for valley in empty if valley.empty_ms is not None]
        rare = [dent for dent in dents(logs, height) if dent.gap_ms >= RESOLUTIONS * tick]
        rare = [dent for dent in rare if not any(first <= dent.gap_ms <= last for first, last in stretches)]
        valleys = tuple(sorted([*rare, *empty], key=lambda valley: valley.gap_ms))
        if step := next((unit for unit in (DAY, HOUR) if tick % unit == 0), None):  # of days no gap of 7 d 16 h
            valleys = tuple(replace(valley, gap_ms=valley.gap_ms // step * step) for valley in valleys)
    beat_ms, beat_gap_ms = _beat_ms(pauses)
    clear = [valley for valley in valleys if valley.depth >= CLEAR_DEPTH]
    between = list(compress(clear, pauses.parts_keys([valley.gap_ms for valley in clear])))
    clear = [valley for valley in clear if valley not in between]
    longer = [each.gap_ms if each.empty_ms is None else each.empty_ms[1] for each in clear]  # behind an empty valley
    visits = [valley for valley, ms in zip(clear, longer, strict=True) if ms >= BURST_MS]
    best = max(visits, key=lambda valley: valley.clearness, default=None)
    bursts = [valley for valley in clear if valley.gap_ms < BURST_MS and valley is not best]
    return GapSuggestion(
        gap_ms=None if best is None else best.gap_ms,
        depth=max((valley.depth for valley in (visits or valleys)), default=1.0),
        burst_ms=max(bursts, key=lambda valley: valley.clearness).gap_ms if bursts else None,
        valleys=valleys,
        pauses=pauses.total,
        curve=(logs, found),
        keys=keys,
        remarks=replay.remarks,
        beat_ms=beat_ms,
        beat_gap_ms=beat_gap_ms,
        daily_share=_daily_share(pauses),
        pace_ms=max((valley.gap_ms for valley in between), default=None),
    )


def _daily_share(pauses: Pauses) -> float | None:
    is_long = pauses.lengths >= 18 * HOUR
    long, counts = pauses.lengths[is_long], pauses.counts[is_long]
    if counts.sum() < FEWEST_PAUSES or not (long % DAY).any():
        return None
    share = float(counts[(long + 3 * HOUR) % DAY <= 6 * HOUR].sum() / counts.sum())
    return share if share >= DAILY else None


def _beat_ms(pauses: Pauses) -> tuple[int | None, int | None]:
    """(the length of nearly all pauses, a gap between it and that of the longest ones)."""
    if pauses.total < FEWEST_PAUSES:
        return None, None
    usual, longest = int(pauses.median), int(pauses.lengths[-1])
    if pauses.share(np.abs(pauses.lengths - usual) <= usual / 4) < MOSTLY_BEATS or longest < 2 * usual:
        return None, None
    return usual, BEATS * usual if longest > BEATS * usual else usual * 3 // 2


# ---- grace


@answers_calls("suggestion")
@dataclass(frozen=True, kw_only=True, repr=False)
class GraceSuggestion(Pictured):
    """The smallest grace that keeps the share of records asked for, found by replaying them.

    Example:
        >>> suggestion = sk.suggest_grace(waves, flights, keep=0.98)
        >>> print(suggestion.words()[0])
        A grace of 1 h keeps 98.02% of 28,491 records (564 dropped); 98% were asked for.
        >>> figure = suggestion.figure(theme="dark")
    """

    grace_ms: int
    keep: float
    kept_share: float
    records: int
    plan: Plan
    curve: tuple[Longs, Floats]  # graces that were tried, and the share that they keep
    apart: int = 0  # sessions that are kept and stay apart from another within reach, as that had closed too early
    joining_grace_ms: int | None = None  # a grace under which none does
    remarks: tuple[str, ...] = ()  # on how they were read; why so many are behind stream time, if a cause is found

    def words(self) -> list[str]:
        """What was found, as sentences."""
        windows = self.plan._complete_windows
        dropped = round((1 - self.kept_share) * self.records)
        waits, enough = show_duration(enough_ms(windows.close_lag_ms)), enough_ms(self.grace_ms)
        grace = show_duration(enough) + (f" ({self.grace_ms:,} ms)" if enough != self.grace_ms else "")
        kept = f"A grace of {grace} keeps {percent(self.kept_share)} of {plural(self.records, 'record')}"
        return [
            f"{kept} ({dropped:,} dropped); {percent(self.keep)} were asked for."
            if self.records
            else "There are no records, so no grace can be told apart from another.",
            *(f"But {said}" for said in Apart(self.apart, self.joining_grace_ms).words(windows)),
            f"The cost: a result is final {waits} of stream time after a window's last moment.",
            *self.remarks,
        ]

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The share of records that is kept, over the grace."""
        from sessionkit.advice.figures import grace_figure

        return grace_figure(self, theme=theme)


@called_as("sk.suggest_grace(plan, data, keep=0.999)")
def suggest_grace(plan: Plan, data: Any, *, keep: float = 0.999, gap: Any = None) -> GraceSuggestion:
    """The smallest grace (to the millisecond) under which the share `keep` of the records counts in some window.

    Each try is a replay with the plan's own windows, so that the answer is exact. Records without a key or a usable
    time are not counted: no grace brings them back.

    Args:
        plan: a plan with windows; its grace does not matter.
        data: what `plan.run` takes. A Spark DataFrame is replayed in its tasks, many graces in one job.
        keep: from 0 to 1.
        gap: for session windows, an `inactivity_gap` other than the plan's.
    Raises:
        InvalidArgument: `keep` is not a share, or the data is a streaming DataFrame.
    Example:
        >>> sk.suggest_grace(waves, flights, gap="1h", keep=0.98).kept_share >= 0.98
        True
    """
    plan, data = plan_and_data(plan, data, "suggest_grace")
    share_asked: Any = keep
    if not isinstance(share_asked, int | float) or not 0 <= keep <= 1:
        raise InvalidArgument(problem("keep is a share of the records", repr(keep), "0 to 1, such as 0.999"))
    if gap is not None:
        plan = plan.with_windows(inactivity_gap=gap)
    with replay_of(plan, data, "a suggestion", many=True) as replay:
        return _grace_of(plan, replay, keep)


def _grace_of(plan: Plan, replay: Replay, keep: float) -> GraceSuggestion:
    tried: dict[int, float] = {}
    with progress("looking for a grace"):
        grace_ms = _smallest_grace_ms(plan, replay, keep, tried)
        points = np.linspace(0, max(2 * grace_ms, MINUTE), CURVE_POINTS).astype(int).tolist()
        _expect(plan, replay, points)
        for each_ms in points:
            _share(plan, replay, each_ms, tried)
    graces = np.array(sorted(tried), np.int64)
    chosen = plan.with_windows(grace_ms=grace_ms)
    apart, joining_ms = replay.joined(chosen)
    return GraceSuggestion(
        grace_ms=grace_ms,
        keep=keep,
        kept_share=tried[grace_ms],
        records=replay.usable,
        plan=chosen,
        apart=apart,
        joining_grace_ms=joining_ms,
        curve=(graces, np.array([tried[ms] for ms in graces.tolist()])),
        remarks=(*replay.remarks, *order_advice(plan, replay, partial(_smallest_grace_ms, plan, keep=keep))),
    )


def _smallest_grace_ms(plan: Plan, replay: Replay, keep: float, tried: dict[int, float] | None = None) -> int:
    """The smallest grace that keeps this share; `tried` gets what each that was tried keeps."""
    tried = {} if tried is None else tried
    doubled = [1_000 * 2**power for power in range(max(0, replay.behind_ms // 1_000).bit_length() + 1)]
    _expect(plan, replay, [0, *doubled])
    low, high = -1, 0
    while _share(plan, replay, high, tried) < keep and high < MAX_DURATION_MS // 4:
        low, high = high, max(2 * high, 1_000)
    while high - low > 1:
        middle = (low + high) // 2
        _expect(plan, replay, _middles(low, high))
        low, high = (low, middle) if _share(plan, replay, middle, tried) >= keep else (middle, high)
    return high


def _share(plan: Plan, replay: Replay, grace_ms: int, tried: dict[int, float]) -> float:
    if grace_ms not in tried:
        with progress(f"{plural(len(tried), 'grace')} tried"):
            late, records = replay.late(plan.with_windows(grace_ms=grace_ms)._complete_windows), replay.usable
        tried[grace_ms] = (records - late) / records if records else 1.0
    return tried[grace_ms]


def _expect(plan: Plan, replay: Replay, graces_ms: Iterable[int]) -> None:
    replay.expect(plan.with_windows(grace_ms=ms)._complete_windows for ms in graces_ms)


def _middles(low: int, high: int, halvings: int = 5) -> Iterator[int]:
    """What the next steps of a search between these may look at, the next one first."""
    if halvings and high - low > 1:
        middle = (low + high) // 2
        yield middle
        yield from _middles(low, middle, halvings - 1)
        yield from _middles(middle, high, halvings - 1)
