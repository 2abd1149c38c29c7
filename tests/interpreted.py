"""With SESSIONKIT_INTERPRETED=1 the compiled loops run as Python, so that coverage and mutants can look into them."""

import importlib
import os
import pkgutil
import sys
from typing import Any

import numpy as np

INTERPRETED = os.environ.get("SESSIONKIT_INTERPRETED") == "1"
ALL = os.environ.get("SESSIONKIT_CASES") == "all"
# of the random cases: one of so many, and at least so many
ONE_OF, LEAST = (20, 3) if INTERPRETED else (1, 1) if ALL else (8, 10)
FOLDERS = ("windows", "engine", "trace", "aggregations", "suppression", "stores", "session_rules", "deployed")


class Row(np.record):
    """A row of a structured array: its fields are attributes, as in compiled code, and numbers that do not wrap."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return value.item() if isinstance(value, np.generic) else value


def fewer(cases: int) -> int:
    """So many random cases in `make random`, a part of them in `make test-all`, a few where loops run as Python."""
    return min(cases, max(LEAST, cases // ONE_OF))


def let_loops_run_as_python() -> None:
    """In this process; programs that a test starts compile their loops. Called before anything imports sessionkit."""
    import numba

    numba.config.DISABLE_JIT = True
    np.seterr(over="ignore")  # compiled integers wrap without a word
    import sessionkit

    for info in pkgutil.walk_packages(sessionkit.__path__, "sessionkit."):
        if info.name.split(".")[1] in FOLDERS:
            importlib.import_module(info.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("sessionkit."):
            for attribute, value in vars(module).items():
                if isinstance(value, np.dtype) and value.names:
                    setattr(module, attribute, np.dtype((Row, value)))
