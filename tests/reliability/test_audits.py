"""A slice of the long check of audits; the check itself sees what is wrong."""

import pytest

import sessionkit as sk
from sessionkit.audits import audit as auditing
from sessionkit.audits import verdicts
from sessionkit.audits.retentions import Interval
from tests.differential.oracle import build, skipped_without
from tests.reliability import audits

pytestmark = pytest.mark.kafka

SEED = 2026
FEW = 8


@pytest.fixture(autouse=True)
def _kafka() -> None:
    with skipped_without():
        build()


@pytest.mark.slow
def test_a_slice_of_random_audits(capsys: pytest.CaptureFixture[str]) -> None:
    told = audits.check(SEED, 40)
    with capsys.disabled():
        print(f"\naudits = Kafka: {told.done} random deployments; {told.noted}")
    assert told.wrong == [], "\n".join(told.wrong)
    assert told.done == 40
    met = ("session", "sliding", "tumbling", "hopping", "on_close", "on_update", "rocksdb", "limited", "cached", "lost")
    assert all(told.noted[name] for name in met)
    assert told.noted["safe, and it does not"] > 20
    assert told.noted["loses, and it loses"] > 20


def test_the_same_seed_draws_the_same_deployments() -> None:
    assert [audits.draw(7, index) for index in range(60)] == [audits.draw(7, index) for index in range(60)]


@pytest.mark.thorough
def test_a_wrong_verdict_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "MOST_SHRUNK", 0)
    monkeypatch.setattr(verdicts, "verdict_on", lambda *_, **__: verdicts.AS_IT_SHOULD)
    assert any("verdict" in text for text in audits.check(SEED, FEW).wrong)


@pytest.mark.thorough
def test_a_retention_that_is_off_by_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one(audit: sk.Audit) -> list[Interval]:
        return [(first + (1 if first % 2 else -1), last) for first, last in audit._safe.intervals]

    monkeypatch.setattr(audits, "MOST_SHRUNK", 0)
    monkeypatch.setattr(auditing.Audit, "safe_retentions_ms", property(off_by_one))
    wrong = "\n".join(audits.check(SEED, FEW).wrong)
    assert "the audit says safe, Kafka" in wrong
    assert "nothing lost or changed" in wrong
