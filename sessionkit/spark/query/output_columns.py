"""What a query's results were called at its last start: who reads them is told when that changes."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from sessionkit.base.calls import level_of_user
from sessionkit.errors import shorten

NOTE = "sessionkit-columns.json"  # in the checkpoint


def tell_changes(checkpoint: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Warns of each view whose columns are not those that the checkpoint's micro-batches had so far, and notes them."""
    noted = _noted(checkpoint)
    if (checkpoint / "commits").is_dir():
        for view, names in columns.items():
            before = noted.get(view, names)
            if list(before) != list(names):
                warnings.warn(_told(view, before, names), stacklevel=level_of_user())
    now = {**noted, **{view: list(names) for view, names in columns.items()}}
    aside = checkpoint / f".{NOTE}"
    with contextlib.suppress(OSError):  # the note is a courtesy to the next start
        checkpoint.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(now), encoding="utf-8")
        aside.replace(checkpoint / NOTE)


def _told(view: str, before: Sequence[str], names: Sequence[str]) -> str:
    gone, come = ([name for name in some if name not in others] for some, others in ((before, names), (names, before)))
    return (
        f"the columns of {view} are not those of the earlier micro-batches of this checkpoint: "
        f"{shorten(', '.join(gone), 200) or 'no column'} disappeared, "
        f"{shorten(', '.join(come), 200) or 'no column'} appeared. "
        "Write to a new folder or table"
    )


def _noted(checkpoint: Path) -> dict[str, list[str]]:
    """The columns by view as they were noted; none if they were not, or what is there is no such note."""
    try:
        found = json.loads((checkpoint / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_right = isinstance(found, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in found.values()
    )
    return found if is_right else {}
