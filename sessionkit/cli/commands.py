"""The command line: `python -m sessionkit demo` and `python -m sessionkit report FILE …`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sessionkit.errors import SessionkitError
from sessionkit.stores.contract import EMIT_STRATEGIES

DEFAULT_SEPARATOR = "@"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sessionkit", description="Session windows as Kafka Streams computes them, on Spark."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="sessions of airline at airport over a month of real flights, and a report")
    report = commands.add_parser("report", help="the same for your own Parquet or CSV file")
    report.add_argument("file", type=Path)
    report.add_argument("--key", required=True, help="the key column; several, joined by a separator: carrier,origin")
    report.add_argument(
        "--sep", default=DEFAULT_SEPARATOR, help="separator of several key columns (default %(default)s)"
    )
    report.add_argument("--timestamp", required=True, help="the column of event times")
    report.add_argument("--gap", required=True, help="inactivity gap, such as 30m")
    report.add_argument("--grace", required=True, help="how long late records count, such as 5m; 0s for not at all")
    report.add_argument("--timezone", help="time zone of the results (default: that of the column, else UTC)")
    report.add_argument("--unit", help="unit of times that are plain numbers: s, ms, us or ns")
    report.add_argument("--partition", help="the column of partition numbers")
    report.add_argument("--offset", help="the column of offsets within a partition")
    report.add_argument("--mean", action="append", default=[], metavar="COLUMN", help="also the mean of this column")
    report.add_argument("--sum", action="append", default=[], metavar="COLUMN", help="also the sum of this column")
    report.add_argument("--emit", choices=EMIT_STRATEGIES, default=EMIT_STRATEGIES[0], help="what the changelog holds")
    for command in (demo, report):
        command.add_argument(
            "--out", type=Path, default=Path("out"), help="folder for the results (default %(default)s)"
        )
        said = "write even into a folder that holds other files; only files of an earlier report are replaced"
        command.add_argument("--overwrite", action="store_true", help=said)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 0 if it worked, 2 (and one line that says why) if it could not."""
    options = _parser().parse_args(arguments)
    from sessionkit.report import job as report

    try:
        if options.command == "demo":
            report.demo(options.out, overwrite=options.overwrite)
        else:
            report.of_file(options)
    except SessionkitError as error:
        print(f"sessionkit: {error}", file=sys.stderr)
        return 2
    return 0
