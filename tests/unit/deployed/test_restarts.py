"""Which restarts a run is told of: rows, kinds, and the processing guarantee."""

import numpy as np
import pytest

from sessionkit.deployed.deployment import Restart, checked_restarts
from sessionkit.errors import InvalidArgument


def test_a_row_alone_finds_its_disk() -> None:
    found = checked_restarts([0, (3, "changelog"), (8, "killed"), (9, "disk")], 10)
    assert found == (Restart(0), Restart(3, "changelog"), Restart(8, "killed"), Restart(9))
    assert checked_restarts([], 0) == ()
    assert checked_restarts(np.array([2, 4]), 10) == (Restart(2), Restart(4))


@pytest.mark.parametrize(
    "rows", [[10], [-1], [1, 1], [3, (2, "killed")], [0.5], [True], ["disk"], [()], [(1, "disk", 2)], 3]
)
def test_restarts_are_rising_rows(rows: object) -> None:
    want = r"restarts must list the rows .* increasing numbers from 0 to 9, each alone or with its kind: \(40, "
    with pytest.raises(InvalidArgument, match=want):
        checked_restarts(rows, 10)
    with pytest.raises(InvalidArgument, match="none, as there are no records"):
        checked_restarts([0], 0)
    assert checked_restarts([1_000_000]) == (Restart(1_000_000),)  # of which it is not known yet how many there are


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="the kind of a restart must be a known choice; got 'crash'"):
        checked_restarts([(1, "crash")], 10)
