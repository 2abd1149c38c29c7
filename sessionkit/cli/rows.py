"""`sessionize`: every row of a file with the session that it belongs to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sessionkit.cli import options as of
from sessionkit.cli.opening import say, zone_for
from sessionkit.cli.progress import silent, steps

Grace = Annotated[
    str | None,
    typer.Option(metavar="LENGTH", help="With a grace the order of rows counts, and rows can be late. Default: none."),
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file that ends in .csv or .parquet. Default: print CSV.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file named by --out.")]


def sessionize(
    file: of.File,
    key: of.Key,
    timestamp: of.Timestamp,
    gap: of.Gap,
    grace: Grace = None,
    unit: of.Unit = None,
    timezone: of.Timezone = None,
    partition: of.Partition = None,
    offset: of.Offset = None,
    types: of.Types = None,
    on_bad_time: of.BadTimes = "refuse",
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Write every row of a file with the session that it is in.

    \b
    Example:
      sessionkit sessionize clicks.csv --by user --at at --gap 30m
    """
    from sessionkit.base.text import plural
    from sessionkit.records.files.tables import read_file
    from sessionkit.report.written import as_arrow, check_free, write_csv, write_new_file, write_table
    from sessionkit.sessionize import sessionize as sessionized

    if out is not None:
        check_free(out, overwrite=overwrite)
    with steps(3, silent) as step:
        step("reading the rows")
        by = list(of.columns_in(key))
        table, remarks = read_file(file, None, by, of.types_of(types))
        step("looking for sessions")
        zone, remark = zone_for(table, timestamp, timezone)
        found = as_arrow(
            sessionized(
                table, by, timestamp, gap, grace, timezone=zone, unit=unit, partition=partition, offset=offset,
                on_bad_time=on_bad_time,
            )
        )  # fmt: skip
        step("writing the rows")
        if out is None:
            write_csv(found, sys.stdout.buffer)
        else:
            write_new_file(out, lambda path: write_table(found, path), overwrite=overwrite)
    say(*remarks, *remark, *([f"{plural(len(found), 'row')} in {out}"] if out is not None else []))
