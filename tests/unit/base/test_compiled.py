"""Loops where nothing can be written: a package without write rights, no home; what they cost is said once."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability._surroundings import STRANGER, copy_package, run_poorly, set_writable

CODE = """
import numpy as np
import sessionkit.records.loops as columns

zero = np.zeros(3, np.int32)
print(columns.implicit_offsets(zero, np.zeros(1, np.int64)).tolist())
print(columns.first_not_rising(zero, np.array([1, 3, 2]), np.full(1, -1)))
"""
pytestmark = pytest.mark.slow
ANSWERS = "[0, 1, 2]\n(2, 3)\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package as in an image: nobody may write into it."""
    folder = copy_package(tmp_path_factory.mktemp("installed"))
    folder.parent.chmod(0o755)
    yield folder
    set_writable(folder, True)


def give(folder: Path) -> None:
    """Makes the user that `run_poorly` runs as the owner of a folder."""
    if os.getuid() == 0:
        os.chown(folder, STRANGER, STRANGER)


def test_where_nothing_can_be_written_it_is_compiled_and_said_once(package: Path) -> None:
    ended = run_poorly(CODE, folder=package, package=package)
    assert (ended.returncode, ended.stdout) == (0, ANSWERS), ended.stderr
    (said,) = ended.stderr.splitlines()
    assert said.startswith("sessionkit cannot keep its compiled loops (Permission denied)")
    assert "several seconds for each kind of window" in said and "NUMBA_CACHE_DIR" in said


def test_no_folder_named_like_a_home_that_is_not_known(package: Path, tmp_path: Path) -> None:
    """Without a home, "~" is a name like any other: a cache must not be made there, in the current folder."""
    tmp_path.chmod(0o777)
    ended = run_poorly(CODE, folder=tmp_path, package=package)
    assert ended.stdout == ANSWERS, ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_named_is_used(package: Path, tmp_path: Path) -> None:
    give(tmp_path)
    ended = run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    assert (ended.stdout, ended.stderr) == (ANSWERS, "")
    assert [file.suffix for file in tmp_path.rglob("*.nbi")] == [".nbi", ".nbi"]


