"""`sessionize`: every row of a file with the session that it belongs to."""

from __future__ import annotations

import sys
import warnings
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
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="Stands before the names of the columns that are added.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file named by --out.")]


@of.reads_file(sep=None, sort=None)
def sessionize(
    reading: of.Reading,
    gap: of.Gap,
    grace: Grace = None,
    prefix: Prefix = "",
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
        by, at = list(reading.keys), reading.timestamp
        table, remarks = read_file(reading.file, None, by, **reading.text)
        step("looking for sessions")
        zone, remark = zone_for(table, at, reading.timezone, reading.format)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            options = reading.options | {"timezone": zone, "prefix": prefix}
            found = as_arrow(sessionized(table, by, at, gap, grace, **options))
        step("writing the rows")
        if out is None:
            write_csv(found, sys.stdout.buffer)
        else:
            write_new_file(out, lambda path: write_table(found, path), overwrite=overwrite)
    said = dict.fromkeys([*remarks, *remark, *(str(each.message) for each in warned)])
    say(*said, *([f"{plural(len(found), 'row')} in {out}"] if out is not None else []))
