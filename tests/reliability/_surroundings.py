"""Processes in poor surroundings: a package that cannot be written, a user without rights, a name or a home."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import sessionkit

STRANGER = 54_321  # a user that /etc/passwd does not know
PACKAGE = Path(sessionkit.__file__).parent
# What may be read stays so, wherever Python is installed; nothing of another's can be written.
_READS_ALL = ("--clear-groups", "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")


def copy_package(folder: Path) -> Path:
    """A copy of the package in `folder` that cannot be written, without what was compiled; what to put on the path."""
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    set_writable(folder, False)
    return folder


def set_writable(folder: Path, writable: bool) -> None:
    """Whether the owner of what is in `folder` may change it; others may read it."""
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
        mode |= stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH if path.is_dir() else 0
        path.chmod(mode | (stat.S_IWUSR if writable else 0))


def run_poorly(
    code: str | Path,
    *,
    folder: Path,
    package: Path,
    user: int | None = STRANGER,
    arguments: Sequence[str] = (),
    **settings: str,
) -> subprocess.CompletedProcess[str]:
    """Runs `code` (text, or a file) in `folder`, by a Python that knows `settings` alone, as a user without rights.

    Whoever is not root stays who they are: they have no rights anyhow.
    """
    what = [str(code)] if isinstance(code, Path) else ["-c", code]
    command = [sys.executable, *arguments, *what]
    user = user if os.getuid() == 0 else None
    if user is not None and shutil.which("setpriv"):
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", *_READS_ALL, *command]
        user = None
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), **settings}
    return subprocess.run(
        command, cwd=folder, env=environment, user=user, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
