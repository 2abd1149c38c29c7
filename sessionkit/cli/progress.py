"""How far a command has come: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def steps(count: int, plain: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """A function that is told each of `count` steps as it begins; without a terminal it is `plain`."""
    if not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), BarColumn(), words, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count, completed=-1)
        yield lambda step: bar.update(task, description=step, advance=1)


def silent(step: str) -> None:
    """Says nothing: the command's result stands alone."""
