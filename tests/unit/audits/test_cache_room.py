"""A cache that is limited in bytes, and never full, is one without a limit."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits import noticing
from tests.deployments import audit_deployed
from tests.kinds import EACH_KIND, plan_of


def records(seed: int, count: int = 120) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = np.maximum(np.arange(count) * 4 - rng.integers(0, 60, count), 0)
    return pa.table({"key": rng.choice(["a", "b", "c"], count).tolist(), "at": at, "n": rng.integers(0, 9, count)})


@pytest.mark.parametrize("named", [{"n": sk.count()}, {"n": sk.count(), "total": sk.sum("n")}, {"n": sk.collect("n")}])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_room_for_all_is_no_limit(kind: str, named: dict[str, Any]) -> None:
    plan, table = plan_of(EACH_KIND[kind], named=named), records(1)
    limited, unlimited = (audit_deployed(plan, table, caching=caching) for caching in ("10MB", True))
    assert limited.counts() == unlimited.counts()
    assert limited.differences().equals(unlimited.differences())
    assert limited.safe_retentions_ms == unlimited.safe_retentions_ms


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_limit_that_is_reached_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, table = plan_of(EACH_KIND[kind], named={"n": sk.sum("n")}), records(2)
    options: dict[str, Any] = {"commit_interval": None}
    few = audit_deployed(plan, table, caching="400B", **options)
    all_at_the_end = audit_deployed(plan, table, caching=True, **options)
    assert few.counts()["late"] < all_at_the_end.counts()["late"]
    measured = []
    real = noticing._measured

    def noted(*given: Any) -> int:
        measured.append(real(*given))
        return measured[-1]

    monkeypatch.setattr(noticing, "_measured", noted)
    assert audit_deployed(plan, table, **options).counts() == all_at_the_end.counts()
    (most,) = measured or [real(plan, few.expected._outcome.batch)]  # of time windows no retention changes updates
    to_the_byte = audit_deployed(plan, table, caching=f"{most}B", **options)
    assert to_the_byte.counts() == all_at_the_end.counts()
    assert audit_deployed(plan, table, caching=f"{most - 1}B", **options).counts() != all_at_the_end.counts()
