"""The one place where text that comes from data is made safe: HTML, charts, one-line messages, Python, Java, SQL."""

from __future__ import annotations

import html
import json
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeVar

from sessionkit.errors import INVISIBLE, LABEL_LENGTH, InvalidArgument, attempted, problem, shorten, visible

COMMENT_WIDTH = 110
ONE_KEY = 'if all rows are of one person or device, df["all"] = "all" in pandas makes a key'
OF_ALL, ALL = b"", "all records"  # the key of all records where no column is one, and what it is called
C = TypeVar("C")


def escape_html(text: object) -> str:
    """`text` for an HTML page or attribute; shows as itself and cannot start markup or a link.

    `$` becomes an entity for plotly, which looks for MathJax in the text as written; a page needs `html_block`, too.
    A quote becomes a number: plotly shows `&quot;` as it is written.

    Example:
        >>> escape_html("<b>$x$")
        '&lt;b&gt;&#36;x&#36;'
    """
    return html.escape(str(text), quote=True).replace("$", "&#36;").replace("&quot;", "&#34;")


def key_name(key: object, length: int = LABEL_LENGTH) -> str:
    """A key as it is named in a sentence or a list; an empty text is one, too. Not escaped."""
    return "(empty)" if key == "" else ALL if key == OF_ALL else shorten(key, length)


def of_key(key: object, *, first: bool = False) -> str:
    """A key in a sentence, after "of" or "for", or as its first word. Not escaped.

    Example:
        >>> of_key("ada"), of_key(OF_ALL)
        ('key ada', 'all records')
    """
    said = ALL if key == OF_ALL else f"key {key_name(key)}"
    return said[0].upper() + said[1:] if first else said


def escape_label(text: object, length: int = LABEL_LENGTH) -> str:
    """`text` for a plotly label, hover or axis category: one short line without markup or MathJax.

    plotly reads a small HTML of its own in every label (`<b>`, `<a href>`, `<br>`), and `$…$` as MathJax.
    """
    return escape_html(ALL if text == OF_ALL else shorten(text, length))


def html_block(inner: str) -> str:
    """`inner` (HTML) in a block that MathJax leaves alone.

    JupyterLab typesets what a cell shows: a key such as `$\\href{javascript:…}{x}$` would become a link.

    Example:
        >>> html_block("<p>5 $</p>")
        '<div class="mathjax_ignore tex2jax_ignore"><p>5 $</p></div>'
    """
    return f'<div class="mathjax_ignore tex2jax_ignore">{inner}</div>'


def inert_json(value: object) -> str:
    """`value` as JSON that cannot end the element it stands in: the characters of markup as their escapes.

    Example:
        >>> print(inert_json({"key": "</script>"}))
        {"key":"\\u003c/script\\u003e"}
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def literal(value: object) -> str:
    """`value` as Python code, text in double quotes; what is not seen, or turns the letters around it, is escaped.

    Example:
        >>> print(literal("it's"), literal(7))
        "it's" 7
    """
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(name)}: {literal(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if not isinstance(value, str):
        return repr(value)
    return "".join(_coded(character) for character in json.dumps(value, ensure_ascii=False))


def _coded(character: str) -> str:
    if unicodedata.category(character) not in INVISIBLE:
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


def java_literal(text: str) -> str:
    """`text` as a Java string, in ASCII.

    Java reads `\\uXXXX` before it reads strings, also for a quote or the end of a line: control characters are written
    in octal, and a backslash is always doubled, so that it starts no such escape.

    Example:
        >>> print(java_literal('5" \\\\u0022 é'))
        "5\\" \\\\u0022 \\u00e9"
    """
    return '"' + "".join(_java_character(character) for character in text) + '"'


def _java_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if " " <= character <= "~":
        return character
    return f"\\{ord(character):03o}" if ord(character) < 128 else _java_escape(character)


def _java_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def comment(text: str, mark: str) -> str:
    """`text` as lines that each start with `mark`; nothing in it can end a line. After "//" in ASCII, for Java.

    Example:
        >>> print(comment("a\\nb */ \\\\u000a", "//"))
        // a\\\\nb */ \\\\u000a
    """
    line = "".join(visible(character) for character in text)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    lines = textwrap.wrap(line, COMMENT_WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    if mark == "//":  # Java reads \\u000a in a comment, too, but not after a backslash
        doubled = (line.replace("\\", "\\\\") for line in lines)
        lines = ["".join(each if each.isascii() else _java_escape(each) for each in line) for line in doubled]
    return "\n".join(f"{mark} {line}".rstrip() for line in lines)


def sql_literal(text: str) -> str:
    """`text` as a string of standard SQL (ksqlDB, Flink), where only the quote itself is special.

    Example:
        >>> print(sql_literal("it's"))
        'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """`name` as a quoted identifier of ksqlDB, Flink and Spark. See `is_visible` for what they do not take.

    Example:
        >>> print(sql_name("a`b -- c"))
        `a``b -- c`
    """
    return "`" + name.replace("`", "``") + "`"


def is_visible(text: str) -> bool:
    """True if every character of `text` can be seen: no control character, line break or change of direction."""
    return all(unicodedata.category(character) not in INVISIBLE for character in text)


def is_text(text: str) -> bool:
    """True if it can be written as UTF-8: no half of a pair stands alone."""
    return attempted(text.encode, but=UnicodeEncodeError) is not None


def plural(count: int, one: str, many: str | None = None) -> str:
    """`count` with its noun: "1 record", "2 records", "28,491 records"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def counted(name: str, count: int) -> str:
    """The noun that stands below a number: "sessions", but "session" below 1."""
    return _ONE.get(name, name) if count == 1 else name


