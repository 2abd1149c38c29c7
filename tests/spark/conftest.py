"""What tests on Spark ask for by name."""

import pytest


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many steps for each partition, so that state travels."""
    monkeypatch.setattr("sessionkit.steps.job.STEP_RECORDS", 90)
