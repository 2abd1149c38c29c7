"""Records from files of text: keys as they are written, other columns of the types said, or guessed and remarked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.text import literal
from sessionkit.errors import InvalidData, problem, shorten

# Arrow reads in blocks, and a field lies in one block: tried from small to large, as small ones go side by side.
BLOCK_BYTES = (2**20, 2**25, 2**31 - 1)
_TOO_SMALL = "straddling object"
T = TypeVar("T")


class FromFile(NamedTuple):
    """The columns of a file, and what is to be said about how they were read."""

    table: pa.Table
    remarks: list[str]


def read_csv(file: Path, columns: Sequence[str] | None, keys: Sequence[str], types: Mapping[str, str]) -> FromFile:
    """`columns` of a CSV file; key columns are text, but for `types`, and what else is guessed is remarked.

    An empty field is a missing key, an empty one in quotes the empty text.

    Raises:
        InvalidData: text that is not UTF-8, a value that is not of the type said, a file that is torn.
    """
    kinds = {**dict.fromkeys(keys, pa.string()), **{name: pa.type_for_alias(kind) for name, kind in types.items()}}
    return _in_blocks(file, lambda block: _read(file, columns, keys, kinds, block))


def names_of(file: Path) -> list[str]:
    """The names in the first line of a CSV file.

    Raises:
        InvalidData: text that is not UTF-8, a file that is torn.
    """
    return _in_blocks(file, lambda block: _names(file, block))


def _in_blocks(file: Path, read: Callable[[int], T]) -> T:
    for block in BLOCK_BYTES:
        try:
            return read(block)
        except pa.ArrowInvalid as error:
            if _TOO_SMALL not in str(error) or block == BLOCK_BYTES[-1]:
                raise _refusal(file, error) from error
        except pa.ArrowNotImplementedError as error:  # text is not turned into every type
            raise _refusal(file, error) from error
        except UnicodeDecodeError as error:
            raise _no_utf8(file, "a name of a column") from error
    raise AssertionError("the last block either does or raises")


def _names(file: Path, block: int) -> list[str]:
    from pyarrow import csv

    with csv.open_csv(file, csv.ReadOptions(block_size=block), csv.ParseOptions(newlines_in_values=True)) as opened:
        names: list[str] = opened.schema.names
        return names


def _read(
    file: Path, columns: Sequence[str] | None, keys: Sequence[str], kinds: Mapping[str, pa.DataType], block: int
) -> FromFile:
    from pyarrow import csv

    def read(**options: object) -> pa.Table:
        wanted = csv.ConvertOptions(column_types=kinds, **options)
        how = csv.ParseOptions(newlines_in_values=True)
        return csv.read_csv(file, csv.ReadOptions(block_size=block), how, wanted)

    table = read(include_columns=columns)
    texts = [name for name in keys if name in table.column_names and pa.types.is_string(kinds[name])]
    blank = [name for name in texts if pc.any(pc.equal(table[name], "")).as_py()]
    if blank:  # only now is it worth the time to tell those in quotes
        told = read(include_columns=blank, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)
        for name in blank:
            table = table.set_column(table.column_names.index(name), name, told[name])
    guessed = {field.name: field.type for field in table.schema if field.name not in kinds}
    for name, kind in guessed.items():
        if pa.types.is_binary(kind):
            raise _no_utf8(file, f"column {shorten(name)!r}")
    return FromFile(
        table, _remarks(file, {name: kind for name, kind in guessed.items() if not pa.types.is_string(kind)})
    )


def _remarks(file: Path, guessed: Mapping[str, pa.DataType]) -> list[str]:
    if not guessed:
        return []
    said = [f"{shorten(name)!r} ({kind})" for name, kind in guessed.items()]
    listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    what = f"type of {listed} was" if len(said) == 1 else f"types of {listed} were"
    way = f'types={{{literal([*guessed][-1])}: "string"}} in group_by_key would set one'
    return [f"{shorten(file.name)} is text, and the {what} guessed; {way}"]


def _refusal(file: Path, error: pa.ArrowException) -> InvalidData:
    told = shorten(error, 200)
    if "invalid UTF8" in str(error):
        return _no_utf8(file, told)
    if "conversion" in str(error):
        what = f"{shorten(file.name)} does not match types="
        return InvalidData(problem(what, told, "use another type, or values of this one"))
    return InvalidData(problem("the file cannot be read", told, f"check that {file.name} is complete"))


def _no_utf8(file: Path, where: str) -> InvalidData:
    want = 'save it as UTF-8, or pass types={"column": "binary"} for a column of bytes'
    return InvalidData(problem(f"{shorten(file.name)} holds text that is not UTF-8", where, want))
