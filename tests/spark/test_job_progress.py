"""How far Spark is, shown while an action waits for it."""

import time
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.base import progress as module
from sessionkit.spark import job_progress
from sessionkit.spark.types import readable_errors
from tests.optional import SparkSession
from tests.unit.base.test_progress import Bar

pytestmark = pytest.mark.spark


def test_an_action_says_how_many_tasks_are_done(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Bar] = []
    monkeypatch.setattr(module, "_new_bar", lambda: made.append(Bar()) or made[-1])
    for place in (module, job_progress):
        monkeypatch.setattr(place, "AFTER_S", 0.1)
        monkeypatch.setattr(place, "EVERY_S", 0.1)

    def slowly(pieces: Any) -> Any:
        for piece in pieces:
            time.sleep(0.5)
            yield piece

    records = spark.range(6, numPartitions=3).mapInArrow(slowly, "id long")
    with readable_errors():
        assert records.count() == 6
    said = {words for words, _ in made[0].said}
    assert any(words.startswith("waiting for Spark, ") and words.endswith(" of 3 tasks done") for words in said), said
    assert made[0].is_closed
    made.clear()
    monkeypatch.setattr(sk.options, "progress", False)
    with readable_errors():
        records.count()
    assert not made
