"""A slice of the places where sessionkit may have to run."""

import pytest

from tests.reliability.environment import check


@pytest.mark.thorough
def test_answers_are_the_same_everywhere() -> None:
    outcome = check(seed=7, count=1)
    assert outcome.wrong == []
    assert outcome.done == 1 and outcome.noted["answers"] >= 15
