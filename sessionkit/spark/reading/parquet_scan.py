"""Whether a Spark DataFrame is the plain content of Parquet files, and of which: read from Spark's plan, no job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessionkit.errors import shorten
from sessionkit.spark.reading.row_groups import NotApart, ParquetFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_FILES = 10_000  # their ends are read by this process
_CATALYST, _SOURCES = "org.apache.spark.sql.catalyst.", "org.apache.spark.sql.execution.datasources."
# Options that say which files are read, or nothing of their content.
_OPTIONS = {"path", "paths", "basepath", "mergeschema", "pathglobfilter", "recursivefilelookup", "modifiedbefore"}
# Settings under which Spark does not hand over what a file holds.
_SETTINGS = {
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
}


def parquet_scan(frame: DataFrame, partition: int) -> tuple[list[ParquetFile], tuple[str, ...]]:
    """The files of which `frame` is some columns, and what they call those; else `NotApart`, with what is in the way.

    Whatever is not known to be such a scan is none: a filter, a limit, a join, a table of a catalog, a cached frame,
    a format that is built on Parquet. `partition` is the place of the column that names the source partition.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    except ImportError as error:
        raise NotApart("Spark Connect does not show its plan") from error
    if not isinstance(frame, ClassicDataFrame):
        raise NotApart("Spark Connect does not show its plan")
    for name, wanted in _SETTINGS.items():
        if str(frame.sparkSession.conf.get(name, wanted)).lower() != wanted.lower():
            raise NotApart(f"{name} is set")
    try:
        return _scan(frame, partition)
    except (Py4JError, AttributeError, TypeError) as error:
        raise NotApart(f"Spark's plan is not understood: {shorten(error, 80)}") from error


def _scan(frame: Any, partition: int) -> tuple[list[ParquetFile], tuple[str, ...]]:
    project = frame._jdf.queryExecution().optimizedPlan()
    _is(project, _CATALYST + "plans.logical.Project")
    names = tuple(_column_of(project.projectList().apply(i)) for i in range(project.projectList().size()))
    scan = project.child()
    _is(scan, _SOURCES + "LogicalRelation")
    relation = scan.relation()
    _is(relation, _SOURCES + "HadoopFsRelation")
    _is(relation.fileFormat(), _SOURCES + "parquet.ParquetFileFormat")
    _is(relation.location(), _SOURCES + "InMemoryFileIndex")
    options = relation.options().keys().mkString("\n").splitlines()
    if unknown := {option.lower() for option in options} - _OPTIONS:
        raise NotApart(f"the files are read with option {shorten(sorted(unknown)[0])!r}")
    folders = list(relation.partitionSchema().fieldNames())
    if set(folders) & set(names) - {names[partition]}:
        raise NotApart("a column other than the partition is the name of a folder")
    in_folder = folders.index(names[partition]) if names[partition] in folders else None
    if in_folder is not None and relation.partitionSchema().apply(in_folder).dataType().typeName() != "integer":
        raise NotApart("the names of the folders are not numbers of partitions")
    return _files(frame, relation.location(), in_folder), names


def _is(node: Any, name: str) -> None:
    found = str(node.getClass().getName())
    if found != name:
        raise NotApart(f"the DataFrame is more than a scan of Parquet files ({found.rsplit('.', 1)[-1]})")


def _column_of(expression: Any) -> str:
    """The column of the files that an output column is, unchanged."""
    _is(expression, _CATALYST + "expressions.Alias")
    _is(expression.child(), _CATALYST + "expressions.AttributeReference")
    return str(expression.child().name())


def _files(frame: Any, location: Any, in_folder: int | None) -> list[ParquetFile]:
    none = frame.sparkSession._jvm.PythonUtils.toSeq([])
    folders = location.listFiles(none, none)
    files: list[ParquetFile] = []
    for i in range(folders.size()):
        folder = folders.apply(i)
        number = None
        if in_folder is not None:
            if folder.values().isNullAt(in_folder):
                raise NotApart("a folder stands for no partition")
            number = int(folder.values().getInt(in_folder))
        if len(files) + folder.files().size() > MOST_FILES:
            raise NotApart(f"there are more than {MOST_FILES:,} files")
        for j in range(folder.files().size()):
            status = folder.files().apply(j)
            uri = status.getPath().toUri()
            if uri.getScheme() != "file":
                raise NotApart(f"files at {shorten(uri.getScheme())}: are read by Spark")
            files.append(ParquetFile(str(uri.getPath()), int(status.getLen()), number))
    return files
