"""The README and the pages of docs as their readers use them: blocks of code in order, links, headings."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
MARKDOWN = MarkdownIt("commonmark").enable("table")
# What a comment right before a block may say of it. A reader of the page does not see it.
OUTPUT, FROM, NOT_RUN, IDIOM, RUN_BY = "output", "from", "not run", "idiom", "run by"


@dataclass(frozen=True)
class Block:
    """A block of code on a page, with the line that it starts in and what the comment before it says."""

    line: int
    language: str
    code: str
    mark: str = ""  # one of those above
    note: str = ""  # what stands behind the mark: the file, the reason, the name, the test


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def tokens(self) -> list[Token]:
        return MARKDOWN.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def blocks(self) -> list[Block]:
        """Its blocks of code; one that is only indented has the language "text"."""
        found, said = [], ""
        for token in self.tokens:
            if token.type in ("fence", "code_block"):
                mark, _, note = said.partition(":")
                line = token.map[0] + (2 if token.type == "fence" else 1) if token.map else 0
                language = token.info if token.type == "fence" else "text"
                found.append(Block(line, language, token.content, mark.strip(), note.strip()))
            comment = re.fullmatch(r"<!--(.*)-->\s*", token.content, re.DOTALL) if token.type == "html_block" else None
            said = comment[1].strip() if comment else ""
        return found

    def blocks_in(self, *languages: str) -> list[Block]:
        return [block for block in self.blocks if block.language in languages]

    @cached_property
    def inline(self) -> list[Token]:
        return [child for token in self.tokens for child in token.children or []]

    def links(self) -> Iterator[str]:
        """Where its links and pictures lead, those in HTML too."""
        for token in self.inline:
            yield from (str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        html = _Links()
        for token in [*self.tokens, *self.inline]:
            if token.type in ("html_block", "html_inline"):
                html.feed(token.content)
        yield from html.found

    @cached_property
    def anchors(self) -> set[str]:
        """The names of its headings in links, as GitHub makes them."""
        titles = [after for token, after in pairwise(self.tokens) if token.type == "heading_open"]
        shown = ["".join(child.content for child in title.children or []) for title in titles]
        return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in shown}


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src", "srcset")]


def dedented(code: str) -> str:
    """Code without the indentation that it has where it stands."""
    return textwrap.dedent(code).strip("\n")


def pages() -> list[Page]:
    return [Page(ROOT / "README.md"), *map(Page, sorted((ROOT / "docs").rglob("*.md")))]
