"""What is run as code comes from folders that nobody else can write to."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionkit.base.own_files import NotOurs, check_ours, make_folder

STRANGER = 54_321
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file in a folder in a folder: all of them ours, and only ours to write."""
    file = tmp_path / "above" / "cache" / "loop.nbi"
    for folder in (file.parent.parent, file.parent):
        folder.mkdir()
        folder.chmod(0o755)
    file.touch()
    file.chmod(0o644)
    return file


def test_a_file_of_ours_passes(kept: Path) -> None:
    assert check_ours(kept) == kept.resolve()
    assert check_ours(kept.parent) == kept.parent.resolve()


WRITABLE: dict[str, tuple[Callable[[Path], Path], int]] = {
    "a file for all": (lambda file: file, 0o666),
    "its folder for all": (lambda file: file.parent, 0o777),
    "its folder for all, though sticky": (lambda file: file.parent, 0o1777),
    "the folder above for all": (lambda file: file.parent.parent, 0o777),
}


@pytest.mark.parametrize("which", WRITABLE)
def test_what_others_can_write_is_refused(kept: Path, which: str) -> None:
    place, mode = WRITABLE[which]
    place(kept).chmod(mode)
    with pytest.raises(NotOurs, match=f"others than its owner can write to {place(kept)}$"):
        check_ours(kept)


def test_above_a_sticky_folder_does_for_all(kept: Path) -> None:
    kept.parent.parent.chmod(0o1777)  # as /tmp: each can remove and rename only what is their own
    check_ours(kept)


@needs_root
@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_is_another_user_s_is_refused_at_any_height(kept: Path, up: int) -> None:
    place = (kept, *kept.parents)[up]
    os.chown(place, STRANGER, 0)
    with pytest.raises(NotOurs, match=f"{place} belongs to user {STRANGER}$"):
        check_ours(kept)


@needs_root
def test_a_link_is_judged_by_where_it_leads(kept: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    shutil.copytree(kept.parent, others)
    os.chown(others, STRANGER, STRANGER)
    link = tmp_path / "link"
    link.symlink_to(kept.parent)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert check_ours(link / kept.name) == kept.resolve()
    link.unlink()
    link.symlink_to(others)
    with pytest.raises(NotOurs):
        check_ours(link / kept.name)


@needs_root
def test_a_group_may_write_if_it_has_its_user_alone(kept: Path) -> None:
    """With a umask of 002, as many systems set it, all that a user makes can be written by a group of their own."""
    kept.parent.chmod(0o775)
    kept.chmod(0o664)
    check_ours(kept)
    os.chown(kept, 0, 65_534)  # a group of several accounts, without a name on some systems
    with pytest.raises(NotOurs):
        check_ours(kept)


LISTS_OF_RIGHTS = "system.posix_acl_access"


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="only Linux has them as attributes of a file")
def test_a_right_in_a_list_of_rights_is_one_of_others(kept: Path) -> None:
    """Its mode shows a right of the group."""
    user, named, group, mask, others = 1, 2, 4, 16, 32
    rights = [(user, 6, -1), (named, 6, STRANGER), (group, 4, -1), (mask, 6, -1), (others, 4, -1)]
    os.setxattr(kept, LISTS_OF_RIGHTS, struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *each) for each in rights))
    assert kept.stat().st_mode & 0o777 == 0o664
    with pytest.raises(NotOurs, match="others than its owner can write"):
        check_ours(kept)


def test_a_folder_that_is_made_lets_nobody_else_write_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o755] * 2
    check_ours(tmp_path / "a" / "b")
