"""Processes in poor surroundings: a package that cannot be written, a user without rights, a name or a home."""

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
_HIDE = (
    'mount --bind "$0" /mnt && for each in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro none $each || exit 9; done; '
    'cd "$1" && shift && exec "$@"'
)
_HIDING = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _HIDE)


def copy_package(folder: Path, *, compiled: bool = False) -> Path:
    """A copy of the package in `folder` that cannot be written, with what was compiled or without; for the path."""
    left_out = shutil.ignore_patterns("*.pyc", *([] if compiled else ["__pycache__"]))
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=left_out)
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
    hidden: Path | None = None,
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
    **settings: str,
) -> subprocess.CompletedProcess[str]:
    """Runs `code` (text, or a file) in `folder`, by a Python that knows `settings` alone, as a user without rights.

    Whoever is not root stays who they are: they have no rights anyhow. With `hidden`, a folder that has all that is
    needed, /tmp, /var/tmp and /dev/shm are empty and cannot be written, and it lies in /mnt (see `can_hide`).
    """
    what = [str(code)] if isinstance(code, Path) else ["-c", code]
    command = [sys.executable, *options, *what, *arguments]
    user = user if os.getuid() == 0 else None
    if user is not None and shutil.which("setpriv"):
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", *_READS_ALL, *command]
        user = None
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), **settings}
    if hidden is not None:
        command = [*_HIDING, str(hidden), str(folder), *(part.replace(str(hidden), "/mnt") for part in command)]
        command[len(_HIDING) + 1] = str(folder).replace(str(hidden), "/mnt")
        environment = {name: value.replace(str(hidden), "/mnt") for name, value in environment.items()}
    return subprocess.run(
        command, cwd=folder, env=environment, user=user, capture_output=True, encoding="utf-8", timeout=600, check=False
    )


def can_hide() -> bool:
    """Whether this machine lets us have a private view of its folders."""
    if os.getuid() != 0 or not shutil.which("unshare") or sys.executable.startswith(("/tmp/", "/mnt/")):  # noqa: S108
        return False
    tried = subprocess.run([*_HIDING, "/", "/", "true"], capture_output=True, check=False)
    return tried.returncode == 0
