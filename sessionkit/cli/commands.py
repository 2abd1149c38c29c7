"""The command line: `sessionkit …` and `python -m sessionkit …`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from sessionkit.base.process import without_collections
from sessionkit.cli.audits import audit
from sessionkit.cli.info import info
from sessionkit.cli.once import Once
from sessionkit.cli.opening import say
from sessionkit.cli.questions import explain, suggest
from sessionkit.cli.reports import demo, report
from sessionkit.cli.rows import sessionize
from sessionkit.cli.wording import with_options
from sessionkit.errors import SessionkitError, shorten

# Plain help, which is readable at 80 columns and in a file, rather than boxes.
app = typer.Typer(add_completion=False, rich_markup_mode=None)
COMMANDS = {command.__name__: command for command in (info, report, sessionize, suggest, explain, audit, demo)}
for command in COMMANDS.values():
    app.command(cls=Once)(command)


def _print_version(asked: bool) -> None:
    if asked:
        print("sessionkit", sys.modules["sessionkit"].__version__)  # the package is loaded before its folders
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")]


@app.callback()
def start(version: Version = False) -> None:
    """Session windows, and others, as Kafka Streams computes them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 0 if it worked, 2 (and one line that says why) if it could not, 1 if --fail-if-lost says so."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with without_collections(), warnings.catch_warnings():  # a command ends soon
            warnings.showwarning = lambda message, *_, **__: say(str(message))
            status = app(given, prog_name="sessionkit", standalone_mode=False)
    except typer.TyperException as error:
        help_of = " ".join(["sessionkit", *given[: given[0] in COMMANDS], "--help"])
        return _refused(f"{error.format_message().rstrip('.')}; {help_of} shows what is possible", error.exit_code)
    except SessionkitError as error:
        return _refused(str(error), 2)
    except BrokenPipeError:  # whoever read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _refused("interrupted", 130)
    return int(status or 0)


def _refused(message: str, status: int) -> int:
    print(f"sessionkit: {shorten(with_options(message), 4_000)}", file=sys.stderr)
    return status
