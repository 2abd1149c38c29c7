"""Options that take one value are given once, and by one of their names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from typer import Context
from typer.core import TyperCommand

from sessionkit.errors import problem, shorten


class Once(TyperCommand):
    """A command that refuses an option which would replace what was given before."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """What is left of the arguments."""
        given = self.make_parser(ctx).parse_args(args=list(args))[2]
        rest = super().parse_args(ctx, list(args))  # help comes first
        for option in dict.fromkeys(each for each in given if each.param_type_name == "option"):
            words = _as_given(option, args)
            names = list(dict.fromkeys(word.split(" ")[0].split("=")[0] for word in words))
            if given.count(option) > 1 and not option.multiple:
                what = f"{'/'.join(option.opts)} takes one value"
                ctx.fail(problem(what, shorten(" and ".join(words), 500), "give it once"))
            if len(names) > 1:
                want = f"use one of them{'; --window-key names a window' if self.name == 'explain' else ''}"
                what = f"{' and '.join(names)} are two names of one option"
                ctx.fail(problem(what, shorten(" and ".join(words), 500), want))
        return rest


def _as_given(option: Any, args: Sequence[str]) -> list[str]:
    """How an option was given, each time."""
    return [
        shlex.join([word] if "=" in word or option.is_flag else [word, value])
        for word, value in zip(args, [*args[1:], ""], strict=True)
        if word.split("=")[0] in option.opts
    ]
