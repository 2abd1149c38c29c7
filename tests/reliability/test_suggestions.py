"""A slice of the long check of suggestions; the check itself sees what is wrong."""

from typing import Any

import pytest

from sessionkit.advice import valleys as choosing
from sessionkit.advice.replay import Counts, Replay
from tests.reliability import suggestions

SEED = 2026


@pytest.mark.thorough
def test_a_slice_of_random_suggestions() -> None:
    told = suggestions.check(SEED, 120)
    assert told.wrong == [], "\n".join(told.wrong)
    assert told.done == 120
    assert told.noted["grace above 0"] > 8
    assert told.noted["drops some"] > 8
    assert told.noted["cells with drops"] > 30
    assert told.noted["a gap"] > 15
    assert all(told.noted[name] for name in ("one hump", "two humps", "three humps", "few"))


def test_a_check_of_one_seed_is_always_the_same() -> None:
    assert suggestions.check(SEED + 1, 12) == suggestions.check(SEED + 1, 12)


@pytest.mark.thorough
def test_a_wrong_count_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, late = Replay.counts, Replay.late

    def one_fewer(self: Replay, windows: Any) -> Counts:
        told = counts(self, windows)
        return told._replace(late=max(0, told.late - 1))

    monkeypatch.setattr(Replay, "counts", one_fewer)
    monkeypatch.setattr(Replay, "late", lambda self, windows: max(0, late(self, windows) - 1))
    wrong = "\n".join(suggestions.check(SEED, 30).wrong)
    assert ", grace: it keeps" in wrong
    assert ", sweep: the cell says" in wrong


@pytest.mark.thorough
def test_a_wrong_gap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded = choosing.rounded
    monkeypatch.setattr(choosing, "rounded", lambda ms: rounded(1.2 * ms))
    assert any(", gap: " in text for text in suggestions.check(SEED, 60).wrong)
