"""The options that several commands take, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.source import is_type

File = Annotated[str, typer.Argument(metavar="FILE", help="A file or folder of Parquet, CSV, JSON lines and the like.")]
Key = Annotated[
    str,
    typer.Option("--key", "--by", metavar="COLUMN", help="The key column; several are joined: carrier,origin."),
]
By = Annotated[str, typer.Option("--by", metavar="COLUMN", help="The key column; several are joined: carrier,origin.")]
Timestamp = Annotated[str, typer.Option("--timestamp", "--at", metavar="COLUMN", help="The column of event times.")]
Gap = Annotated[str, typer.Option(metavar="LENGTH", help="The inactivity gap, such as 30m.")]
Grace = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="How long late records count, such as 5m; 0s for not at all. "
        "Default: the smallest round length that keeps every record.",
    ),
]
Sep = Annotated[str, typer.Option(metavar="TEXT", help="The separator of several key columns.")]
Unit = Annotated[str | None, typer.Option(metavar="UNIT", help="The unit of times that are numbers: s, ms, us or ns.")]
Timezone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="The zone of the times and results. Default: that of the column, else UTC."),
]
Partition = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of partition numbers.")]
Offset = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of offsets within a partition.")]
PartitionColumn = Annotated[
    str | None, typer.Option("--partition-column", metavar="COLUMN", help="The column of partition numbers.")
]
OffsetColumn = Annotated[
    str | None, typer.Option("--offset-column", metavar="COLUMN", help="The column of offsets within a partition.")
]
Sort = Annotated[bool, typer.Option("--sort", help="Sort the rows first: by offset if there is one, else by time.")]
Types = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=TYPE", help="The type of a column in a text file: user=int64. May be repeated."),
]
BadTimes = Annotated[
    str, typer.Option("--on-bad-time", metavar="refuse|drop", help="What to do with rows without a usable time.")
]
Emit = Annotated[
    str,
    typer.Option(metavar="STRATEGY", help="on_window_update: each change of a result; on_window_close: finals only."),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Write even into a folder with other files; these stay as they are."),
]
Spark = Annotated[bool, typer.Option("--spark", help="Run on Spark instead of in this process (needs pyspark).")]

SEP = "@"
ON_UPDATE = "on_window_update"


def types_of(given: list[str] | None) -> dict[str, str]:
    """The types of columns that were given as COLUMN=TYPE, several of them separated by commas.

    Raises:
        InvalidArgument: one is not of this form, or there is no such type.
    """
    found = {}
    for each in (part.strip() for text in given or [] for part in text.split(",")):
        name, is_there, kind = each.rpartition("=")
        if not (is_there and name and is_type(kind.strip())):
            want = "--types user=int64, by the names of Arrow: string, int64, float64, bool and others"
            raise InvalidArgument(problem("--types takes a column and its type", repr(each), want))
        found[name.strip()] = kind.strip()
    return found
