"""Results do not depend on how many threads made them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.views import tables
from sessionkit.windows import feed
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of
from tests.property.streams import draw

RUNS = 500
NAMED = {"count": sk.count(), "total": sk.sum("value"), "mean": sk.mean("real"), "all": sk.collect("value")}


def _file(seed: int, folder: Path) -> tuple[str, str]:
    """Row groups of a few records, keys as text in dictionaries or plain, or as integers; and the kind of the keys."""
    rng = np.random.default_rng([seed, 11])
    table, kind = draw(seed).table, str(rng.choice(["text", "plain text", "integers", "wide integers"]))
    if kind.endswith("integers"):
        numbers = table["key"].combine_chunks().dictionary_encode().indices.cast(pa.int64())
        table = table.set_column(2, "key", pa.compute.multiply(numbers, 1 if kind == "integers" else 2**40 + 1))
    path = str(folder / f"{seed}.parquet")
    pq.write_table(table, path, row_group_size=int(rng.integers(1, 30)), use_dictionary=kind != "plain text")
    return path, kind


def _shown(plan: sk.Plan, path: str, trace: bool) -> list[pa.Table]:
    run = plan.run(path, frame="arrow", trace=trace)
    return [run.table(), *([run.trace.records(), run.changelog()] if trace else [])]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", EACH_KIND)
def test_many_threads_decide_as_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MANY_ROWS", 0)
    compared: dict[str, int] = {}
    for seed in range(fewer(RUNS // len(EACH_KIND))):
        emit: Any = ("on_window_update", "on_window_close")[seed % 2]
        plan = plan_of(EACH_KIND[kind], emit, NAMED, timestamp="time", partition="partition", on_bad_time="drop")
        path, keys = _file(seed, tmp_path)
        monkeypatch.setattr(feed, "CHUNK", (7, 20, 131_072)[seed % 3])  # pieces are placed and folded beside each other
        for trace in (False, True):
            monkeypatch.setenv("SESSIONKIT_THREADS", "1")
            alone = _shown(plan, path, trace)
            monkeypatch.setenv("SESSIONKIT_THREADS", str(2 + seed % 3))
            together = _shown(plan, path, trace)
            for one, other in zip(alone, together, strict=True):
                assert one.schema.equals(other.schema), (seed, trace)
                assert _bytes(one) == _bytes(other), (seed, trace)
        compared[keys] = compared.get(keys, 0) + len(alone[0])
    assert all(compared.values())


def _bytes(table: pa.Table) -> list[Any]:
    """NaN is equal to itself here, and zeros have their signs."""
    return [[repr(value) for value in column.to_pylist()] for column in table.columns]
