"""`report` and `demo`: a folder with a page and its tables; `sessionize`: each row of a file with its session."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from sessionkit.base.text import literal, one_of, plural
from sessionkit.cli import options as of
from sessionkit.cli.opening import is_read_by_spark, open_file, with_windows, zone_for
from sessionkit.cli.saying import TYPED, say, steps, with_options
from sessionkit.errors import InvalidArgument, attempted, problem, shorten

Mean = Annotated[list[str] | None, of.column(help="Also the mean of this column.")]
Sum = Annotated[list[str] | None, of.column(help="Also the sum of this column.")]
Min = Annotated[list[str] | None, of.column(help="Also the smallest value of this column.")]
Max = Annotated[list[str] | None, of.column(help="Also the largest value of this column.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for the results.")]
Format = Annotated[str, typer.Option("--format", metavar="csv|parquet", help="The format of the tables.")]
OUT = Path("out")


@of.reads_file(format=of.TimeFormat)
def report(
    reading: of.Reading,
    windows: of.Windows,
    mean: Mean = None,
    sum: Sum = None,
    min: Min = None,
    max: Max = None,
    emit: of.Emit = of.ON_UPDATE,
    file_format: Format = "csv",
    out: Out = OUT,
    overwrite: of.Overwrite = False,
    spark: of.Spark = False,
) -> None:
    """Write a page and tables about sessions or windows.

    \b
    Example:
      sessionkit report clicks.csv --key user --timestamp at --gap 30m
    """
    from sessionkit.aggregations import built_ins as agg
    from sessionkit.report.written import FORMATS

    if "%" in file_format:
        want = "--time-format for times; --format csv or parquet is that of the tables"
        raise InvalidArgument(problem("--format of a report is not that of its times", repr(file_format), want))
    one_of("--format", file_format, FORMATS)
    _check(spark)
    asked = {"mean": mean or [], "sum": sum or [], "min": min or [], "max": max or []}
    opened = open_file(reading, [name for names in asked.values() for name in names])
    plan, remarks = with_windows(opened, windows)
    named = {f"{how}_{name}": getattr(agg, how)(name) for how, names in asked.items() for name in names}
    _make(
        spark,
        plan=plan.emit(cast("Any", emit)).aggregate(count=agg.count(), **named),
        records=Path(reading.file) if spark and is_read_by_spark(reading) else opened.table,
        data=literal(reading.file),
        title=Path(reading.file).name or reading.file,
        remarks=[*opened.remarks, *remarks],
        file_format=file_format,
        out=out,
        overwrite=overwrite,
    )


def demo(out: Out = OUT, overwrite: of.Overwrite = False, spark: of.Spark = False) -> None:
    """Write a report of a month of real flights from New York.

    \b
    Example:
      sessionkit demo --out flights
    """
    from sessionkit.records.samples import sample_path
    from sessionkit.report.job import of_flights

    _check(spark)
    _make(
        spark,
        plan=of_flights(),
        records=sample_path("flights"),
        data='sk.load_sample("flights")',
        title="Departures from New York, July 2013",
        out=out,
        overwrite=overwrite,
    )


def _check(spark: bool) -> None:
    if spark:
        from sessionkit.spark.session import check_pyspark

        check_pyspark()


def _make(spark: bool, **about: Any) -> None:
    from sessionkit.report.job import STEPS, Progress, Report, make_report

    count, make = STEPS, make_report
    for remark in about.get("remarks", []):
        print(with_options(remark))
    if spark:
        from sessionkit.report.spark_job import STEPS_ON_SPARK, make_report_on_spark

        count, make = STEPS_ON_SPARK, make_report_on_spark
    with steps(count, Progress()) as progress:
        print(with_options(make(Report(**about, command=TYPED.get(), wording=with_options, progress=progress))))


# ---- rows

Grace = Annotated[
    str | None, of.length(help="With a grace the order of rows counts, and rows can be late. Default: none.")
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file that ends in .csv or .parquet; or a folder, for files of any length. Default: print CSV.",
    ),
]
Prefix = Annotated[str, typer.Option(metavar="TEXT", help="Stands before the names of the columns that are added.")]
Until = Annotated[str | None, of.column(help="The column of times at which what began at --at ended.")]
MaxLength = Annotated[str | None, of.length(help="A session ends before a row further from its start, such as 12h.")]
MaxRows = Annotated[int | None, typer.Option(metavar="NUMBER", help="A session has at most so many rows.")]
NewWhen = Annotated[list[str] | None, of.column(help="Another value in this column starts a session.")]
_EVENT = "COLUMN=VALUE"
StartsWhen = Annotated[list[str] | None, typer.Option(metavar=_EVENT, help="Such a row starts a session.")]
EndsWhen = Annotated[list[str] | None, typer.Option(metavar=_EVENT, help="Such a row is the last of a session.")]
NewAt = Annotated[
    str | None, typer.Option(metavar="TIME", help="A session ends at this time of day: midnight, or such as 06:00.")
]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace what --out names.")]


@of.reads_file(sep=None, sort=None, arrival=None, max_ahead=None, ahead=None)
def sessionize(
    reading: of.Reading,
    gap: of.Gap,
    grace: Grace = None,
    until: Until = None,
    max_length: MaxLength = None,
    max_rows: MaxRows = None,
    new_when: NewWhen = None,
    starts_when: StartsWhen = None,
    ends_when: EndsWhen = None,
    new_at: NewAt = None,
    prefix: Prefix = "",
    out: OutFile = None,
    overwrite: Replace = False,
) -> None:
    """Write every row of a file with the session that it is in.

    \b
    Example:
      sessionkit sessionize clicks.csv --by user --at at --gap 30m
      sessionkit sessionize clicks.csv --by user --at at --gap 30m \\
        --max-length 12h --new-at midnight
    """
    from sessionkit.base.result_folders import write_whole
    from sessionkit.records.files.pieces import first_piece
    from sessionkit.records.files.tables import check_named, read_file
    from sessionkit.report.written import as_arrow, check_free, write_csv, write_table
    from sessionkit.sessionize import sessionize as sessionized

    folder = out if out is not None and not out.suffix else None
    if out is not None and folder is None:
        check_free(out, overwrite=overwrite)
    with steps(3) as step:
        step("reading the rows")
        by, at = list(reading.keys), reading.timestamp
        passing = _only_passing(reading, until) if out is None or out.suffix.lower() == ".csv" else []
        read = read_file if folder is None else first_piece
        table, remarks = read(reading.file, None, [*by, *passing], timezone=reading.timezone, **reading.text)
        check_named(reading.file, table, [*by, at])
        step("looking for sessions")
        zone, remark = zone_for(table, at, reading.timezone, reading.format)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            options = reading.options | {"timezone": zone, "prefix": prefix, "until": until, "max_length": max_length}
            options |= {"max_rows": max_rows, "new_when": new_when or [], "new_at": new_at}
            options["starts_when"] = _event(starts_when, "--starts-when", table)
            options["ends_when"] = _event(ends_when, "--ends-when", table)
            if folder is not None:
                options["types"] = reading.column_types
                written = sessionized(reading.file, by, at, gap, grace, out=folder, overwrite=overwrite, **options)
                lines = dict.fromkeys([*remark, *written.remarks()])
                return say(*lines, f"{plural(written.record_count, 'row')} in {folder}")
            found = as_arrow(sessionized(table, by, at, gap, grace, **options))
        step("writing the rows")
        if out is not None:
            check_free(out, overwrite=overwrite)  # somebody may have written there meanwhile
            write_whole(out, lambda path: write_table(found, path), replaces=overwrite)
    lines = dict.fromkeys([*remarks, *remark, *(str(each.message) for each in warned)])
    say(*lines, *([f"{plural(len(found), 'row')} in {out}"] if out is not None else []))
    if out is None:  # after the remarks, as a reader such as head may close the output
        write_csv(found, sys.stdout.buffer)


def _event(given: list[str] | None, option: str, table: Any) -> tuple[str, list[Any]] | None:
    """The column and its values that were given as COLUMN=VALUE, once or more."""
    if not given:
        return None
    parts = [each.partition("=") for each in given]
    names = {name for name, _, _ in parts}
    if len(names) > 1 or not all(is_there for _, is_there, _ in parts):
        want = f"{option} event=login, and again for another value of this column"
        raise InvalidArgument(problem(f"{option} takes a column and a value", shorten(", ".join(given)), want))
    name, values = names.pop(), [value for _, _, value in parts]
    if name not in table.column_names:
        return name, values
    import pyarrow as pa

    kind = table.schema.field(name).type
    typed = attempted(lambda: pa.array(values).cast(kind).to_pylist(), but=pa.ArrowException)
    return name, typed or values


def _only_passing(reading: of.Reading, until: str | None) -> list[str]:
    """The columns of a CSV file that nothing is computed from: read like keys, they are written as they were."""
    from sessionkit.records.files.found import find
    from sessionkit.records.files.text import names_of

    used = [*reading.keys, reading.timestamp, until, reading.partition, reading.offset, *reading.column_types]
    content = dataclasses.replace(find(reading.file).contents[0], **of.text_form(reading.separator, reading.no_header))
    return [name for name in names_of(content) if name not in used] if content.kind == "CSV" else []
