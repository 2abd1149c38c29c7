"""Calls that are ended in the midst of writing: by a signal, or as the disk is full."""

import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sessionkit.errors import WriteFailed

_CHANGES = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


def signal_before(changes: int, folder: Path, by: signal.Signals) -> None:
    """Has this process send itself a signal before the change of this number that it makes to files in the folder."""
    made = 0

    def look(event: str, arguments: Any) -> None:
        nonlocal made
        if event in _CHANGES and str(folder) in str(arguments):
            made += 1
            if made == changes:
                os.kill(os.getpid(), by)

    sys.addaudithook(look)


def say_what_is_full(write: Callable[[], object], limit: int, said: Connection) -> None:
    """Writes where no file can have more bytes, and says what was wrong."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        write()
        said.send("")
    except WriteFailed as error:
        said.send(str(error))
