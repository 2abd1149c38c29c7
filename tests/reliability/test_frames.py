"""A slice of the long check of frames; the check itself sees what is wrong."""

from typing import Any

import pytest

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import CompiledFold
from tests.interpreted import fewer
from tests.reliability import frames

SEED = 2026


@pytest.mark.thorough
def test_a_slice_of_random_frames() -> None:
    count = fewer(800)
    told = frames.check(SEED, count)
    assert told.wrong == [], "\n".join(told.wrong)
    assert told.done == count
    assert told.noted["answered"] > count / 2
    assert told.noted["refused"] > count / 5
    assert told.noted.get("no such frame", 0) < count / 10
    assert "another error" not in told.noted


def test_a_check_of_one_seed_is_always_the_same() -> None:
    assert frames.check(SEED + 1, 40) == frames.check(SEED + 1, 40)


@pytest.mark.thorough
def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    results = CompiledFold.results

    def one_less(self: CompiledFold, rows: Any) -> Any:
        return results(self, rows[::-1])

    monkeypatch.setattr(CompiledFold, "results", one_less)
    assert any("is right" in text for text in frames.check(SEED, 200).wrong)


def test_another_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Aggregation, "check_types", fail)
    told = frames.check(SEED, 60)
    assert told.noted["another error"] == len(told.wrong) == frames.MOST_WRONG
