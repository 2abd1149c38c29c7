"""Results of many windows are compared some keys after the others, with the same answers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits import sides
from tests.deployments import audit_deployed
from tests.kinds import EACH_KIND, plan_of


@pytest.mark.lengthy
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close", "suppress"])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_parts_are_the_whole(kind: str, emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, count = np.random.default_rng(3), 120
    at = np.maximum(np.arange(count) * 4 - rng.integers(0, 60, count), 0)
    table = pa.table({"key": rng.choice([*"abcdefgh"], count).tolist(), "at": at, "n": rng.integers(0, 9, count)})
    plan = plan_of(EACH_KIND[kind], named={"n": sk.sum("n")})
    plan = plan.suppress("until_window_closes") if emit == "suppress" else plan.emit(emit)
    for caching in (False, "400B"):
        whole = audit_deployed(plan, table, caching=caching)
        monkeypatch.setattr(sides, "ROWS_AT_ONCE", 20)
        parts = audit_deployed(plan, table, caching=caching)
        assert parts.counts() == whole.counts()
        assert parts.table().equals(whole.table())
        assert parts.safe_retentions_ms == whole.safe_retentions_ms
        monkeypatch.undo()
    assert len(whole.table()) > 20
