"""The smallest grace of a round length that drops no record."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from sessionkit.advice.replay import Replay
from sessionkit.base.durations import MAX_DURATION_MS
from sessionkit.plan import Plan

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
ROUND_MS = (
    0,
    *(seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 3, 7, 14, 30, 60, 90, 180)),
    *(365 * _DAY * 2**power for power in range(27)),
)


def smallest_round_grace_ms(plan: Plan, data: Any) -> int:
    """The smallest of the round graces under which no record is late, found by replaying the records.

    Args:
        plan: a plan with windows; its grace does not matter.
        data: what `plan.run` takes, except Spark DataFrames.
    Example:
        >>> smallest_round_grace_ms(plan, monday)
        0
    """
    replay = Replay.of(plan, data)

    def keeps_all(grace_ms: int) -> bool:
        return replay.counts(plan.with_windows(grace_ms=grace_ms).complete_windows).late == 0

    steps = [step for step in ROUND_MS if step < MAX_DURATION_MS // 4]
    return steps[min(bisect_left(steps, True, key=keeps_all), len(steps) - 1)]
