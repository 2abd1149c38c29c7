"""How far a long write has come: noted beside its results, so that the same call goes on from there."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from sessionkit.records.files.parquet import read_parquet
from sessionkit.stores.contract import Snapshot, StoredColumns
from sessionkit.stores.state.chunked_state import windows_of, windows_table

FORMAT = 1
_NOTE, _PARTITION = "note.json", "partition"
_PART, _STATE = re.compile(r"part-\d{5,}\.parquet"), re.compile(r"state-\d+-[01]\.parquet")


@dataclass
class Note:
    """How far it has come, with the files that are whole and what they hold together."""

    call: str  # a digest of what was asked for: another call begins anew
    begun: Mapping[int, Snapshot]  # of the store, before
    owner: str = field(default_factory=lambda: f"plan.write {uuid4().hex}")
    rows: int = 0  # of the input
    counts: Counter[int] = field(default_factory=Counter)  # records by what was decided
    merges: int = 0
    files: dict[str, dict[str, int]] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    untouched: int = 0  # of the windows that are open: the first ones, which no step has looked at yet
    state: str = ""  # the file of the windows that are open; "" for none
    remarks: list[str] = field(default_factory=list)
    is_done: bool = False

    @classmethod
    def read(cls, folder: Path) -> Note | None:
        """The note that an earlier call left in the folder; None if there is none that can be read."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            body = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
            if body.pop("format") != FORMAT:
                return None
            body["counts"] = Counter({int(code): number for code, number in body["counts"].items()})
            for name in ("begun", "snapshots"):
                body[name] = {int(number): Snapshot(*each) for number, each in body[name].items()}
            return note if (note := cls(**body))._is_sound() else None
        return None

    def _is_sound(self) -> bool:
        """Whether it names only what a write makes, as others could have changed it."""
        files = [each for of_target in self.files.values() for each in of_target.items()]
        counts: list[Any] = [self.rows, self.untouched, *(count for _, count in files)]
        return (
            all(isinstance(count, int) and count >= 0 for count in counts)
            and all(_PART.fullmatch(name) for name, _ in files)
            and (self.state == "" or _STATE.fullmatch(self.state) is not None)
        )

    def save(self, folder: Path, windows: StoredColumns | None) -> None:
        """Writes it down, with the windows that are open: both, or what was noted before stays."""
        before, self.state = self.state, ""
        if windows is not None:
            self.state = f"state-{self.rows}-{int(self.is_done)}.parquet"
            _write(windows, folder / self.state)
        draft = folder / f"{_NOTE}.draft"
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **vars(self)}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, folder / _NOTE)
        if before and before != self.state:
            (folder / before).unlink(missing_ok=True)

    def windows(self, folder: Path, of: str) -> StoredColumns | None:
        """The windows that were open."""
        if not self.state:
            return None
        table = read_parquet(folder / self.state)
        partition = table[_PARTITION].to_numpy()
        return windows_of(table.drop_columns([_PARTITION]), of, 0)._replace(partition=partition)

    def forget(self, folder: Path) -> None:
        """Removes it, so that no call goes on from it."""
        (folder / _NOTE).unlink(missing_ok=True)


def _write(windows: StoredColumns, path: Path) -> None:
    import pyarrow.parquet as pq

    table = windows_table(windows)
    pq.write_table(table.append_column(_PARTITION, pa.array(np.asarray(windows.partition, np.int64))), path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def schema_text(schema: pa.Schema) -> str:
    """The schema as text, for a note."""
    return base64.b64encode(schema.serialize()).decode()


def schema_of(text: str) -> pa.Schema:
    """The schema that `schema_text` wrote."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
