"""Where files of tests lie: in memory, where there is plenty of it and programs may be run from there."""

import os

_FOLDER, _ROOM = "/dev/shm", 4 * 2**30  # noqa: S108


def _in_memory() -> str | None:
    if not (os.path.isdir(_FOLDER) and os.access(_FOLDER, os.W_OK)):
        return None
    about = os.statvfs(_FOLDER)
    return _FOLDER if about.f_bavail * about.f_frsize > _ROOM and not about.f_flag & os.ST_NOEXEC else None


MEMORY = _in_memory()
