"""A slice of the disks that fill up."""

import pytest

from tests.reliability.full_disk import check


@pytest.mark.thorough
def test_a_full_disk_costs_nothing_that_was_there() -> None:
    outcome = check(seed=1, count=60)
    assert outcome.wrong == []
    assert outcome.noted["had room"] >= 5 and outcome.noted["WriteFailed"] >= 20
