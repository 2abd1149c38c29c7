"""Folders of Parquet that results come to be in, and take their places from once all of them are whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sessionkit.base.result_folders import MANIFEST, Results, locked, taken
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.steps.job import fit, type_of

GROUP_ROWS = 1_000_000  # in a row group, at most
_HELD_ROWS, _HELD_BYTES = 500_000, 2**27  # that wait for a row group, at most


class Place:
    """The place of a target, and the folder beside it in which its files come to be until they are whole.

    `part` adds rows, `close` ends the last file: what was added until then is on the disk.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema = path, schema
        self.aside = path.parent / f".{path.name}.sessionkit"
        self.files: dict[str, int] = {}  # those that are whole, and their rows
        self._waiting: list[pa.Table] = []
        self._writer: Any = None
        self._rows = 0
        self._lock: int | None = None

    @property
    def results(self) -> Results:
        """What puts the folder into its place, and knows which files in it are ours."""
        return Results(self.path.parent, [self.path.name], manifest=f"{self.path.name}/{MANIFEST}")

    def check(self, *, overwrite: bool) -> None:
        """Refuses a place that is taken; to overwrite what sessionkit wrote is allowed."""
        if not os.path.lexists(self.path):
            return
        if not overwrite:
            want = "another name, or overwrite=True to replace what sessionkit wrote there"
            raise InvalidArgument(problem("there is something of this name already", shorten(self.path, 500), want))
        self.results.check()

    def begin(self, *, files: Mapping[str, int]) -> None:
        """Makes the folder beside the place, in which `files` of an earlier call stay and all others are removed."""
        with self.results.writing(self.path):
            self.aside.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = locked(self.aside)
            except OSError as error:
                want = "wait until it is done, or another folder"
                raise InvalidArgument(problem("another call writes to this place", self.path, want)) from error
            for each in self.aside.glob("part-*.parquet"):
                if each.name not in files:
                    each.unlink()
        self.files = dict(files)

    def part(self, columns: Mapping[str, Any]) -> None:
        """Adds rows."""
        rows = len(next(iter(columns.values())))
        if rows:
            if self._writer is None and not self.files:
                self.schema = pa.schema([_typed(field, columns[field.name]) for field in self.schema])
                self._waiting = [each.cast(self.schema) for each in self._waiting]
            self._waiting.append(fit(columns, self.schema, _of_one_type))
        held = sum(map(len, self._waiting))
        if held >= _HELD_ROWS or sum(each.nbytes for each in self._waiting) >= _HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow.parquet as pq

        with self.results.writing(self.path):
            if self._writer is None:
                path = self.aside / f"part-{len(self.files):05d}.parquet"
                how = _encodings(self.schema)
                # checksums: a flipped bit would be read as other numbers
                self._writer = pq.ParquetWriter(path, self.schema, compression="zstd", write_page_checksum=True, **how)
            table = pa.concat_tables(self._waiting) if self._waiting else self.schema.empty_table()
            self._rows += len(table)
            self._waiting = []
            self._writer.write_table(table, row_group_size=GROUP_ROWS)

    def close(self, *, last: bool = False) -> None:
        """Ends the file that is begun; the `last` one is made also where there are no rows at all."""
        if self._waiting or (last and not self.files and self._writer is None):
            self._flush()
        if self._writer is None:
            return
        with self.results.writing(self.path):
            self._writer.close()
            name = f"part-{len(self.files):05d}.parquet"
            with (self.aside / name).open("rb") as file:
                os.fsync(file.fileno())
        self.files[name], self._rows, self._writer = self._rows, 0, None

    def place(self, owner: str, *, overwrite: bool) -> None:
        """Moves the files to their place, in one rename; nothing if that was done before."""
        if self._is_placed(owner):
            self.results.sweep()
            return
        self.check(overwrite=overwrite)
        results = self.results
        results.wrote = owner
        with results:
            results.write(self.path.name, self._link)
            if not overwrite and os.path.lexists(self.path):
                raise taken(self.path)
            results.place()

    def _is_placed(self, owner: str) -> bool:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            return bool(json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))["wrote"] == owner)
        return False

    def _link(self, folder: Path) -> None:
        folder.mkdir()
        for name in self.files:
            try:
                os.link(self.aside / name, folder / name)
            except OSError:  # a file system without hard links
                shutil.copyfile(self.aside / name, folder / name)

    def clear(self) -> None:
        """Removes the files beside the place, as they are in it."""
        for name in self.files:
            (self.aside / name).unlink(missing_ok=True)

    def end(self, *, remove: bool) -> None:
        """Lets go of the folder beside the place, and removes it unless a later call goes on with it."""
        with contextlib.suppress(Exception):  # of a file that is not whole anyway
            if self._writer is not None:
                self._writer.close()
        self._writer = None
        if self._lock is not None:
            try:
                if remove:
                    shutil.rmtree(self.aside, ignore_errors=True)
            except KeyboardInterrupt:  # in the midst of it
                shutil.rmtree(self.aside, ignore_errors=True)
                raise
            finally:
                os.close(self._lock)
                self._lock = None


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """How Parquet writes times and whole numbers as small as by its default, and in half of the time."""
    if any(pa.types.is_nested(each.type) for each in schema):
        return {}
    numbers = [each.name for each in schema if pa.types.is_integer(each.type) or pa.types.is_timestamp(each.type)]
    others = [name for name in schema.names if name not in numbers]
    return {"use_dictionary": others, "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED")}


_NO_FOLDERS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx")


def check_apart(paths: Mapping[str, Path]) -> None:
    """Refuses targets that lie in each other, or are called as files of text are."""
    real = {name: Path(os.path.realpath(path)) for name, path in paths.items()}
    for name, path in paths.items():
        if path.suffix in _NO_FOLDERS:
            got, want = f"{name}={shorten(path, 200)}", f"a folder, {name}={path.stem!r}"
            raise InvalidArgument(problem("results are written as folders of Parquet", got, want))
    for name, path in real.items():
        for other, outer in real.items():
            if name != other and (path == outer or outer in path.parents):
                got = f"{name}={shorten(path, 200)} and {other}={shorten(outer, 200)}"
                raise InvalidArgument(problem("two results cannot go to one folder", got, "a folder for each"))


def _typed(field: pa.Field, column: Any) -> pa.Field:
    """The field with the type of the results in it, if only they tell it, as Python functions made them."""
    if not pa.types.is_null(field.type) or not hasattr(column, "dtype"):
        return field
    values = column.tolist()
    if all(value is None for value in values):
        return field
    return field.with_type(type_of(field.name, values, _of_one_type))


def _of_one_type(name: str) -> str:
    return f"a function for {name!r} whose results are all of the type of the first ones, such as float(…), or None"
