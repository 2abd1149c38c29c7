"""The hash of cells, and which session holds what another held."""

import numpy as np

from sessionkit.windows.cells import survivor
from sessionkit.windows.session_kernel import SESSION
from tests.interpreted import INTERPRETED, Row


def test_the_survivor_is_found_over_all_merges_also_in_the_first_row() -> None:
    sessions = np.zeros(4, np.dtype((Row, SESSION)) if INTERPRETED else SESSION)
    sessions["merged_into"] = [-1, 0, 1, 2]  # each into the one before it
    assert [survivor(sessions, row) for row in range(4)] == [0, 0, 0, 0]
    assert sessions["merged_into"].tolist() == [-1, 0, 0, 0], "the path is shorter now"
