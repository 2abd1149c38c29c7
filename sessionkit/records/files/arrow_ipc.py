"""Feather, and Arrow's own files and streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from sessionkit.records.files.content import Content


def read_arrow(
    content: Content, columns: Sequence[str] | None, check: Callable[[Sequence[str], Sequence[str] | None], list[str]]
) -> pa.Table:
    """`columns` of Arrow data, or all of them; `check` tells of the names that there are which are to be read."""
    from pyarrow import ipc

    buffer = content.whole()
    open_ipc = ipc.open_file if bytes(buffer[:6]) == b"ARROW1" else ipc.open_stream
    names = open_ipc(buffer).schema.names
    chosen = check(names, columns)
    options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in chosen])
    table = open_ipc(buffer, options=options).read_all()
    table.validate(full=True)
    return table.select(chosen)
