"""Lets `pytest --nbval notebooks` compare the notebooks with their saved outputs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype")  # without the picture that GitHub shows
os.environ.setdefault("TQDM_DISABLE", "1")  # a slow machine shows how far a call is, a fast one does not

COMPILES = """
import pandas as pd, sessionkit as sk

records = pd.DataFrame({"user": ["ada", "bob"], "at": [0, 1]})
lengths = {sk.SessionWindows: "inactivity_gap", sk.TimeWindows: "size", sk.SlidingWindows: "time_difference"}
for kind, length in lengths.items():
    windows = kind(**{length: "1s"}, grace="1s")
    sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows).count().run(records)
"""


def pytest_configure(config: pytest.Config) -> None:
    """Leaves out what differs from run to run: the ids of widgets, and the word that loops are compiled once."""
    if not getattr(config.option, "nbval", False):
        return
    config.option.nbval_sanitize_with = str(Path(__file__).with_name("nbval_sanitize.cfg"))
    if not hasattr(config, "workerinput"):  # those of xdist begin after this
        subprocess.run([sys.executable, "-c", COMPILES], check=True, capture_output=True)
