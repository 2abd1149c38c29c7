"""A slice of the long check of states in shared memory."""

from tests.reliability.shared_memory import check


def test_a_damaged_state_is_not_believed_and_nothing_else_is_touched() -> None:
    outcome = check(seed=1, count=3_000)
    assert outcome.wrong == []
    assert outcome.done == 3_000
    assert outcome.noted["right"] and outcome.noted["refused"] > 2_800