def test_a_copy_in_another_folder_finds_what_the_first_one_kept(package: Path, tmp_path: Path) -> None:
    """Spark unpacks an archive into a new folder for each executor; what they keep is one cache all the same."""
    cache, executors = tmp_path / "cache", [tmp_path / "0", tmp_path / "1"]
    cache.mkdir()
    give(cache)
    tmp_path.chmod(0o755)
    for executor in executors:
        shutil.copytree(package, executor)  # with the times of the files, as an archive has them
    for executor in executors:
        ended = run_poorly(CODE, folder=executor, package=executor, NUMBA_CACHE_DIR=str(cache))
        assert (ended.stdout, ended.stderr) == (ANSWERS, "")
        assert len(list(cache.rglob("*.nbi"))) == 2
    changed = executors[1] / "sessionkit" / "records" / "loops.py"
    changed.chmod(0o644)
    changed.write_text(changed.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    run_poorly(CODE, folder=executors[1], package=executors[1], NUMBA_CACHE_DIR=str(cache))
    assert len(list(cache.rglob("*.nbi"))) == 4  # beside each other: neither is in the way of the other
    for executor in executors:
        set_writable(executor, True)


def test_a_disk_that_is_full_costs_the_cache_alone(package: Path, tmp_path: Path) -> None:
    give(tmp_path)
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))"
    ended = run_poorly(full + CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    assert ended.stdout == ANSWERS, ended.stderr
    assert ended.stderr.startswith("sessionkit cannot keep its compiled loops (File too large)")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


LOOP = """
from sessionkit.base.compiled import announce_compiling, compiled_loop

@compiled_loop
def count_up(numbers):
    numbers[0] += {step}
"""
CALL = """
import numpy as np
from loops import announce_compiling, count_up

for _ in range(2):
    announce_compiling(count_up, "such windows")
numbers = np.zeros(1, np.int64)
count_up(numbers)
announce_compiling(count_up, "other windows")
print(numbers[0])
"""


def called(folder: Path, step: int) -> tuple[str, str]:
    """What a process prints that calls a loop: on stdout, and on stderr."""
    (folder / "loops.py").write_text(LOOP.format(step=step))
    os.utime(folder / "loops.py", (step, step))  # numba goes by the time and the size
    done = subprocess.run([sys.executable, "-B", "-c", CALL], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_that_loops_are_compiled_is_said_once_if_it_is_true(tmp_path: Path) -> None:
    said = "sessionkit compiles its loops for such windows, once on this machine: this takes several seconds …\n"
    assert called(tmp_path, 1) == ("1\n", said)
    assert called(tmp_path, 1) == ("1\n", "")
    assert called(tmp_path, 2) == ("2\n", said)  # as after an upgrade: what is kept is that of another version
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(b"")
    assert called(tmp_path, 2) == ("2\n", said)


EACH_KIND = """
import numpy as np
import pyarrow as pa
import sessionkit as sk
from sessionkit.base import compiled

compiled._is_kept = lambda function: False  # as on a machine where nothing was compiled
table = pa.table({"key": np.arange(50) % 3, "at": np.arange(50)})
for windows in (
    sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1),
    sk.TimeWindows(size_ms=3, grace_ms=1),
    sk.SlidingWindows(time_difference_ms=3, grace_ms=1),
    sk.TimeWindows(size_ms=12, advance_ms=1, grace_ms=1),  # another loop, where there is no trace
):
    sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(windows).count().run(table, trace=False)
"""


def test_each_kind_of_window_says_that_its_loops_are_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", EACH_KIND], capture_output=True, text=True, check=True)
    kinds = ("session windows", "tumbling and hopping windows", "sliding windows", "tumbling and hopping windows")
    assert [line.partition(" for ")[2].partition(",")[0] for line in done.stderr.splitlines()] == [*kinds]


@pytest.mark.slow
def test_what_was_compiled_before_is_taken_from_a_folder_that_cannot_be_written(package: Path, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.mkdir()
    copy_package(image)
    set_writable(image, True)
    run_poorly(CODE, folder=image, package=image, user=None)  # as the one who builds the image
    assert len(list(image.rglob("*.nbi"))) == 2
    set_writable(image, False)
    tmp_path.chmod(0o755)
    ended = run_poorly(CODE, folder=image, package=image)
    set_writable(image, True)
    assert (ended.stdout, ended.stderr) == (ANSWERS, "")


@pytest.mark.slow
def test_a_cache_that_cannot_be_read_is_compiled_anew(package: Path, tmp_path: Path) -> None:
    give(tmp_path)
    run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    for file in tmp_path.rglob("*.nbi"):  # what a power cut leaves
        file.write_bytes(b"")
    ended = run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    assert (ended.stdout, ended.stderr.count("\n")) == (ANSWERS, 0), ended.stderr


class Attack:
    """Makes a folder where it is unpickled."""

    def __init__(self, sign: Path) -> None:
        self._sign = sign

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._sign),)


def test_a_stranger_s_cache_is_not_run(package: Path, tmp_path: Path) -> None:
    """The folder that NUMBA_CACHE_DIR names was made first by somebody else, who lets everybody write to it."""
    if os.getuid() != 0:
        pytest.skip("only root can make files of another user")
    shared, signs = tmp_path / "shared", tmp_path / "signs"
    for folder, mode in {tmp_path: 0o755, shared: 0o755, signs: 0o777}.items():
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    os.chown(shared, STRANGER + 1, STRANGER + 1)
    run_poorly(CODE, folder=package, package=package, user=STRANGER + 1, NUMBA_CACHE_DIR=str(shared))
    planted = list(shared.rglob("*.nbi"))
    assert len(planted) == 2
    for index in planted:
        index.write_bytes(pickle.dumps(Attack(signs / "it was run")))
        index.parent.chmod(0o777)
    shared.chmod(0o777)
    ended = run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(shared))
    assert list(signs.iterdir()) == []
    assert ended.stdout == ANSWERS, ended.stderr
    refused, not_kept = ended.stderr.splitlines()
    assert refused.startswith(f"sessionkit does not use {shared} ") and f"belongs to user {STRANGER + 1}" in refused
    assert not_kept.startswith("sessionkit cannot keep its compiled loops (Permission denied)")


def test_a_file_of_a_stranger_in_a_folder_of_ours_is_not_run_but_replaced(package: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make files of another user")
    give(tmp_path)
    run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    kept = [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.nbc")]
    assert len(kept) == 4
    for file in kept:
        file.write_bytes(pickle.dumps(Attack(tmp_path / "it was run")))
        os.chown(file, STRANGER + 1, STRANGER + 1)
    ended = run_poorly(CODE, folder=package, package=package, NUMBA_CACHE_DIR=str(tmp_path))
    assert (ended.stdout, ended.stderr) == (ANSWERS, "")
    assert not (tmp_path / "it was run").exists()
    assert {file.stat().st_uid for file in kept} == {STRANGER}


def test_what_is_kept_under_any_umask_is_loaded_again(package: Path, tmp_path: Path) -> None:
    """A user without a name has no group of their own: what this group could write to would be refused later."""
    give(tmp_path)
    shared = "import os; os.umask(0)\n" + CODE
    folder = tmp_path / "a" / "b"
    run_poorly(shared, folder=package, package=package, NUMBA_CACHE_DIR=str(folder))
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert len(made) == 7 and {path.stat().st_mode & 0o22 for path in made} == {0}
    written = {path: path.stat().st_mtime_ns for path in made}
    ended = run_poorly(shared, folder=package, package=package, NUMBA_CACHE_DIR=str(folder))
    assert (ended.stdout, ended.stderr) == (ANSWERS, "")
    assert {path: path.stat().st_mtime_ns for path in made if path.is_file()} == {
        path: when for path, when in written.items() if path.is_file()
    }
