"""The one place where text that comes from data is made safe: for HTML, for charts, for one-line messages."""

from __future__ import annotations

import html
import json
import keyword
import unicodedata
from collections.abc import Mapping

LABEL_LENGTH = 60
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, and what breaks a line


def shorten(text: object, length: int = LABEL_LENGTH) -> str:
    """`text` on one line, control characters made visible, cut in the middle to `length` characters.

    Example:
        >>> shorten("a" * 100, 9)
        'aaaa…aaaa'
    """
    # A far longer text is cut before it is cleaned, so that a key of a megabyte costs nothing.
    raw = str(text)
    if len(raw) > 4 * length:
        raw = raw[: 2 * length] + raw[-2 * length :]
    line = "".join(_visible(character) for character in raw)
    if len(line) <= length:
        return line
    half = (length - 1) // 2
    return line[: length - 1 - half] + "…" + line[len(line) - half :]


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def escape_html(text: object) -> str:
    """`text` for an HTML page or attribute; shows as itself and cannot start markup or a link.

    `$` becomes an entity for plotly, which looks for MathJax in the text as written; a page needs `html_block`, too.

    Example:
        >>> escape_html("<b>$x$")
        '&lt;b&gt;&#36;x&#36;'
    """
    return html.escape(str(text), quote=True).replace("$", "&#36;")


def escape_label(text: object, length: int = LABEL_LENGTH) -> str:
    """`text` for a plotly label, hover or axis category: one short line without markup or MathJax.

    plotly reads a small HTML of its own in every label (`<b>`, `<a href>`, `<br>`), and `$…$` as MathJax.
    """
    return escape_html(shorten(text, length))


def html_block(inner: str) -> str:
    """`inner` (HTML) in a block that MathJax leaves alone.

    JupyterLab typesets what a cell shows: a key such as `$\\href{javascript:…}{x}$` would become a link.

    Example:
        >>> html_block("<p>5 $</p>")
        '<div class="mathjax_ignore tex2jax_ignore"><p>5 $</p></div>'
    """
    return f'<div class="mathjax_ignore tex2jax_ignore">{inner}</div>'


def literal(value: object) -> str:
    """`value` as Python code, text in double quotes; what is not seen, or turns the letters around it, is escaped.

    Example:
        >>> print(literal("it's"), literal(7))
        "it's" 7
    """
    if not isinstance(value, str):
        return repr(value)
    return "".join(_coded(character) for character in json.dumps(value, ensure_ascii=False))


def _coded(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def keyword_arguments(code: Mapping[str, str]) -> list[str]:
    """`name=code` of each argument; a name that Python does not take as one goes into a dict.

    Example:
        >>> keyword_arguments({"n": "1", "per cent": "2"})
        ['n=1', '**{"per cent": 2}']
    """
    return [f"{name}={text}" if _is_plain(name) else f"**{{{literal(name)}: {text}}}" for name, text in code.items()]


def _is_plain(name: str) -> bool:
    """True for a name that Python reads as it is: it would take "ª" for "a"."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def plural(count: int, one: str, many: str | None = None) -> str:
    """`count` with its noun: "1 record", "2 records", "28,491 records"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
