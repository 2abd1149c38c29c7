"""Whether files that are run as code are ours: nobody but this user and root may be able to put others in their place.

On Windows, where modes say nothing about rights, every file passes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


class NotOurs(PermissionError):
    """A folder or file that is another user's, that others can write to, or that is of another kind."""


def check_ours(path: str | Path) -> Path:
    """Where `path` leads, links followed, once nobody but its owner, who is this user or root, can change it.

    Folders above it may be sticky, as /tmp is: there nobody can put another folder in its place. Those that hold the
    package do not matter: whoever can change them can change its code. `NotOurs` where somebody else can.
    """
    found = Path(os.path.realpath(path, strict=True))
    folder = found if found.is_dir() else found.parent
    for each in (found, folder, *folder.parents) if hasattr(os, "geteuid") else ():
        is_above = each not in (found, folder)
        if is_above and (each.is_relative_to(_PACKAGE) or _PACKAGE.is_relative_to(each)):
            break
        state = each.stat()
        if state.st_uid not in (0, os.geteuid()):
            raise NotOurs(f"{each} belongs to user {state.st_uid}")
        for_group, for_all = state.st_mode & stat.S_IWGRP, state.st_mode & stat.S_IWOTH
        if is_above and state.st_mode & stat.S_ISVTX:
            continue
        if for_all or (for_group and not _is_of_one_user(each, state.st_uid, state.st_gid)):
            raise NotOurs(f"others than its owner can write to {each}")
    return found


def make_folder(path: str | Path) -> None:
    """Makes what is missing of a folder so that only its owner can write, whatever the umask; others may read it."""
    for each in reversed([each for each in (Path(path), *Path(path).parents) if not each.exists()]):
        with contextlib.suppress(FileExistsError):
            each.mkdir(0o755)


@cache
def _is_of_one_user(path: Path, user: int, group: int) -> bool:
    """True if a group has its user alone: where the umask is 002, each user has such a group for what they make."""
    import grp
    import pwd

    with contextlib.suppress(OSError, AttributeError):  # a file system, or a system, that has no such lists
        if "system.posix_acl_access" in os.listxattr(path):  # rights of others, which look like those of the group
            return False
    try:
        account, members = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    if {account.pw_name, *members.gr_mem} != {account.pw_name}:
        return False
    # a group of another name is compared with all accounts, as far as the system lists them
    own = members.gr_name == account.pw_name
    return own or [each.pw_uid for each in pwd.getpwall() if each.pw_gid == group] == [user]
