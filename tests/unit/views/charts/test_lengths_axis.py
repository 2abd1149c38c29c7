"""Axes of lengths of time have round places, as many as there is room for, in the units that a person would choose."""

import numpy as np
import pytest

from sessionkit.views.drawing.time_axis import MOST_TICKS, ROUND_MS, lengths_axis, takes_logarithm

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(("high_ms", "first", "last"), [
    (9, ["0 s", "1 ms"], "9 ms"), (90_000, ["0 s", "10 s"], "1 min 30 s"), (2 * HOUR, ["0 s", "15 min"], "2 h"),
    (83 * HOUR, ["0 s", "12 h"], "3 d"), (900 * DAY, ["0 s", "180 d"], "900 d"),
    (300 * 365 * DAY, ["0 s", "14,600 d"], "102,200 d"),
])  # fmt: skip
def test_places_of_a_linear_axis(high_ms: int, first: list[str], last: str) -> None:
    axis = lengths_axis(0, high_ms)
    assert axis["ticktext"][:2] == first and axis["ticktext"][-1] == last
    assert len(axis["tickvals"]) <= MOST_TICKS + 1


def test_places_of_a_logarithmic_axis_are_round_and_apart() -> None:
    for low, high in ((1, 10), (40, 9_000), (MINUTE, 30 * DAY), (HOUR, 4_000 * DAY), (1, 10**15)):
        axis = lengths_axis(low, high, logarithmic=True)
        ticks = axis["tickvals"]
        assert 2 <= len(ticks) <= MOST_TICKS + 1
        assert set(ticks) <= {*ROUND_MS, *(3_650 * DAY * 10**power for power in range(5))}
        assert axis["range"] == pytest.approx([np.log10(low), np.log10(high)])
        assert np.diff(np.log10(ticks)).min() >= (axis["range"][1] - axis["range"][0]) / MOST_TICKS


def test_a_logarithm_is_taken_where_most_lengths_are_short() -> None:
    assert takes_logarithm(np.array([MINUTE] * 95 + [30 * DAY] * 5))
    assert not takes_logarithm(np.arange(1, 100) * MINUTE)
    assert not takes_logarithm(np.array([MINUTE, MINUTE + 1]))
    assert not takes_logarithm(np.array([], np.int64))
