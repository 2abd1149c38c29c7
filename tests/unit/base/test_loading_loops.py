"""A fresh process loads compiled loops without what numba needs to compile: a quarter of a second."""

import subprocess
import sys

import pytest

from tests.interpreted import INTERPRETED

RUN = """
import sys
import pyarrow as pa
import sessionkit as sk
from numba.core.runtime.nrt import rtsys

some = range(300)
columns = {"key": [f"k{i % 7}" for i in some], "at": some, "p": [i % 3 for i in some], "x": [i / 2 for i in some]}
table = pa.table(columns)
keyed = sk.group_by_key("key", timestamp="at", unit="ms", partition="p")
windows = {
    "session": sk.SessionWindows(inactivity_gap_ms=5, grace_ms=9),
    "tumbling": sk.TimeWindows(size_ms=9, grace_ms=9),
    "sliding": sk.SlidingWindows(time_difference_ms=9, grace_ms=9),
}[sys.argv[1]]
run = keyed.windowed_by(windows).aggregate(n=sk.count(), total=sk.sum("x")).run(table, frame="arrow")
print(sum(run.table()["n"].to_pylist()) > 0, rtsys._init, "numba.np.arrayobj" in sys.modules)
print(len(run.changelog()) > 0, "numba.np.linalg" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
@pytest.mark.parametrize("kind", ["session", "tumbling", "sliding"])
def test_numba_s_compiler_stays_where_it_is(kind: str) -> None:
    ask = [sys.executable, "-c", RUN, kind]
    subprocess.run(ask, capture_output=True, check=True)  # it compiles, where that was not done before
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    # sessions and time windows have no loop up to the table that makes arrays: nothing that counts references to these
    # is compiled, which would take another 40 ms
    counts = kind == "sliding"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"True {counts} {counts}\nTrue False\n"
