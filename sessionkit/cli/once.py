"""Options that take one value are given once, and by one of their names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from typer import Context
from typer.core import TyperCommand

from sessionkit.errors import problem, shorten


class Once(TyperCommand):
    """A command that refuses what would replace a value that was given before."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """What is left of the arguments."""
        given = self.make_parser(ctx).parse_args(args=list(args))[2]
        rest = super().parse_args(ctx, list(args))  # help comes first
        for option in dict.fromkeys(given):
            if option.param_type_name != "option":
                continue
            words, names = _given(option, args)
            if given.count(option) > 1 and not option.multiple:
                named = "/".join(option.opts)
                ctx.fail(problem(f"{named} takes one value", shorten(" and ".join(words), 500), "give it once"))
            if len(names) > 1:
                want = f"use one of them{'; --window-key names a window' if self.name == 'explain' else ''}"
                ctx.fail(problem(f"{' and '.join(names)} are two names of one option", shorten(words, 500), want))
        return rest


def _given(option: Any, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """How an option was given, each time, and by which names."""
    words: list[str] = []
    names: dict[str, None] = {}
    for word, following in zip(args, [*args[1:], ""], strict=True):
        name, is_whole, _ = word.partition("=")
        if name in option.opts:
            names[name] = None
            words.append(shlex.join([word] if is_whole or option.is_flag else [word, following]))
    return words, list(names)
