"""A slice of the places where sessionkit may have to run."""

from tests.reliability.environment import check


def test_answers_are_the_same_everywhere() -> None:
    outcome = check(seed=1, count=2)
    assert outcome.wrong == []
    assert outcome.done == 2 and outcome.noted["answers"] >= 30
