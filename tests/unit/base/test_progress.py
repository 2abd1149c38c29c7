"""The bar of calls that take long: when it appears, what it says, and that nothing is left of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base import progress as module
from sessionkit.base.progress import calls, progress
from sessionkit.errors import InvalidArgument


class Bar:
    """Stands for tqdm's, and keeps what was shown."""

    def __init__(self) -> None:
        self.start_t, self.n, self.bar_format = 0.0, 0.0, ""
        self.said: list[tuple[str, float]] = []
        self.is_closed = False

    def set_description_str(self, words: str) -> None:
        self.said.append((words, round(self.n, 3)))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Bar]]:
    """The bars that were made, where every look is due."""
    made: list[Bar] = []
    monkeypatch.setattr(module, "AFTER_S", 0.0)
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    monkeypatch.setattr(module, "_new_bar", lambda: made.append(Bar()) or made[-1])
    yield made
    assert not calls._tasks, "every call ended"
    assert all(bar.is_closed for bar in made)


def test_a_call_within_a_call_is_a_step_of_it(bars: list[Bar]) -> None:
    with progress("sweeping", 4) as cells:
        cells(1)
        with progress("a run", 10) as records:
            records(5)
        cells(2, "writing")
    assert bars[0].said == [("sweeping", 0.25), ("sweeping, a run", 0.375), ("writing", 0.5)]
    assert "left" in bars[0].bar_format


def test_without_a_share_the_time_is_shown(bars: list[Bar]) -> None:
    with progress("looking for a grace") as reached:
        reached(0)
        with progress("a run", 4) as records:
            records(1)
    said = [("looking for a grace", 0), ("looking for a grace, a run 25%", 0.25)]
    assert (bars[0].said, bars[0].bar_format) == (said, "{desc} ({elapsed})")


def test_the_bar_goes_when_a_call_fails(bars: list[Bar]) -> None:
    with pytest.raises(ZeroDivisionError), progress("a run", 2) as reached:
        reached(1)
        raise ZeroDivisionError
    assert bars[0].is_closed


def test_a_file_gets_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "AFTER_S", 0.0)
    with progress("a run", 2) as reached:
        reached(1)
        reached(2)
    assert capsys.readouterr().err == ""


def test_quick_calls_show_nothing(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_S", 60.0)
    with progress("a run", 2) as reached:
        reached(1)
    assert not bars


def test_other_threads_show_nothing(bars: list[Bar]) -> None:
    def work() -> None:
        with progress("a run", 2) as reached:
            reached(1)

    other = Thread(target=work)
    other.start()
    other.join()
    assert not bars


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda plan, data: plan.run(data), "running the plan"),
        (lambda plan, data: plan.run(data, deployment=sk.Deployment()), "running the plan"),
        (
            lambda plan, data: plan.emit("on_window_update").run(data, deployment=sk.Deployment(restarts=[9])),
            "replaying the records",
        ),
        (lambda plan, data: sk.sweep(plan, data, grace=[0, "5s"]), "sweeping 2 cells"),
        (sk.suggest_grace, "looking for a grace"),
        (lambda plan, data: sk.audit(plan, data).words(), "auditing, running the plan"),
        (
            lambda plan, data: sk.audit(plan, data, sk.Deployment(restarts=[9])).words(),
            "auditing, replaying the records",
        ),
    ],
)
def test_long_calls_say_how_far_they_are(bars: list[Bar], call: Any, words: str) -> None:
    """An audit of 170,000 records, of which it searches the retentions, said nothing for minutes."""
    count = 300
    data = pd.DataFrame({"user": ["ada"] * count, "at": pd.to_datetime(np.arange(count) * 1_000, unit="ms", utc=True)})
    plan = (
        sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="5s")).count()
    )
    call(plan.emit("on_window_close"), data)
    assert any(said.startswith(words) for bar in bars for said, _ in bar.said)
    sk.options.progress = False
    try:
        bars.clear()
        call(plan, data)
        assert not bars, "it is switched off"
    finally:
        sk.options.progress = True


def test_progress_is_on_or_off() -> None:
    wrong: Any = "never"
    with pytest.raises(InvalidArgument, match=r"sk\.options\.progress.*'never'"):
        sk.options.progress = wrong
    assert repr(sk.options) == "Options: theme='light', width=None, progress=True"


def test_the_variable_of_tqdm_switches_it_off() -> None:
    """A notebook that took longer on a slow machine had a bar among its outputs."""
    code = "import sessionkit as sk; print(sk.options)"
    env = {**os.environ, "TQDM_DISABLE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Options: theme='light', width=None, progress=False"


def test_two_calls_of_the_same_words_are_two(bars: list[Bar]) -> None:
    """The end of the inner one took the outer one away, whose own end failed then."""
    with progress("waiting for Spark") as outer:
        with progress("waiting for Spark"):
            pass
        outer(0, "waiting for Spark, 1 of 2 tasks done")
    assert bars[0].said == [("waiting for Spark, 1 of 2 tasks done", 0)]
