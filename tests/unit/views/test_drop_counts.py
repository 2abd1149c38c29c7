"""Records and windows are counted apart: a record that is dropped is in no window, and one can miss many windows."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.cli.commands import main
from sessionkit.widgets.tuner import Tuner
from tests.deployments import run_by

OVERLAPPING = {
    "sliding": sk.SlidingWindows(time_difference="1m", grace="10s"),
    "hopping": sk.TimeWindows(size="5m", advance="1m", grace="10s"),
}
ALONE = {
    "tumbling": sk.TimeWindows(size="1m", grace="10s"),
    "session": sk.SessionWindows(inactivity_gap="1s", grace="10s"),
}


def records() -> pd.DataFrame:
    rng, count = np.random.default_rng(1), 2_000
    at = np.sort(rng.integers(600_000, 1_200_000, count)) - rng.integers(0, 400_000, count) * (rng.random(count) < 0.2)
    frame = pd.DataFrame({"user": rng.choice(list("abc"), count), "at": at, "x": 1})
    return frame


def run_of(windows: Any, data: Any = None, **options: Any) -> sk.Run:
    steps = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows)
    return run_by(steps.aggregate(total=sk.sum("x")), records() if data is None else data, **options)


@pytest.mark.parametrize("kind", [*OVERLAPPING, *ALONE])
def test_all_views_tell_one_number_of_dropped_records_and_one_of_missed_windows(kind: str) -> None:
    run = run_of((OVERLAPPING | ALONE)[kind])
    in_none = int((~run.trace.accepted).sum())
    missed = run.dropped()
    late_records = len(missed[["partition", "offset"]].drop_duplicates())
    counts, calendar = run.metrics(), run.drop_calendar()
    assert counts["records-dropped"] == in_none > 0
    assert counts["dropped-records-total"] == counts["dropped-late"] == len(missed)
    assert (calendar.dropped_count, calendar.missed_count) == (in_none, late_records)
    assert calendar.table()["dropped"].sum() == in_none
    assert sk.sweep(run.plan, records(), grace=["10s"]).table()["dropped"].tolist() == [in_none]
    tiles = {count.name: count.value for count in Tuner(run.plan, records()).counts()}
    assert tiles["dropped"] == in_none
    if kind in ALONE:
        assert late_records == in_none == len(missed)
        assert f" · {in_none:,} dropped · " in run.summary()
        assert calendar.words()[0].endswith("were dropped.")
        return
    assert len(missed) > late_records > in_none
    partly = late_records - in_none
    assert f" · {in_none:,} records dropped, {len(missed):,} times too late for a window · " in run.summary()
    assert tiles["partly late"] == partly
    assert calendar.table()["missed"].sum() == late_records
    assert calendar.words()[:2] == [
        f"{in_none:,} of 2,000 records ({in_none / 20:.4g}%) were dropped.",
        f"{partly:,} others missed some windows, and count in others.",
    ]
    figure = json.dumps(calendar.figure().to_plotly_json(), default=str)
    assert "When records missed a window" in figure and "When records were dropped" not in figure


def test_a_report_tells_dropped_records_and_drops_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = tmp_path / "clicks.csv", run_of(OVERLAPPING["hopping"])
    records().to_csv(file, index=False)
    options = ["--by", "user", "--at", "at", "--unit", "ms", "--size", "5m", "--advance", "1m", "--grace", "10s"]
    assert main(["report", str(file), *options, "--out", str(tmp_path / "out")]) == 0
    dropped, drops = int((~run.trace.accepted).sum()), len(run.dropped())
    assert f", {dropped:,} dropped ({dropped / 20:.4g}%), {drops:,} drops: late records" in capsys.readouterr().out
    tiles = (tmp_path / "out" / "report.html").read_text()
    for number, name in ((dropped, "dropped"), (drops, "drops")):
        assert re.search(rf"{number:,}</\w+><\w+[^>]*>{name}<", tiles), name


def test_without_a_dropped_record_the_missed_windows_are_told() -> None:
    run = run_of(OVERLAPPING["hopping"], pd.DataFrame({"user": "a", "at": [100_000, 411_000, 250_000], "x": 1}))
    assert " · 0 records dropped, 2 times too late for a window · " in run.summary()
    assert run.drop_calendar().words()[:2] == [
        "None of the 3 records was dropped.",
        "1 of them missed some windows, and counts in others.",
    ]


@pytest.mark.thorough
def test_a_run_without_a_trace_and_one_by_the_processor_count_the_same() -> None:
    whole = run_of(OVERLAPPING["sliding"])
    assert run_of(OVERLAPPING["sliding"], trace=False).summary() == whole.summary()
    assert (
        run_of(OVERLAPPING["sliding"], rules="kafka").metrics()["records-dropped"]
        == (whole.metrics()["records-dropped"])
    )


def test_counters_that_an_older_state_lacks_are_not_made_up() -> None:
    pytest.importorskip("pyspark")
    from sessionkit.spark.worker.stream_partition import counted
    from sessionkit.views.words import drops_in_words, records_dropped

    old = {"dropped-records-total": 5, "dropped-late": 5, "dropped-expired": 0, "windows": 1}
    new = {**old, "records-dropped": 2}
    assert counted({}, new) == Counter(new)
    assert counted(new, new)["records-dropped"] == 4
    assert "records-dropped" not in counted(old, new)
    assert records_dropped(Counter(old)) == 5
    assert records_dropped(Counter(new)) == 2
    assert drops_in_words(old) == "5 dropped"
    assert drops_in_words(new) == "2 records dropped, 5 times too late for a window"
