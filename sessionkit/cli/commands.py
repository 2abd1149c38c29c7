"""The command line: `sessionkit …` and `python -m sessionkit …`."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from sessionkit.base.process import without_collections
from sessionkit.base.text import ONE_KEY
from sessionkit.cli.info import info
from sessionkit.cli.questions import audit, explain, suggest
from sessionkit.cli.reports import demo, report, sessionize
from sessionkit.cli.saying import TYPED, say, with_options
from sessionkit.errors import SessionkitError, problem, shorten


class Once(TyperCommand):
    """A command that refuses an option which would replace what was given before."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """The arguments that are left; refuses an option that was given twice."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        rest = super().parse_args(ctx, list(args))  # help comes first
        for option in dict.fromkeys(each for each in order if each.param_type_name == "option"):
            words = [  # each use, as it was typed
                shlex.join([word] if "=" in word or option.is_flag else [word, value])
                for word, value in zip(args, [*args[1:], ""], strict=True)
                if word.split("=")[0] in option.opts
            ]
            names = list(dict.fromkeys(word.split(" ")[0].split("=")[0] for word in words))
            if order.count(option) > 1 and not option.multiple:
                what = f"{'/'.join(option.opts)} takes one value"
                ctx.fail(problem(what, shorten(" and ".join(words), 500), "give it once"))
            if len(names) > 1:
                want = f"use one of them{'; --window-key names a window' if self.name == 'explain' else ''}"
                what = f"{' and '.join(names)} are two names of one option"
                ctx.fail(problem(what, shorten(" and ".join(words), 500), want))
        return rest


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
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    TYPED.set(shlex.join(["sessionkit", *words]))
    try:
        with without_collections(), warnings.catch_warnings():  # a command ends soon
            warnings.showwarning = lambda message, *_, **__: say(str(message))
            status = app(words, prog_name="sessionkit", standalone_mode=False)
    except typer.TyperException as error:
        help_of = " ".join(["sessionkit", *words[: words[0] in COMMANDS], "--help"])
        commands: Any = typer.main.get_command(app)
        known = {name: {each for one in its.params for each in one.opts} for name, its in commands.commands.items()}
        have = [name for name, options in known.items() if getattr(error, "option_name", None) in options]
        elsewhere = f"; sessionkit {' and '.join(have)} {'has' if len(have) == 1 else 'have'} it" if have else ""
        said = error.format_message().rstrip(".") + elsewhere
        said += f"; {ONE_KEY}" if "'--key'" in said else ""
        return _refused(f"{said}; {help_of} shows what is possible", error.exit_code)
    except SessionkitError as error:
        return _refused(str(error), 2)
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _refused("interrupted", 130)
    return int(status or 0)


def _refused(message: str, status: int) -> int:
    print(f"sessionkit: {shorten(with_options(message), 4_000)}", file=sys.stderr)
    return status
