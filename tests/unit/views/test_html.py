"""What a notebook shows of a run: the summary, the first windows, times as people read them."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.views.html import SHOWN_ROWS, run_html, table_html
from tests.kinds import group_in_ms

COLUMNS: dict[str, Any] = {
    "key": pa.array(["ada", "bob"]),
    "window_start_ms": np.array([1_372_655_700_000, 1_372_655_700_042]),
    "window_end_ms": np.array([1_372_655_760_000, 1_372_655_700_042]),
}


def cells(shown: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", shown)
    return [re.findall(r"<t[hd] [^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_times_are_said_in_words() -> None:
    assert cells(run_html("2 records", COLUMNS)) == [
        ["key", "window start", "window end"],
        ["ada", "2013-07-01 05:15:00", "2013-07-01 05:16:00"],
        ["bob", "2013-07-01 05:15:00.042", "2013-07-01 05:15:00.042"],
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (7, "7"),
        (1234.5, "1,234.50"),
        (float("nan"), "nan"),
        (True, "True"),
        ("a" * 100, "a" * 30 + "…" + "a" * 29),
        ("a\nb", "a\\nb"),
        ({"sum": 1.0, "count": 2}, "{&#x27;sum&#x27;: 1.0, &#x27;count&#x27;: 2}"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_values(value: Any, shown: str) -> None:
    assert cells(table_html({"value": [value]})) == [["value"], [shown]]


def test_a_column_of_the_user_is_not_taken_for_a_time() -> None:
    """`delay_ms=sk.sum("delay_ms")` is a number of milliseconds, whatever its name ends in."""
    clicks = pd.DataFrame({"user": ["ada"], "at": [60_000], "delay_ms": [5_000]})
    plan = group_in_ms("user").windowed_by(sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1))
    shown = cells(plan.aggregate(delay_ms=sk.sum("delay_ms"), grace_ms=sk.max("delay_ms")).run(clicks)._repr_html_())
    head, row = shown
    assert dict(zip(head, row, strict=True))["delay_ms"] == "5000"
    assert dict(zip(head, row, strict=True))["grace_ms"] == "5000"


def test_only_the_first_windows_are_shown() -> None:
    def columns(count: int) -> dict[str, Any]:
        return {"key": np.arange(count), "window_start_ms": np.arange(count), "window_end_ms": np.arange(count)}

    assert len(cells(run_html("", columns(SHOWN_ROWS)))) == SHOWN_ROWS + 1
    assert "has all" not in run_html("", columns(SHOWN_ROWS))
    long = run_html("", columns(28_491))
    assert len(cells(long)) == SHOWN_ROWS + 1
    assert "<p>10 of 28,491 windows; <code>.table()</code> has all. Times are in UTC.</p>" in long


def test_a_run_shows_every_kind_of_result() -> None:
    clicks = pd.DataFrame({"user": ["ada", "bob"], "at": [0, 1], "v": [1.5, None]})
    plan = group_in_ms("user").windowed_by(sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1))
    run = plan.aggregate(
        n=sk.count(), mean=sk.mean("v"), all=sk.collect("v"), own=sk.reduce(lambda a, b: a, "v"), last=sk.last("v")
    ).run(clicks)
    head, ada, bob = cells(run._repr_html_())
    assert head == ["key", "window start", "window end", "n", "mean", "all", "own", "last", "status", "partition"]
    assert ada == [
        "ada", "1970-01-01 00:00:00", "1970-01-01 00:00:00", "1", "1.50", "[1.5]", "1.50", "1.50", "open", "0",
    ]  # fmt: skip
    assert bob[3:8] == ["1", "–", "[None]", "–", "–"]
    assert run._repr_html_().startswith('<div class="mathjax_ignore tex2jax_ignore"><p><b>2 records in 2 sessions')
