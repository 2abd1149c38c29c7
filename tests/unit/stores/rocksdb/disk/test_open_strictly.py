"""RocksDB's settings, and the trial of a folder that may hang."""

import runpy
import signal
from pathlib import Path
from typing import Any

import pytest

from sessionkit.stores.rocksdb.disk import open_strictly as strict


def test_rocksdb_is_opened_with_the_settings_that_make_it_honest(tmp_path: Path) -> None:
    """As it writes them down itself."""
    for create in (True, False):
        strict.open_strictly(str(tmp_path / "rows"), create=create).close()
    newest = max((tmp_path / "rows").glob("OPTIONS-*"))
    lines = (line.strip().partition("=") for line in newest.read_text().splitlines())
    found = {name: value for name, _, value in lines}
    asked = {
        "create_if_missing": "false", "error_if_exists": "false", "paranoid_checks": "true",
        "wal_recovery_mode": "kTolerateCorruptedTailRecords", "write_buffer_size": str(16 * 1024 * 1024),
        "max_total_wal_size": str(32 * 1024 * 1024), "keep_log_file_num": "2",
    }  # fmt: skip
    assert {name: found[name] for name in asked} == asked


def test_what_is_made_was_not_there_and_what_is_opened_was(tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    with pytest.raises(Exception, match="does not exist"):
        strict.open_strictly(path, create=False)
    strict.open_strictly(path, create=True).close()
    with pytest.raises(Exception, match="exists"):
        strict.open_strictly(path, create=True)


@pytest.mark.parametrize(
    ("error", "said"),
    [(None, ""), (ValueError("x" * 900), "x" * 500), (ValueError(), "ValueError"), (Exception("broken"), "broken")],
)
def test_a_trial_ends_by_an_alarm_that_is_then_turned_off(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, said: str
) -> None:
    alarms: list[int] = []

    class Opened:
        def close(self) -> None:
            alarms.append(-1)

    def opening(path: str, *, create: bool) -> Any:
        assert (path, create, alarms) == ("rows", False, [7])
        if error is not None:
            raise error
        return Opened()

    monkeypatch.setattr(signal, "alarm", alarms.append)
    monkeypatch.setattr(strict, "open_strictly", opening)
    assert strict.try_open("rows", 7) == said
    assert alarms == ([7, 0] if error is not None else [7, -1, 0])


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(("is_there", "code", "said"), [(True, 0, ""), (False, 3, "does not exist")])
def test_as_a_program_it_ends_with_what_it_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_there: bool,
    code: int,
    said: str,
) -> None:
    if is_there:
        strict.open_strictly(str(tmp_path / "rows"), create=True).close()
    monkeypatch.setattr("sys.argv", ["open_strictly", str(tmp_path / "rows"), "60"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(strict.__name__, run_name="__main__")
    assert ended.value.code == code
    printed = capsys.readouterr().out
    assert said in printed and bool(said) == bool(printed)
