"""What docs/operations.md quotes is what the code says."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import NotBuilt, StoreMismatch
from sessionkit.records.places import FROM_A_SOURCE, not_after
from tests.deployments import audit_deployed

PAGE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text()
VISITS = (
    sk.group_by_key("user", timestamp="at", timezone="UTC", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap="5m", grace="10m"))
    .aggregate(clicks=sk.count())
)


def records(*rows: tuple[int, int, str, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["partition", "offset", "user", "at"])
    return frame.assign(at=pd.to_datetime("2026-03-02 " + frame["at"]))


def finals(seen: pd.DataFrame) -> list[str]:
    """The header, and a line for each final result."""
    sent = VISITS.emit("on_window_close").run(seen).changelog()
    for name in ("start", "end"):
        sent[name] = sent[f"window_{name}"].dt.strftime("%H:%M")
    names = ["what", "partition", "offset", "user", "start", "end", "clicks"]
    return str(sent[names].to_string(index=False)).splitlines()


def bound(plan: sk.Plan) -> dict[str, str]:
    return {**plan._bound(), "retention": str(plan.windows.retention_ms(None))}


@pytest.mark.parametrize(
    "other",
    [
        VISITS.windowed_by(sk.SessionWindows(inactivity_gap="6m", grace="10m")),
        VISITS.aggregate(clicks=sk.count(), amount=sk.sum("amount")),
    ],
)
def test_another_plan_is_refused_in_these_words(other: Any) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from sessionkit.spark.worker.stream_partition import check_plan

    with pytest.raises(StoreMismatch) as refused:
        check_plan(bound(VISITS), bound(other))
    assert f"sessionkit.errors.StoreMismatch: {refused.value}\n" in PAGE


def test_the_emit_strategy_may_change() -> None:
    assert bound(VISITS) == bound(VISITS.emit("on_window_close"))


def test_a_replay_is_refused_in_these_words() -> None:
    refused = not_after(0, 1, 5, want=FROM_A_SOURCE)
    assert f"sessionkit.errors.InvalidData: {refused}\n" in PAGE


def test_an_idle_partition_sends_these_results() -> None:
    seen = records(
        (0, 0, "ana", "10:00"), (1, 0, "bo", "10:01"), (0, 1, "ana", "10:03"), (0, 2, "cy", "10:40"),
        (0, 3, "cy", "10:41"), (0, 4, "ana", "11:30"),
    )  # fmt: skip
    sent = finals(seen)
    assert "```\n{}\n```".format("\n".join(sent)) in PAGE
    later = finals(pd.concat([seen, records((1, 1, "bo", "11:31"))]))
    assert len(later) == len(sent) + 1
    assert f"```\n{later[0]}\n{later[-1]}\n```" in PAGE


def test_a_stream_refuses_the_rule_for_idle_partitions_in_these_words() -> None:
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    stream = object.__new__(type("Stream", (pyspark.DataFrame,), {"__module__": "pyspark.sql", "isStreaming": True}))
    places: dict[str, Any] = {"partition": "partition", "offset": "offset", "arrival": "arrived", "idle_after": "10m"}
    with pytest.raises(NotBuilt) as refused:
        sk.group_by_key("user", timestamp="at", **places).windowed_by(VISITS._complete_windows).count().stream(stream)
    assert f"sessionkit.errors.NotBuilt: {refused.value}\n" in PAGE


def test_a_late_record_is_dropped_after_the_restart_too() -> None:
    store = sk.open_store("memory", "visits")
    VISITS.run(records((0, 0, "ana", "10:00"), (0, 1, "bo", "11:00")), store=store)
    dropped = VISITS.run(records((0, 2, "ana", "10:02")), store=store).dropped()
    assert dropped["reason"].tolist() == ["late"]
    assert "dropped  ana 10:02        offset 2" in PAGE


def test_a_restarted_kafka_streams_counts_it() -> None:
    seen = records((0, 0, "ana", "10:00"), (0, 1, "bo", "11:00"), (0, 2, "ana", "10:02"))
    audit = audit_deployed(VISITS, seen, retention="1d", caching=False, restarts=[1])
    assert "```\n{}\n{}\n{}\n```".format(*audit.words()) in PAGE


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_cache_of_another_user_is_refused_in_these_words(tmp_path: Path) -> None:
    os.chown(tmp_path, 1000, 1000)
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", "import sessionkit.records.loops"],
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"```\n{ended.stderr.replace(str(tmp_path), '/tmp/numba-cache')}```" in PAGE  # noqa: S108
