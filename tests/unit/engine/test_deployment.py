"""What a run under Kafka's rules is told of the deployment: checked, and cut where the task is restarted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.deployed.deployment import Deployment, commits_by, deployment, times_of_clock
from sessionkit.errors import InvalidArgument
from sessionkit.stores.cache.named_cache import Room


def told(**given: Any) -> Deployment:
    named = {"caching": False, "commit_every": None, "emit_interval": None, "wall_clock": None, "count": 10} | given
    return deployment("on_window_close", 100, **named)


@pytest.mark.parametrize(
    ("every", "rows"),
    [(None, None), (1, range(10)), (3, (2, 5, 8)), (10, (9,)), (11, ()), ([0, 4, 4], (0, 4))],
)
def test_a_task_commits_after_every_so_many_records(every: Any, rows: Any) -> None:
    assert told(commit_every=every).commits == (None if rows is None else frozenset(rows))


@pytest.mark.parametrize(
    ("given", "telling"),
    [
        ({"caching": -1}, "caching must be True, False or a size; got -1"),
        ({"caching": "yes"}, "caching is no number of bytes; got 'yes'; a whole number with B, KB, MB or GB"),
        ({"caching": 2.5}, "caching must be True, False or a size; got 2.5"),
        ({"commit_every": 0}, "commit_every must be positive; got 0"),
        ({"commit_every": -3}, "commit_every must be positive; got -3"),
        ({"wall_clock": 5}, "wall_clock"),
        ({"wall_clock": [1] * 9}, "wall_clock must have one time for each record; got 9 for 10"),
        ({"wall_clock": [1] * 11}, "wall_clock must have one time for each record; got 11 for 10"),
        ({"wall_clock": [1.5] * 10}, "wall_clock must give whole milliseconds; got 1.5"),
        ({"wall_clock": [True] * 10}, "wall_clock must give whole milliseconds; got True"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument, match=telling):
        told(**given)


@pytest.mark.parametrize(
    ("caching", "room"),
    [
        (True, True),
        (False, False),
        (0, Room(0)),
        (70, Room(70)),
        ("10MB", Room(10_485_760, in_bytes=True)),
        (" 512 kb ", Room(524_288, in_bytes=True)),
        ("0B", Room(0, in_bytes=True)),
    ],
)
def test_a_cache_is_a_choice_or_a_size(caching: bool | int | str, room: bool | Room) -> None:
    assert told(caching=caching).caching == room


@pytest.mark.parametrize("clock", [list(range(10)), pa.array(range(10)), pa.chunked_array([range(10)]), np.arange(10)])
def test_a_clock_is_a_time_for_each_record(clock: Any) -> None:
    assert told(wall_clock=clock).wall_clock == list(range(10))


def test_a_clock_may_be_a_function_whose_answers_are_checked() -> None:
    clock = told(wall_clock=iter([7, "late"]).__next__).wall_clock
    assert callable(clock)
    assert clock() == 7
    with pytest.raises(InvalidArgument, match="wall_clock must give whole milliseconds; got 'late'"):
        clock()


def test_an_interval_is_a_length_of_time() -> None:
    assert told(emit_interval="2s").emit_interval_ms == 2_000
    assert told().emit_interval_ms == 0


def test_a_life_of_a_task_has_its_part_of_the_clock_and_of_the_commits() -> None:
    whole = told(commit_every=[0, 3, 4, 6, 7], wall_clock=list(range(100, 110)), caching=7)
    part = whole.part(3, 7)
    assert part.commits == {0, 1, 3}  # rows 3, 4 and 6; row 7 is the next life's
    assert part.wall_clock == [103, 104, 105, 106]
    assert (part.caching, part.emit, part.retention_ms) == (Room(7), "on_window_close", 100)
    assert told().part(3, 7) == told()


def test_a_clock_that_is_a_function_goes_on_in_the_next_life() -> None:
    times = iter(range(5))
    part = told(wall_clock=lambda: next(times)).part(1, 2)
    assert callable(part.wall_clock)
    assert [part.wall_clock(), part.wall_clock()] == [0, 1]


def test_a_task_commits_when_more_than_the_interval_has_passed() -> None:
    """The clock of a life starts with its first record, and each commit starts the interval anew."""
    clock = [5, 15, 16, 26, 27, 20, 99, 99]
    assert commits_by(clock, 10, [0]) == [2, 4, 6]
    assert commits_by(clock, 10, [0, 2]) == [4, 6]
    assert commits_by(clock, 0, [0]) == [1, 2, 3, 4, 6]
    assert commits_by([-50, -45, -39], 10, [0]) == [2]  # a clock may stand before 1970
    assert commits_by([], 10, [0]) == []


def test_the_times_of_a_clock() -> None:
    assert times_of_clock(None, 3) is None
    assert times_of_clock(np.arange(3), 3) == [0, 1, 2]
    assert times_of_clock(iter([7, 8, 9]).__next__, 2) == [7, 8]
    with pytest.raises(InvalidArgument, match="got 3 for 2"):
        times_of_clock([1, 2, 3], 2)
