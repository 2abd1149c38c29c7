"""What was compiled for one kind of input serves all others: nobody waits for the compiler twice."""

import subprocess
import sys

import pytest

from tests.interpreted import INTERPRETED

RUNS = """
import sys, tempfile
import numpy as np, pandas as pd, polars as pl, pyarrow as pa, pyarrow.parquet as pq
from numba.core.dispatcher import Dispatcher
import sessionkit as sk

windows = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=5, grace_ms=9),
    "tumbling": sk.TimeWindows(size_ms=9, grace_ms=9),
}[sys.argv[1]]
some = range(300)
columns = {"key": [f"k{i % 7}" for i in some], "at": some, "p": [i % 3 for i in some], "x": [i / 2 for i in some]}
table = pa.table({**columns, "at": pa.array(columns["at"]).cast(pa.timestamp("ms", "UTC"))})
fine = table.set_column(1, "at", table["at"].cast(pa.timestamp("us", "UTC")))
folder = tempfile.mkdtemp()
pq.write_table(fine, f"{folder}/one.parquet")
pq.write_table(fine, f"{folder}/many.parquet", row_group_size=20)
coded = table.set_column(0, "key", table["key"].dictionary_encode())
numbered = table.set_column(0, "key", pa.array(i % 7 for i in some))
holes = {"key": [None, *columns["key"][1:]], "x": [None, *columns["x"][1:]]}
doors = [
    table, fine, coded, numbered, f"{folder}/one.parquet", f"{folder}/many.parquet", table.to_pandas(),
    pl.from_arrow(table), table.set_column(0, "key", [holes["key"]]), table.set_column(3, "x", [holes["x"]]),
]
plain = sk.group_by_key("key", timestamp="at").windowed_by(windows)
placed = sk.group_by_key("key", timestamp="at", partition="p").windowed_by(windows)
for door in doors:
    for grouped in (plain, placed):
        for trace in (True, False):
            made = grouped.aggregate(n=sk.count(), total=sk.sum("x")).run(door, trace=trace)
            assert len(made.table())
            assert not trace or (len(made.changelog()) and len(made.trace.records()))
modules = [vars(module) for name, module in sys.modules.items() if name.startswith("sessionkit")]
loops = {name: loop for module in modules for name, loop in module.items() if isinstance(loop, Dispatcher)}
assert loops["number_slots"].signatures
forms = {name: 2 if "total" in name else 1 for name in loops}  # totals have one to count, one for numbers
print({name: loop.signatures for name, loop in loops.items() if len(loop.signatures) > forms[name]})
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
@pytest.mark.parametrize("kind", ["sessions", "tumbling"])
def test_each_loop_is_compiled_once_whatever_it_is_given(kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", RUNS, kind], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{}\n"
