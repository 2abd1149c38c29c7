"""A slice of each long check of stores."""

from __future__ import annotations

from tests.reliability import store_bits, store_kills


def test_kills() -> None:
    outcome = store_kills.check(seed=12, count=25)
    assert outcome.wrong == []
    assert outcome.done == 25
    assert outcome.noted["killed while writing"] > 15
    assert outcome.noted["inside a flush or compaction"] > 0


def test_bits() -> None:
    outcome = store_bits.check(seed=25, count=250)
    assert outcome.wrong == []
    assert outcome.done == sum(outcome.noted.values()) == 250
    for state in store_bits.STATES:
        assert outcome.noted[f"{state}: right"] > 0
        assert outcome.noted[f"{state}: StoreCorrupted"] > 30
