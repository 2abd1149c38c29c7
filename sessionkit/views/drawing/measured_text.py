"""Text in pictures: how wide it is, how it flows into lines, and the heading above a plot."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from sessionkit.base.text import escape_label, key_name
from sessionkit.errors import shorten
from sessionkit.views.drawing.palettes import Palette

SIZE, PAD, BOLD = 12, 3, 1.1
TITLE_SIZE, HEADING_SIZE, NOTE_SIZE = 19, 15, 13  # lines of a heading are as far apart as its own size makes them
_LINE_HEIGHT = 1.35
_HEAD, _LINE = 60, 20  # pixels: a heading of one line, and each further one
_MARGIN = 40
_BREAK = re.compile(r"(?<!\d) | (?!(?:ms|s|min|h|d)\b)")  # not between a number and its unit
_LETTER = re.compile(r"&[^;]+;|.")
_TAG = re.compile(r"<[^>]*>")
# widths in ems of DejaVu Sans, the widest font of the stack; what is not listed is 0.62 wide
_EMS = {
    0.32: "ijl.,:;|'!() ",
    0.42: 'tfr-/"',
    0.2: "\N{THIN SPACE}",
    0.5: "\N{EN SPACE}",
    0.68: "ABCDEFGHKNOPQRSTUVXYZ&→+\N{MINUS SIGN}",
    0.95: "mwMW@%…",
}
_EM = {character: width for width, characters in _EMS.items() for character in characters}


def key_labels(keys: Sequence[object], length: int) -> list[str]:
    """Keys beside their lanes; an empty text is one, too. What would read alike is cut where it is not the same."""
    texts = [key_name(key, 1_000) for key in keys]
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(shorten(text, length), []).append(text)
    cut = (_around(text, alike[shorten(text, length)], length) for text in texts)
    return [escape_label(text, 2 * length) for text in cut]


def _shared(texts: Sequence[str]) -> int:
    """With how many letters that are the same these texts begin."""
    first, last = min(texts), max(texts)
    return next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))


def _around(text: str, alike: Sequence[str], length: int) -> str:
    """So many letters of a text: from its ends, or around what is not the same as in others that would read alike."""
    if len(set(alike)) == 1:
        return shorten(text, length)
    before, after = _shared(alike), _shared([each[::-1] for each in alike])
    own = len(text) - before - after
    start = min(max(before - max(length - own - 2, 0) // 2, 0), max(len(text) - length + 1, 0))
    end = start + length - 2 + (start == 0)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


@lru_cache(4096)
def text_width(text: str, size: float = SIZE) -> float:
    """Pixels that a line takes at most; markup does not count, bold is taken as a tenth wider."""
    bold = BOLD if "<b>" in text else 1.0
    plain = html.unescape(_TAG.sub("", text))
    wide = sum(_EM.get(character, 0.62 if ord(character) < 0x2E80 else 1.05) for character in plain)
    return bold * size * wide


def text_size(text: str, size: float = SIZE) -> tuple[float, float]:
    """(width, height) in pixels of a label's box."""
    rows = text.split("<br>")
    return max(text_width(row, size) for row in rows) + 2 * PAD, len(rows) * size * _LINE_HEIGHT + 2 * PAD


def flow(notes: Sequence[str], width: float, size: float = 13) -> list[str]:
    """Notes one after the other, parted by dots, in as many lines of this width as it takes."""
    rows: list[str] = []
    for note in notes:
        joined = f"{rows[-1]} · {note}" if rows else note
        if rows and text_width(joined, size) <= width:
            rows[-1] = joined
            continue
        rows.append("")
        for word in chain.from_iterable(_pieces(each, width, size) for each in _BREAK.split(note)):
            longer = f"{rows[-1]} {word}".strip()
            if text_width(longer, size) > width and rows[-1]:
                rows.append(word)
            else:
                rows[-1] = longer
    return rows


def _pieces(word: str, width: float, size: float) -> list[str]:
    pieces = [""]
    for letter in _LETTER.findall(word) if text_width(word, size) > width else [word]:
        if text_width(pieces[-1] + letter, size) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


@dataclass(frozen=True)
class Heading:
    """A title, and quiet sentences below it, in lines that fit the width of a picture; escaped."""

    title: Sequence[str]
    notes: Sequence[str]

    @classmethod
    def of(cls, title: str, sentences: Sequence[str], notes: Sequence[str], width: int) -> Heading:
        """Each sentence begins a line; notes follow each other, parted by dots."""
        room = width - _MARGIN
        said = [line for sentence in sentences for line in flow([sentence], room)]
        return cls(flow([title], room / BOLD, TITLE_SIZE), [*said, *flow(notes, room)])

    @property
    def height(self) -> int:
        """Pixels that it takes above a plot."""
        return _HEAD + _LINE * (len(self.title) - 1 + len(self.notes))

    def text(self, colours: Palette) -> str:
        """As plotly writes it."""
        bold = [f"<b><span style='font-size:{TITLE_SIZE}px'>{line}</span></b>" for line in self.title]
        quiet = [f"<span style='font-size:{NOTE_SIZE}px;color:{colours.mute}'>{line}</span>" for line in self.notes]
        return "<br>".join([*bold, *quiet])
