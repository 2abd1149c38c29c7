"""An application of Kafka Streams on a real broker that is started again, and what sessionkit says that it sends.

`make restarts` plays 20 of each kind, the tests one: it is stopped, its folder is removed, and it is killed.
"""

import os
from collections.abc import Iterator
from functools import cache

import pytest

from sessionkit.stores.contract import RESTARTS
from tests.differential.draw import Case
from tests.differential.oracle import build, skipped_without

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from tests.kafka.common import broker_for
from tests.kafka.restarts import expected, restarted_cases, sent_by_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.xdist_group("a broker")]

SEED = 22
RUNS = int(os.environ.get("SESSIONKIT_RESTARTS", "1"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker for all runs."""
    with skipped_without():
        build()
    with broker_for() as where:
        yield where


@cache
def cases(kind: str) -> list[Case]:
    """One for each run."""
    return restarted_cases(SEED, kind, RUNS)


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("kind", RESTARTS)
def test_an_application_that_is_started_again_sends_what_sessionkit_says(address: str, kind: str, run: int) -> None:
    case = cases(kind)[run]
    assert sent_by_kafka(address, case, f"{kind}-{run}") == expected(case)
