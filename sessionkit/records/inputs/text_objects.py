"""Key columns of Python's text objects: an object that stands in many rows is looked at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HEAD = 1_000_000  # rows that tell whether objects repeat
SELDOM = 0.5  # distinct objects a row, from which on they do not
_TEXT_OR_MISSING = {str, type(None), float}  # a missing text may be a NaN


def coded_text(series: Any) -> pa.DictionaryArray | None:
    """A pandas column of text objects with a dictionary; None where they do not repeat, or one of them is no text."""
    objects: npt.NDArray[np.object_] = np.ascontiguousarray(series.to_numpy())
    if not len(objects) or not isinstance(objects[0], str):
        return None
    addresses = np.ndarray(objects.shape, np.intp, objects)  # they stay where they are while `objects` holds them
    head = addresses[:HEAD]
    if len(pa.array(head).unique()) > SELDOM * len(head):
        return None
    coded = pa.array(addresses).dictionary_encode()
    code = coded.indices.to_numpy()
    first = np.empty(len(coded.dictionary), np.intp)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # what is written last stays: the first row of each
    texts = _text(objects[first])
    if texts is None:
        return None
    once = texts.dictionary_encode()  # text of equal content may lie in several objects
    return pa.DictionaryArray.from_arrays(once.indices.take(coded.indices), once.dictionary)


def _text(objects: npt.NDArray[np.object_]) -> pa.Array | None:
    """The objects as text; None where one is no text. Arrow by itself would take bytes beside text as bytes."""
    if not set(map(type, objects)) <= _TEXT_OR_MISSING:
        return None
    try:
        return pa.array(objects, pa.large_string(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError):  # told where the column is read as a whole
        return None
