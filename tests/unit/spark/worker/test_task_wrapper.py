"""What a task has loaded is not looked through for garbage after each of the next ones."""

import gc
import sys
from types import ModuleType

import pytest

from sessionkit.spark.worker.task_wrapper import settle


def test_what_a_later_task_loads_stays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    settle()
    monkeypatch.setitem(sys.modules, "loaded by the second task", ModuleType("loaded"))
    loaded, before = [[] for _ in range(1_000)], gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() >= before + len(loaded)
    more, before = [[] for _ in range(1_000)], gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() <= before and more, "a task that loads nothing leaves its objects as they are"
