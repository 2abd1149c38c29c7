"""Lets `pytest --nbval notebooks` compare the notebooks with their saved outputs."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype")  # without the picture that GitHub shows


def pytest_configure(config: pytest.Config) -> None:
    """Leaves out what differs from run to run, such as the ids of widgets."""
    if getattr(config.option, "nbval_sanitize_with", "no nbval") is None:
        config.option.nbval_sanitize_with = str(Path(__file__).with_name("nbval_sanitize.cfg"))
