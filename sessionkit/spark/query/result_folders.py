"""Folders that a stream writes to: a sub-folder a micro-batch, seen when it is whole, replaced by its query alone.

And what a query's results were called at its last start: who reads them is told when that changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sessionkit.base.calls import level_of_user
from sessionkit.base.result_folders import MANIFEST, Results, save, save_at
from sessionkit.errors import attempted, shorten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = "batch="
NOTE = "sessionkit-columns.json"  # in the checkpoint


class BatchFolder:
    """Writes each micro-batch as Parquet into a sub-folder of its own.

    What is not on a file system of this machine (S3, HDFS) is left to Spark, which writes over the sub-folder.
    """

    def __init__(self, folder: str, checkpoint: str) -> None:
        self._folder, self._checkpoint = folder, checkpoint

    def check(self, spark: SparkSession) -> None:
        """Refuses a folder with the newest micro-batch of another query, before this one reads anything."""
        folder = local_path(spark, self._folder)
        if folder is None or not folder.is_dir():
            return
        names = [each.name for each in folder.iterdir() if each.name.startswith(_BATCH)]
        if names:
            self._results(spark, folder, max(names, key=lambda name: (len(name), name))).check()

    def __call__(self, rows: DataFrame, number: int) -> None:
        spark, name = rows.sparkSession, f"{_BATCH}{number}"
        folder = local_path(spark, self._folder)
        if folder is None:
            save_at(rows, f"{self._folder}/{name}", "overwrite")
            return
        with self._results(spark, folder, name) as results:
            results.write(name, lambda path: save(rows, path))
            results.place()

    def _results(self, spark: SparkSession, folder: Path, name: str) -> Results:
        owner, place = _query(spark, self._checkpoint), local_path(spark, self._checkpoint) or self._checkpoint
        wrote = f"the query with the checkpoint {shorten(place, 500)}"
        return Results(folder, [name], manifest=f"{name}/{MANIFEST}", owner=owner, wrote=wrote)


def _query(spark: SparkSession, checkpoint: str) -> str:
    """The name that Spark gave the query of this checkpoint; the checkpoint's own where it cannot be read here."""
    place = local_path(spark, checkpoint)
    if place is None:
        return checkpoint
    try:
        return str(json.loads((place / "metadata").read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return os.fspath(place)


def local_path(spark: Any, path: str) -> Path | None:
    """The path on this machine of what Spark calls `path`; None if it lies elsewhere."""
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none: there, a path without a scheme is taken for one of the server's disk
        parts = urlsplit(path)
        return Path(parts.path).absolute() if parts.scheme in ("", "file") else None
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    uri = place.getFileSystem(context._jsc.hadoopConfiguration()).makeQualified(place).toUri()
    return Path(uri.getPath()) if uri.getScheme() == "file" else None


# ---- the names of columns


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
    """The noted columns by view; none if nothing was noted, or the file is no such note."""
    found: Any = attempted(lambda: json.loads((checkpoint / NOTE).read_bytes()), but=(OSError, ValueError))
    is_right = isinstance(found, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in found.values()
    )
    return found if is_right else {}
