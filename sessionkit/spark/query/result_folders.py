"""Folders that a stream writes to: a sub-folder a micro-batch, seen when it is whole, replaced by its query alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sessionkit.base.result_folders import MANIFEST, Results, save, save_at
from sessionkit.errors import shorten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = "batch="


class BatchFolder:
    """Writes each micro-batch as Parquet into a sub-folder of its own.

    What is not on a file system of this machine (S3, HDFS) is left to Spark, which writes over the sub-folder.
    """

    def __init__(self, folder: str, checkpoint: str) -> None:
        self._folder, self._checkpoint = folder, checkpoint

    def check(self, spark: SparkSession) -> None:
        """Refuses a folder with the newest micro-batch of another query, before this one reads anything.

        Raises:
            InvalidArgument: with the names of these files.
        """
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
    """Where this machine has the path that Spark calls so; None if it lies elsewhere."""
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none: there, a path without a scheme is taken for one of the server's disk
        parts = urlsplit(path)
        return Path(parts.path).absolute() if parts.scheme in ("", "file") else None
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    uri = place.getFileSystem(context._jsc.hadoopConfiguration()).makeQualified(place).toUri()
    return Path(uri.getPath()) if uri.getScheme() == "file" else None
