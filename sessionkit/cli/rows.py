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
    format: of.Format = None,
    ambiguous: of.Ambiguous = "raise",
    nonexistent: of.Nonexistent = "raise",
    separator: of.Separator = None,
    no_header: of.NoHeader = False,
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
        by = list(of.columns_in(key))
        kinds = ({} if format is None else {timestamp: "string"}) | of.types_of(types)
        table, remarks = read_file(file, None, by, kinds, **of.text_form(separator, no_header))
        step("looking for sessions")
        zone, remark = zone_for(table, timestamp, timezone, format)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = as_arrow(
                sessionized(
                    table, by, timestamp, gap, grace, timezone=zone, unit=unit, partition=partition, offset=offset,
                    on_bad_time=on_bad_time, format=format, ambiguous=ambiguous, nonexistent=nonexistent, prefix=prefix,
                )
            )  # fmt: skip
        step("writing the rows")
        if out is None:
            write_csv(found, sys.stdout.buffer)
        else:
            write_new_file(out, lambda path: write_table(found, path), overwrite=overwrite)
    said = dict.fromkeys([*remarks, *remark, *(str(each.message) for each in warned)])
    say(*said, *([f"{plural(len(found), 'row')} in {out}"] if out is not None else []))
