"""How far a long call is: a bar after two seconds, which tqdm draws in terminals and notebooks."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

AFTER_S, EVERY_S = 2.0, 0.2  # until the bar appears, and between two looks of it
FORMAT = "{desc}: {percentage:3.0f}% |{bar:24}| {elapsed}, {remaining} left"


class Reached(Protocol):
    """Is told how much is done, and what is being done if it is something else."""

    def __call__(self, done: float, words: str = "", /) -> None: ...


@dataclass(eq=False)  # two of the same words are two
class _Task:
    words: str
    total: float | None
    done: float = 0


class _Calls:
    """The calls that are under way, each one a step of the one before, and their bar."""

    def __init__(self) -> None:
        self.is_on = not os.environ.get("TQDM_DISABLE")  # by which bars of tqdm are switched off
        self._tasks: list[_Task] = []
        self._bar: Any = None
        self._next_s = self._began_s = 0.0

    @property
    def are_shown(self) -> bool:
        """Whether they are shown; those of other threads never are."""
        return self.is_on and threading.current_thread() is threading.main_thread()

    @contextmanager
    def under_way(self, words: str, total: float | None) -> Iterator[Reached]:
        task = _Task(words, total)
        if not self._tasks:
            self._began_s = time.monotonic()
            self._next_s = self._began_s + AFTER_S
        self._tasks.append(task)

        def reached(done: float, words: str = "", /) -> None:
            task.done, task.words = done, words or task.words
            if time.monotonic() >= self._next_s:
                self._show()

        try:
            yield reached
        finally:
            self._tasks.remove(task)
            if not self._tasks and self._bar is not None:
                self._bar.close()
                self._bar = None

    def _show(self) -> None:
        words, share = ", ".join(task.words for task in self._tasks if task.words), 0.0
        for task in reversed(self._tasks):
            share = min((task.done + share) / task.total, 1.0) if task.total else share
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.start_t = time.time() - (time.monotonic() - self._began_s)
        is_known, has_share = self._tasks[0].total is not None, any(task.total for task in self._tasks)
        self._bar.bar_format = FORMAT if is_known else "{desc} ({elapsed})"
        self._bar.n = share
        self._bar.set_description_str(f"{words} {share:.0%}" if has_share and not is_known else words)
        self._next_s = time.monotonic() + EVERY_S


def _new_bar() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without ipywidgets gets none
        from tqdm.auto import tqdm

        return tqdm(total=1, leave=False, disable=None)  # none in a file or a pipe either


calls = _Calls()


@contextmanager
def progress(words: str, total: float | None = None) -> Iterator[Reached]:
    """A function that is told how much of `total` is done; what is begun meanwhile counts as a step of it.

    Example:
        >>> with progress("trying settings", 3) as reached:
        ...     for number in range(3):
        ...         reached(number)
    """
    if not calls.are_shown:
        yield lambda done, words="", /: None
        return
    with calls.under_way(words, total) as reached:
        yield reached
