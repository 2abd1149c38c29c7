"""The note of a long write lies where others can write: what it names is looked at before it is believed."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionkit.steps.notes import Note


def noted(folder: Path, **changed: Any) -> Note | None:
    Note("a digest", {}, rows=5, files={"table": {"part-00000.parquet": 5}}).save(folder, None)
    place = folder / "note.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changed))
    return Note.read(folder)


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    note = noted(tmp_path, state="state-5-0.parquet")
    assert note is not None and (note.rows, note.state) == (5, "state-5-0.parquet")


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "../mine.parquet"},
        {"state": "/etc/passwd"},
        {"state": 7},
        {"files": {"table": {"../mine.parquet": 5}}},
        {"files": {"table": {"part-00000.parquet": "5"}}},
        {"files": ["part-00000.parquet"]},
        {"rows": "5"},
        {"rows": -1},
    ],
)
def test_a_note_that_names_what_no_write_has_made_is_not_believed(changed: dict[str, Any], tmp_path: Path) -> None:
    """By such a note a write would have removed, or put into its results, a file of somebody else."""
    assert noted(tmp_path, **changed) is None
