"""Which Python Spark's workers run: it has to be one that has sessionkit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING

from sessionkit.base.calls import level_of_user
from sessionkit.errors import SparkUnavailable, problem, shorten

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

VARIABLE, SETTING = "PYSPARK_PYTHON", "spark.pyspark.python"
SPARKS_OWN = "python3"  # the first on PATH, where nobody chose another
WANT = f'os.environ["{VARIABLE}"] = sys.executable before Spark starts (on a cluster: install it there)'
_NEEDED = ("sessionkit", "numba", "pyarrow", "pandas")
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_QUESTION = f"""
import sys
from importlib.util import find_spec
print("%d.%d" % sys.version_info[:2], *(name for name in {_NEEDED} if find_spec(name) is None))
"""
_ANSWER_TIMEOUT_S = 30


def settle_worker_python(spark: SparkSession) -> None:
    """Makes the workers of a local Spark run this process's Python, unless the user chose one; that one is checked.

    No job is started. What a cluster or a remote Spark Connect server runs cannot be seen from here.
    """
    context: SparkContext | None = getattr(spark, "_sc", None)
    if context is not None:
        settle_python_of(context)
    elif "SPARK_LOCAL_REMOTE" in os.environ:  # a server of Spark Connect that this process started
        _check(os.environ.get(VARIABLE) or os.environ.get("PYSPARK_DRIVER_PYTHON") or SPARKS_OWN)


def settle_python_of(context: SparkContext) -> None:
    """Settles which Python the workers of a SparkContext run, for all that Spark hands to them from now on."""
    is_local = str(context.master).startswith("local")
    is_other = context.pythonExec != SPARKS_OWN
    is_chosen = is_other or os.environ.get(VARIABLE) == SPARKS_OWN or context.getConf().contains(SETTING)
    if not is_chosen:
        if is_local and sys.executable:
            context.pythonExec = sys.executable
        else:
            _warn_of_cluster()
    elif is_local and not context._python_includes:  # which may bring the packages that are needed
        _check(context.pythonExec)


def _warn_of_cluster() -> None:
    text = (
        f'Spark\'s workers run the "{SPARKS_OWN}" of their machines: it must be Python {_VERSION} with sessionkit.\n'
        f'If another one has it there, set os.environ["{VARIABLE}"] to its path before Spark starts; '
        f'else set it to "{SPARKS_OWN}", and this warning ends.'
    )
    warnings.warn(text, stacklevel=level_of_user())


@cache  # of those that can; one that cannot is asked again
def _check(python: str) -> None:
    wrong = _wrong_with(python)
    if wrong:
        raise SparkUnavailable(problem("Spark's workers would run a Python that cannot run sessionkit", wrong, WANT))


def _wrong_with(python: str) -> str:
    """The reason why this Python cannot run sessionkit, in words; "" if it can."""
    path = shutil.which(python)
    if path is None:
        return f"{shorten(repr(python))}, which is no program on this machine"
    if os.path.abspath(path) == os.path.abspath(sys.executable):  # as links: an environment is one
        return ""
    try:
        command = [path, "-c", _QUESTION]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=True).stdout
        version, *missing = answer.split()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"{path}, which does not start ({shorten(error, 120)})"
    if version != _VERSION:
        return f"{path}, which is Python {version}, not {_VERSION}"
    return f"{path}, which lacks {', '.join(missing)}" if missing else ""
