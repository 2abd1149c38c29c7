"""What a query's results were called at its last start: who reads them is told when that changes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from sessionkit.base.calls import level_of_user
from sessionkit.errors import shorten

NOTE = "sessionkit-columns.json"  # in the checkpoint


def tell_changes(
    checkpoint: Path, columns: Mapping[str, Sequence[str]], before_they_were_noted: Mapping[str, Sequence[str]]
) -> None:
    """Warns of each view whose columns are not those that the checkpoint's micro-batches had so far.

    Args:
        columns: of each view that is written, from now on.
        before_they_were_noted: what a query had that was last started by sessionkit 0.1.
    """
    if not (checkpoint / "commits").is_dir():
        return
    noted = _noted(checkpoint)
    known = before_they_were_noted if noted is None else noted
    for view, names in columns.items():
        before = known.get(view)
        if before is not None and list(before) != list(names):
            gone = ", ".join(name for name in before if name not in names) or "their order"
            come = ", ".join(name for name in names if name not in before) or "their order"
            warnings.warn(
                f"the columns of {view} are others than in the earlier micro-batches of this checkpoint: instead of "
                f"{shorten(gone, 200)} they have {shorten(come, 200)}. Write to a new folder or table; or keep the old "
                'columns with sk.group_by_key(…, times="ms")',
                stacklevel=level_of_user(),
            )


def note(checkpoint: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Remembers the columns with the checkpoint."""
    noted = {**(_noted(checkpoint) or {}), **{view: list(names) for view, names in columns.items()}}
    checkpoint.mkdir(parents=True, exist_ok=True)
    aside = checkpoint / f".{NOTE}"
    aside.write_text(json.dumps(noted), encoding="utf-8")
    aside.replace(checkpoint / NOTE)


def _noted(checkpoint: Path) -> dict[str, list[str]] | None:
    """The columns by view as they were noted; None if they were not, or what is there is no such note."""
    try:
        found = json.loads((checkpoint / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_right = isinstance(found, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in found.values()
    )
    return found if is_right else None
