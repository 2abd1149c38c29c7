"""A broker goes when nobody needs it any more; what is missing for one is said. Without Maven and without a broker."""

import sys
from pathlib import Path

import pytest

from examples.kafka import jars
from examples.kafka.broker import BrokerFailed, _process, _wait
from examples.kafka.jars import Missing, connector_jars

SLEEPS = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]


def test_a_process_is_gone_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), _process(SLEEPS, tmp_path / "log") as process:
        assert process.poll() is None
        raise KeyboardInterrupt
    assert process.returncode is not None


def test_a_broker_that_ends_at_once_tells_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ends = [sys.executable, "-c", "import sys; sys.exit('no such folder')"]
    with pytest.raises(BrokerFailed, match="ended with status 1: no such folder"), _process(ends, log) as process:
        _wait(process, 1, log)


def test_a_machine_without_maven_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match=r"Maven is missing \(no mvn on PATH\)"):
        connector_jars()