_ONE = {each: each.removesuffix("s") for each in ("sessions", "windows", "records", "merges", "keys")}
_ONE["micro-batches"] = "micro-batch"


def percent(share: float) -> str:
    """A share in percent, as a person says it: "100%" and "0%" only where they are exact.

    Example:
        >>> percent(1.0), percent(0.995712), percent(0.99999), percent(0.99999999), percent(1e-9)
        ('100%', '99.57%', '99.999%', 'more than 99.9999%', 'less than 0.0001%')
    """
    for digits in (2, 3, 4):
        number = f"{100 * share:.{digits}f}".rstrip("0").rstrip(".")
        if number not in ("100", "0") or share in (0, 1):
            return f"{number}%"
    return "more than 99.9999%" if share > 0.5 else "less than 0.0001%"


_MONEY = "[$€£¥₹%]|EUR|USD|GBP|CHF"
_WRITTEN_NUMBER = re.compile(
    rf"\s*({_MONEY})?\s*[-+]?({_MONEY})?([1-9]\d{{0,2}}(?P<mark>[.,' \u00a0\u202f])\d{{3}}"
    rf"(?P<more>(?P=mark)\d{{3}})*(?P<rest>(?!(?P=mark))[.,]\d+)?|\d+(?P<tail>[.,]\d+)?)\s*({_MONEY})?\s*"
)


_WRITTEN_LENGTH = re.compile(r"P(\d+D)?(T(\d+H)?(\d+M)?([\d.]+S)?)?|\d+:\d\d:\d\d(\.\d+)?")


def way_to_number(texts: Sequence[str], name: str) -> str:
    """How numbers are read that people wrote as these texts of a column; "" for plain ones, or if the first is none.

    The line changes this column alone: in another one a dot may be part of a day, and a comma of a list.

    Example:
        >>> print(way_to_number(["34,56", "1.234,56"], "price"))
        df['price'] = df['price'].str.replace(".", "").str.replace(",", ".").astype(float) makes a number of it
    """
    if texts and all(map(_WRITTEN_LENGTH.fullmatch, texts)):
        return f"df[{name!r}] = pandas.to_timedelta(df[{name!r}]).dt.total_seconds() makes seconds of it"
    found = [each for text in texts if (each := _WRITTEN_NUMBER.fullmatch(text))]
    points = {part[0] for each in found if (part := each["rest"] or each["tail"])}
    marked = [each for each in found if each["mark"]]
    sure = {each["mark"] for each in marked if each["more"] or each["rest"] or each["mark"] not in ".,"}
    unsure = {each["mark"] for each in marked} - sure  # the comma of "1,234" may stand before decimals
    if not found or found[0][0] != texts[0] or 2 * len(found) < len(texts) or sure & points:  # of addresses few fit
        return ""
    away = [*sorted(sure | (unsure - points if len(points) == 1 else set()))]
    away += dict.fromkeys(re.findall(_MONEY, " ".join(each[0] for each in found)))
    column, steps = f"df[{name!r}]", [(each if each.isprintable() else ascii(each)[1:-1], "") for each in away]
    is_either = "," in unsure and not points and not sure & {",", "."}
    if is_either or "," in points or ("," in unsure and "." in sure):
        steps.append((",", "" if is_either else "."))
    made = "".join(f'.str.replace("{mark}", "{by}")' for mark, by in steps)
    rest = ' (.str.replace(",", ".") if the comma stands before decimals)' if is_either else ""
    return f"{column} = {column}{made}.astype(float) makes a number of it{rest}" if steps else ""


def way_of_marks(texts: Sequence[str], name: str) -> str:
    """How numbers of the column `name` are read among which these words stand; "" if they are many, or have digits."""
    if not 1 <= len(texts) <= 3 or any(len(text) > 20 or re.search(r"\d", text) for text in texts):
        return ""
    line = f'df[{name!r}] = pandas.to_numeric(df[{name!r}], errors="coerce")'
    stand = "stands for a missing value" if len(texts) == 1 else "stand for missing values"
    return f"{line} for a plan to run on, if {' and '.join(map(repr, texts))} {stand}"


def one_of(name: str, value: C, choices: tuple[C, ...]) -> C:
    """`value`, if it is one of `choices`; else `InvalidArgument`."""
    if value not in choices:
        want = "one of " + ", ".join(repr(choice) for choice in choices)
        raise InvalidArgument(problem(f"{name} must be a known choice", repr(value), want))
    return value
