"""Writes docs/functions.md and the printed outputs in README and docs anew: `make docs`."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.docs import functions, views
from tests.docs.pages import FROM, NOT_RUN, OUTPUT, Page, pages
from tests.docs.test_pages import run_python, run_shell


def outputs(page: Page) -> str:
    """The text of a page with what its code prints now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    lines, printed = page.path.read_text(encoding="utf-8").splitlines(keepends=True), ""
    shift = 0
    for block in page.blocks:
        if block.mark == OUTPUT:
            start, old = block.line - 1 + shift, block.code.splitlines(keepends=True)
            new = printed.splitlines(keepends=True)
            lines[start : start + len(old)] = new
            shift += len(new) - len(old)
        elif block.language == "python" and block.mark not in (NOT_RUN, FROM):
            printed = run_python(page, block, names)
        elif block.language == "sh":
            printed = run_shell(page, block)
    return "".join(lines)


def main() -> None:
    """Writes each page that prints something, or those that are named."""
    functions.write()
    views.write()
    chosen = [Path(each).resolve() for each in sys.argv[1:]]
    for page in pages():
        if page.path in chosen if chosen else any(block.mark == OUTPUT for block in page.blocks):
            here = Path.cwd()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                text = outputs(page)
                os.chdir(here)
            page.path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
