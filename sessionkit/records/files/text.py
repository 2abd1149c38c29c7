"""Records from CSV and its relatives: columns of the types said, the others as Arrow guesses them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.text import literal, way_of_marks, way_to_number
from sessionkit.errors import InvalidData, attempted, problem, shorten
from sessionkit.records.files.content import Content, Kinds
from sessionkit.records.inputs.pandas_columns import is_a_value
from sessionkit.records.time_text import formats_for

# Arrow reads in blocks, and a field lies in one block: tried from small to large, as small ones go side by side.
BLOCK_BYTES = (2**20, 2**25, 2**31 - 1)
_TOO_SMALL = "straddling object"
_FIRST_LINE = 2**16
_SEPARATORS = (",", "\t", ";", "|")
PARTED_BY = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "the character |", " ": "spaces"}
_LOG = re.compile(
    r"\[?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d[-./]\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)\]? +(?=[^\s,;])"
)
# A line of a chat, as its app exports it: the time, and who wrote what.
_CHAT = (
    r"^\W*(?P<at>(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4},?|\d{4}-\d\d-\d\d,)"
    r"\s\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp][Mm])?)(?:\]| -) "
)
_FIELDS = re.compile(r"#fields:?([ \t])", re.I)  # a comment in the logs of Zeek and IIS
_LINES_ABOVE = 50
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
T = TypeVar("T")


def read_csv(content: Content, columns: Sequence[str] | None, kinds: Kinds) -> pa.Table:
    """`columns` of a CSV file, of the types in `kinds`; those of the others are guessed.

    An empty field of a column of text is a missing one, an empty one in quotes the empty text.
    """
    _check_comments(content)
    separator = separator_of(content)
    content = _quotes_doubled(content, separator)
    return _in_blocks(content, lambda block: _read(content, columns, kinds, separator, block))


def names_of(content: Content) -> list[str]:
    """The names in the first line of a CSV file; c1, c2 and so on where it has no line of names."""
    _check_comments(content)
    separator = separator_of(content)
    with content.stream() as stream:
        if stream.read(2) in _UTF16_MARKS:
            raise not_utf8(content, "UTF-16, as its first bytes say")
    return _in_blocks(content, lambda block: _names(_quotes_doubled(content, separator, block), separator, block))


def separator_of(content: Content) -> str:
    """The separator of the fields: the one given, else that in the first two lines, else the usual one of such files.

    Another one than the usual is taken where it alone stands as often in the second as in the first, or once more
    behind quotes, as where R writes names of rows; spaces where the first has no other, and makes at least three
    fields. What stands in quotes does not count.
    """
    if content.separator is not None:
        return content.separator
    if said := _said_first(content):
        return said
    first, second = first_lines(content)
    if formats_for((second or first).decode(errors="replace")):
        return "\t"  # a line is a time, in which a comma parts nothing
    usual, found = content.usual or ",", [each for each in _SEPARATORS if each.encode() in first]
    if not found and first.count(b" ") >= 2:
        found = [" "]
    more = {each: second.count(each.encode()) - first.count(each.encode()) for each in found}
    alike = [each for each in found if not second or not more[each]]
    alike = alike or [each for each in found if more[each] == 1 and first[:1] == second[:1] == each.encode()]
    if alike[1:] and alike[0] == "," and len(re.findall(rb":\d\d,\d{3}(?!\d)", first)) == first.count(b","):
        alike.remove(",")  # it stands before fractions of seconds
    if len(alike) == 1:
        return alike[0]
    return "\t" if content.usual is None and "\t" in found else usual


def _said_first(content: Content) -> str:
    """The separator that a line above the names says, as Excel writes and reads it ("sep=;"); "" if there is none."""
    with content.stream() as stream:
        said = re.match(rb"(?i)(?:\xef\xbb\xbf)?sep=([,;|\t ])\r?\n", stream.read(10))
    return said[1].decode() if said else ""


def seems_parted(content: Content) -> str:
    """Advice to leave out `separator=` if the first line seems to have another separator than that; else ""."""
    if content.separator is None:
        return ""
    first, other = first_lines(content)[0], separator_of(dataclasses.replace(content, separator=None))
    if content.separator.encode() in first or other.encode() not in first:
        return ""
    return f"leave out separator=: its first lines look as if parted by {PARTED_BY[other]}"


def way_of_a_log(content: Content) -> str:
    """The line of pandas that parts the times at the beginning of lines from the rest; "" if no time is there."""
    if content.kind != "CSV":
        return ""
    lines = [line.decode(errors="replace") for line in first_lines(content)]
    if all(re.match(_CHAT, line) for line in lines):
        parts = f'pandas.Series([*open({literal(content.path)}, encoding="utf-8")]).str.extract('
        way = f'df = {parts}r"{_CHAT}(?P<key>[^:]+): (?P<rest>.*)").dropna(); "key" is the name'
        return f"read it with pandas, as this is a chat or a log whose lines begin with a time and a name: {way}"
    found = [_LOG.match(line) for line in lines]
    if found[0] is None or found[1] is None:
        return ""
    start, end = found[0].span(1)
    parts = f'colspecs=[({start}, {end}), ({found[0].end()}, None)], names=["at", "rest"]'
    way = f"df = pandas.read_fwf({literal(content.path)}, {parts})"
    way += '; df["key"] = df["rest"].str.split().str[0] is a key'
    return f"read it with pandas, as this is a log whose lines begin with a time: {way}"


def _check_comments(content: Content) -> None:
    """Refuses a file with comments above its rows, which may name its fields, with the line of pandas that reads it."""
    with content.stream() as stream:
        first = stream.read(1)
        if first not in (b"#", b"%"):
            return
        lines = (first + stream.read(_FIRST_LINE - 1)).decode(errors="replace").splitlines()
    above = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    said = next(filter(None, map(_FIELDS.match, lines[:above])), None)
    if said is None:
        above = next((at for at, line in enumerate(lines) if not line.startswith(("#", "%"))), 0)
        if above > 1 and lines[above][:1].isdigit():  # else a line of names
            between = next((literal(each) for each in _SEPARATORS if each in lines[above]), 'r"\\s+"')
            way = f"df = pandas.read_csv({literal(content.path)}, sep={between}, skiprows={above}, "
            way += 'header=None).add_prefix("c"), as rows begin behind the comments'
            raise InvalidData(problem("the file begins with comments", repr(shorten(lines[0])), way))
        return
    names = said.string[said.end() :].rstrip().split(said[1])
    read = f"{literal(content.path)}, sep={literal(said[1])}, skiprows={above}, names={json.dumps(names)}"
    has_end = bytes(content.whole()).rstrip().rpartition(b"\n")[2].startswith(b"#")
    read += ', na_values="-"' + ', skipfooter=1, engine="python"' * has_end + _encoding(content)
    way = f"df = pandas.read_csv({read}), as a comment in it names the fields"
    raise InvalidData(problem("the file begins with comments", repr(shorten(lines[0])), way))


def _way_of_words(content: Content) -> str:
    """The line of pandas for a log whose lines are a few words and then free text; "" if it seems to be a table."""
    lines = [line for line in bytes(content.whole()).splitlines() if line.strip()]
    least = min((len(line.split()) for line in lines), default=0)
    numbers = [sorted(line.count(each.encode()) for line in lines) for each in _SEPARATORS if lines]
    is_table = any((usual := each[len(each) // 2]) and 2 * each.count(usual) > len(lines) for each in numbers)
    if is_table or least < 3 or b'"' in lines[0]:
        return ""
    read = f'{literal(content.path)}, sep="\\x01", header=None, quoting=3{_encoding(content)}'
    read = f'df = pandas.read_csv({read})[0].str.split(n={least - 1}, expand=True).add_prefix("c")'
    return f"its lines have different numbers of words: {read} parts the first {least - 1} of each from the rest"


def _past_lines_above(content: Content) -> str:
    """The line of pandas that leaves out what stands above the names, if this seems to be there; else ""."""
    lines = [*(line.decode(errors="replace") for line in first_lines(content, _LINES_ABOVE)), ""]
    parted = (at for at, line in enumerate(lines) if not line.startswith("#") and set(line).intersection(_SEPARATORS))
    names, row = lines[(above := next(parted, 0)) :][:2]
    found = [each for each in content.separator or _SEPARATORS if names.count(each) == row.count(each) > 0]
    if not above or not found or any(map(is_a_value, names.split(found[0]))):
        return ""
    way = f"pandas.read_csv({literal(content.path)}, sep={literal(found[0])}, skiprows={above}{_encoding(content)})"
    return f"the names seem to stand in line {above + 1}: {way}"


def _encoding(content: Content) -> str:
    """The argument that pandas needs besides if a file is not UTF-8: most others were written on Windows."""
    try:
        bytes(content.whole()).decode()
    except UnicodeDecodeError as error:
        name = "utf-16" if error.object[:2] in _UTF16_MARKS else "cp1252"
        is_read = attempted(error.object.decode, name, but=UnicodeDecodeError) is not None
        return f", encoding={literal(name if is_read else 'latin-1')}"
    return ""


def first_lines(content: Content, most: int = 2) -> list[bytes]:
    """The first lines below one that says the separator, two unless `most` says more, without the parts in quotes."""
    with content.stream() as stream:
        lines = stream.read(_FIRST_LINE).split(b"\n", most + 1)[bool(_said_first(content)) :]
    lines = [re.sub(rb'\\"(?!\s*([,;\t|]|$))', b"", line) for line in [*lines, b""][:most]]  # quotes of a web server
    return [re.sub(rb'"[^"]*"', b"", line.strip(b"\r ")) for line in lines]


def _quotes_doubled(content: Content, separator: str, most: int | None = None) -> Content:
    """The content of a web server's log with quotes as CSV has them: such servers write \\" for a quote in quotes.

    With `most` only the whole lines within so many bytes.
    """
    if separator != " ":
        return content
    with content.stream() as stream:
        found = stream.read_buffer(most)
    if re.search(rb'\\"', found) is None or (found.size == most and b"\n" not in found.to_pybytes()):
        return content
    lines = re.sub(rb'\\(["\\])', lambda each: b'""' if each[1] == b'"' else each[0], found)
    if found.size == most:
        lines = lines[: lines.rfind(b"\n") + 1]
    return dataclasses.replace(content, open=lambda: pa.py_buffer(lines), compression=None, separator=separator)


def _in_blocks(content: Content, read: Callable[[int], T]) -> T:
    for block in BLOCK_BYTES:
        try:
            return read(block)
        except pa.ArrowInvalid as error:
            if _TOO_SMALL not in str(error) or block == BLOCK_BYTES[-1]:
                raise _refusal(content, error) from error
        except pa.ArrowNotImplementedError as error:  # text is not turned into every type
            raise _refusal(content, error) from error
        except UnicodeDecodeError as error:
            raise not_utf8(content, "a name of a column") from error
    raise AssertionError("the last block either does or raises")


def _names(content: Content, separator: str, block: int) -> list[str]:
    from pyarrow import csv

    how = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    above = len(_said_first(content))
    options = csv.ReadOptions(block_size=block, autogenerate_column_names=not content.header, skip_rows=above)
    with csv.open_csv(content.read_ahead(), options, how) as opened:
        names: list[str] = opened.schema.names
        return names if content.header else [f"c{place + 1}" for place in range(len(names))]


def _read(content: Content, columns: Sequence[str] | None, kinds: Kinds, separator: str, block: int) -> pa.Table:
    from pyarrow import csv

    names, above = None if content.header else names_of(content), len(_said_first(content))
    lines = csv.ReadOptions(block_size=block, column_names=names, skip_rows=above)

    def read(texts: Sequence[str] = (), **options: object) -> pa.Table:
        wanted = csv.ConvertOptions(column_types={**kinds, **dict.fromkeys(texts, pa.string())}, **options)
        how = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        return csv.read_csv(content.read_ahead(), lines, how, wanted)

    table = read(include_columns=columns)
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    blank = [name for name in texts if pc.any(pc.equal(table[name], "")).as_py()]
    if blank:  # only now is it worth the time to tell those in quotes
        told = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
        text = read(blank, include_columns=blank, **told)
        for name in blank:
            table = table.set_column(table.column_names.index(name), name, text[name])
    for field in table.schema:
        if field.name not in kinds and pa.types.is_binary(field.type):
            raise not_utf8(content, f"column {shorten(field.name)!r}")
    return table


def csv_batches(
    content: Content,
    columns: Sequence[str],
    kinds: Kinds,
    check: Callable[[Sequence[str], Sequence[str]], list[str]],
) -> Iterator[pa.Table]:
    """What `read_csv` gives, a block after another; all columns are of the types in `kinds`."""
    from pyarrow import csv

    _check_comments(content)
    separator, names = separator_of(content), names_of(content)
    content, columns = _quotes_doubled(content, separator), check(names, columns)
    how = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    above = len(_said_first(content))
    lines = csv.ReadOptions(
        block_size=BLOCK_BYTES[1], column_names=None if content.header else names, skip_rows=above, use_threads=True
    )

    def batches(**options: object) -> Iterator[pa.RecordBatch]:
        yield from csv.open_csv(content.read_ahead(), lines, how, csv.ConvertOptions(column_types=kinds, **options))

    texts = [name for name in columns if pa.types.is_string(kinds[name])]
    quoted = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    told: Iterator[pa.RecordBatch] | None = None  # the same blocks, with the empty texts in quotes told apart
    try:
        for number, batch in enumerate(batches(include_columns=columns)):
            table = pa.Table.from_batches([batch])
            blank = [name for name in texts if pc.any(pc.equal(table[name], "")).as_py()]
            if blank and told is None:
                told = islice(batches(include_columns=texts, **quoted), number, None)
            told_here = None if told is None else next(told)
            for name in blank:
                assert told_here is not None
                table = table.set_column(table.column_names.index(name), name, pa.chunked_array([told_here[name]]))
            yield table
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _refusal(content, error) from error


def _refusal(content: Content, error: pa.ArrowException) -> InvalidData:
    reason = shorten(str(error).replace(" 1 columns", " 1 column"), 200)
    if "invalid UTF8" in str(error):
        return not_utf8(content, reason)
    if "conversion" in str(error):
        return not_of_type(shorten(content.name), error)
    want = way_of_a_log(content) or _way_of_words(content) or _past_lines_above(content) or seems_parted(content)
    if not want and re.search(rb'\\"', content.whole()):
        want = f"pandas.read_csv({literal(content.path)}, escapechar='\\\\'), as quotes within quotes are written \\\""
    found = [each for each in _SEPARATORS if each.encode() in first_lines(content)[0] and each != separator_of(content)]
    want = want or ("" if found else _way_of_more_fields(content, str(error)))
    other = f"separator= if its fields are parted by {' or '.join(PARTED_BY[each] for each in found)}, or "
    want = want or f"{other if found else ''}check that {content.name} is complete"
    return InvalidData(problem("the file cannot be read", reason, want))


def _way_of_more_fields(content: Content, reason: str) -> str:
    """The line of pandas for a file in which a line has more fields than the first; "" if that is not the reason."""
    found = re.search(r"Expected (\d+) columns, got (\d+): (.+?)( \.\.\.)?$", reason, re.DOTALL)
    if found is None or (count := int(found[1])) < 2 or int(found[2]) < count:
        return ""
    whole, separator = bytes(content.whole()), separator_of(content)
    at = whole.find(found[3].partition("\n")[0].encode())
    line, before = whole[at:].partition(b"\n")[0], whole.count(b"\n", 0, max(at, 0))
    first = first_lines(content)[0].decode(errors="replace").split(separator)
    bare = ", header=None" if not content.header or any(map(is_a_value, first)) else ""
    read = f"df = pandas.read_csv({literal(content.path)}, sep={literal(separator)}{bare}{_encoding(content)}"
    counts = [each.count(separator.encode()) + 1 for each in first_lines(content, _LINES_ABOVE) if each]
    if not bare and {*counts[1:]} == {counts[0] + 1}:
        return f"each line has one field more than the names, as where R writes names of rows: {read})"
    where = (
        f"line {before + 1:,} has more fields than the first" if at >= 0 else "a line has more fields than the first"
    )
    if line.count(b'"') % 2:
        return f'{where}, as a quote in it is not closed: {read}, on_bad_lines="warn") leaves such lines out'
    rest = f"lambda found: [*found[:{count - 1}], {literal(separator)}.join(found[{count - 1}:])]"
    return f'{where}: {read}, engine="python", on_bad_lines={rest}) takes the rest of it as the last field'


def not_of_type(what: str, error: Exception) -> InvalidData:
    """The error for a value that is not of the type said."""
    found = re.search("(?:invalid value|parse string:) '(.*)'", str(error))
    to_number = re.search("(to|of type) (double|float|u?int)", str(error)) is not None
    value, want = found[1] if found else "", "use another type, or values of this one"
    if way := way_to_number([value], "column") or (way_of_marks([value], "column") if to_number else ""):
        want = f"{way}; or {want}"
    return InvalidData(problem(f"{what} does not match types=", shorten(error, 200), want))


def not_utf8(content: Content, where: str) -> InvalidData:
    """The error for text in another encoding."""
    want = 'save it as UTF-8, or pass types={"column": "binary"} for a column of bytes'
    if content.kind == "CSV":
        read = f"{literal(content.path)}, sep={literal(separator_of(content))}{_encoding(content)}"
        way = _past_lines_above(content) or f"df = pandas.read_csv({read})"
        said = "which reads some letters as others" if "latin-1" in way else "if it was written on Windows"
        want = f"{way}, {said}; or {want}"
    return InvalidData(problem(f"{shorten(content.name)} holds text that is not UTF-8", where, want))
