"""`collect` over sessions that merge: whole lists, those of absorbed sessions, and some twice."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.aggregations import fold_loops
from sessionkit.aggregations.accumulators import Lists
from sessionkit.trace.trace import Merges
from tests.interpreted import fewer


def merges_of(steps: list[tuple[int, int, int]]) -> Merges:
    at, into, absorbed = (np.array(column) for column in zip(*steps, strict=True)) if steps else [np.empty(0)] * 3
    return Merges(at.astype(np.int64), into.astype(np.int32), absorbed.astype(np.int32))


def test_a_session_that_was_absorbed_keeps_its_own_list() -> None:
    """As a final result that went out before the merge asks for it: it read memory that nothing had filled."""
    lists = Lists(pa.array([10, 11, 12, 13, 14]), pa.array([], pa.list_(pa.int64())))
    lists.grow(3)
    # 2 is absorbed by 1 at the fourth record, 1 by 0 at the fifth
    lists.feed(np.array([0, 1, 2, 1, 0], np.int32), merges_of([(3, 1, 2), (4, 0, 1)]), 0)
    assert lists.at(np.array([0])).to_pylist() == [[10, 11, 12, 13, 14]]
    assert lists.at(np.array([2, 1, 1, 0])).to_pylist() == [[12], [11, 12, 13], [11, 12, 13], [10, 11, 12, 13, 14]]
    assert lists.at(np.array([1])).to_pylist() == [[11, 12, 13]]
    assert lists.at(np.array([], np.int64)).to_pylist() == []


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_lists_of_python_hold(seed: int) -> None:
    """Random windows, merges, loaded lists and chunks; asked for are any windows, in any order, some twice."""
    if seed >= fewer(40):
        return
    rng = np.random.default_rng(seed)
    held: list[list[Any]] = [list(range(100 * n, 100 * n + int(rng.integers(0, 4)))) for n in range(3)]
    loaded = pa.array(held, pa.list_(pa.int64()))
    size, alive = 30, [0, 1, 2]
    window, steps = np.empty(size, np.int32), []
    for i in range(size):
        lot = rng.random()
        if lot < 0.3 or not alive:
            held.append([])
            alive.append(len(held) - 1)
            window[i] = alive[-1]
        elif lot < 0.4:
            window[i] = -1
            continue
        else:
            window[i] = rng.choice(alive)
            if lot < 0.6 and len(alive) > 1:
                other = int(rng.choice([each for each in alive if each != window[i]]))
                steps.append((i, int(window[i]), other))
                held[window[i]] = held[window[i]] + held[other]
                alive.remove(other)
        held[window[i]] = [*held[window[i]], 1_000 + i]
    lists, cut = Lists(pa.array(np.arange(1_000, 1_000 + size)), loaded), int(rng.integers(0, size))
    for lo, hi in ((0, cut), (cut, size)):
        lists.grow(len(held))
        lists.feed(window[lo:hi], merges_of([(at - lo, into, gone) for at, into, gone in steps if lo <= at < hi]), lo)
    for count in (1, 5, 3 * len(held)):
        rows = rng.integers(0, len(held), count)
        assert lists.at(rows).to_pylist() == [held[row] for row in rows]
    assert lists.at(np.array(alive)).to_pylist() == [held[row] for row in alive]


def test_lists_are_asked_for_between_merges() -> None:
    lists = Lists(pa.array([10, 11, 12, 13, 14]), pa.array([], pa.list_(pa.int64())))
    lists.grow(3)
    lists.feed(np.array([0, 1, 2, 1], np.int32), merges_of([(3, 1, 2)]), 0)
    assert lists.at(np.array([1, 2])).to_pylist() == [[11, 12, 13], [12]]
    lists.feed(np.array([0], np.int32), merges_of([(0, 0, 1)]), 4)
    assert lists.at(np.array([0, 1, 2])).to_pylist() == [[10, 11, 12, 13, 14], [11, 12, 13], [12]]


def test_ways_are_shortened_only_after_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are asked for again and again; going through all windows each time would cost more than they do."""
    shortened: list[int] = []
    monkeypatch.setattr(fold_loops, "shorten_ways", lambda into, behind: shortened.append(len(into)))
    lists = Lists(pa.array([10, 11, 12]), pa.array([], pa.list_(pa.int64())))
    lists.grow(3)
    lists.feed(np.array([0, 1, 2], np.int32), merges_of([]), 0)
    for row in range(3):
        assert lists.at(np.array([row])).to_pylist() == [[10 + row]]
    assert not shortened
    absorbing = Lists(pa.array([10, 11, 12]), pa.array([], pa.list_(pa.int64())))
    absorbing.grow(2)
    absorbing.feed(np.array([0, 1, 0], np.int32), merges_of([(2, 0, 1)]), 0)
    absorbing.at(np.array([0]))
    absorbing.at(np.array([0]))
    assert shortened == [2]
