"""The widget's side in the kernel: what it answers, explains, refuses, and shows where no script runs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.widgets.tables.browser import VIEWS, Question
from tests.deployments import run_by
from tests.kinds import EACH_KIND, plan_of
from tests.property.streams import AGGREGATIONS, draw

pytest.importorskip("anywidget", reason="anywidget is not installed")
of_each_kind = pytest.mark.parametrize("windows", EACH_KIND.values(), ids=repr)


def run(windows: Any, seed: int = 4, named: Any = None, strategy: str = "on_window_update", **more: Any) -> sk.Run:
    source = {"timestamp": "time", "partition": "partition", "offset": "offset", "on_bad_time": "drop"}
    return run_by(plan_of(windows, strategy, named, **source), draw(seed, most=60).table, **more)


@of_each_kind
@pytest.mark.parametrize("what", VIEWS)
@pytest.mark.parametrize("seed", [4, 7, 11])
def test_it_holds_the_rows_of_the_frame_and_explains_each(windows: Any, what: str, seed: int) -> None:
    done = run(windows, seed)
    frame = {"table": done.table, "changelog": done.changelog, "dropped": done.dropped}[what]()
    browser = sk.browse(done, what)
    assert browser.table.row_count == len(frame)
    for row in range(len(frame)):
        browser.explain(row)
        assert browser.words
    cells = browser.table.shown(np.arange(len(frame)))
    titles = [column.title for column in browser.table.columns]
    if "offset" in titles:
        shown = [int(row[titles.index("offset")].replace(",", "")) for row in cells]
        assert shown == pd.DataFrame(frame.to_pandas())["offset"].tolist()


def test_what_is_said_of_a_row_is_what_the_run_says() -> None:
    done = run(EACH_KIND["session"], 11)
    table = done.table().to_pandas()
    browser = sk.browse(done)
    browser.explain(2)
    row = table.iloc[2]
    told = done.explain(key=row["key"], window_start=int(row["window_start_ms"]), partition=int(row["partition"]))
    assert browser.words == str(told).splitlines()
    dropped = done.dropped().to_pandas()
    browser = sk.browse(done, "dropped")
    browser._heard(None, {"kind": "explain", "row": 0}, None)
    row = dropped.iloc[0]
    assert browser.words == str(done.explain(offset=int(row["offset"]), partition=int(row["partition"]))).splitlines()


@of_each_kind
@pytest.mark.parametrize("what", VIEWS)
def test_all_aggregations_and_no_records(windows: Any, what: str) -> None:
    named = {name: each for name, each in AGGREGATIONS.items() if windows.holds == "sessions" or name != "own"}
    done = run(windows, 4, named)
    browser = sk.browse(done, what)
    for number, column in enumerate(browser.table.columns):
        if column.can_sort:
            browser.state = {"column": number, "asked": number}
            assert browser.shown["refused"] == ""
            assert browser.shown["sorted"] == [number, False]
    empty = plan_of(windows, timestamp="time").run(draw(4).table.slice(0, 0))
    assert sk.browse(empty, what).shown["said"].startswith("This run has no ")
    assert sk.browse(empty, what)._repr_mimebundle_()


def test_a_page_and_what_is_said_of_it() -> None:
    frame = pd.DataFrame({"key": [f"k{i:03}" for i in range(120)], "time": np.arange(120) * 100})
    browser = sk.browse(plan_of(EACH_KIND["session"], timestamp="time").run(frame))
    assert browser.shown["said"] == "rows 1–50 of 120"
    browser.state = {"first": 100, "asked": 1}
    assert (browser.shown["said"], browser.shown["first"], browser.shown["asked"]) == ("rows 101–120 of 120", 100, 1)
    browser.state = {"letters": "K11", "asked": 2}
    assert browser.shown["said"] == "rows 1–10 of 10 that fit, of 120 sessions"
    browser.state = {"letters": "k110", "asked": 3}
    assert browser.shown["said"] == "row 1 of 1 that fit, of 120 sessions"
    browser.state = {"letters": "zzz", "asked": 4}
    assert browser.shown["said"] == "None of 120 sessions fits."
    titles = [column["title"] for column in browser.shown["columns"]]
    browser.state = {"spans": {str(titles.index("count")): ["1", "soon"]}, "asked": 5}
    assert "must be a number" in browser.shown["refused"]
    assert browser.shown["said"] == "None of 120 sessions fits."  # what was shown stays
    browser.state = {"spans": {str(titles.index("count")): ["1", ""]}, "asked": 6}
    assert browser.shown["spans"] == [{"column": titles.index("count"), "words": "count from 1"}]


def test_what_a_browser_should_never_send_does_nothing() -> None:
    browser = sk.browse(run(EACH_KIND["session"]))
    for state in ({"first": "x", "column": None, "spans": [1], "letters": None}, {"column": True}, {"spans": {"a": 1}}):
        browser.state = state
        assert browser.shown["refused"] == ""
    for message in (None, {"kind": "explain", "row": 10**9}, {"kind": "explain", "row": "0"}, {"kind": "x"}):
        browser._heard(None, message, None)
    assert browser.words == []


def test_a_run_without_a_trace_has_its_windows_alone() -> None:
    done = run(EACH_KIND["session"], trace=False)
    browser = sk.browse(done)
    browser.explain(0)
    assert "this run kept no trace" in browser.words[0]
    for what in ("changelog", "dropped"):
        with pytest.raises(sk.errors.NotKept):
            sk.browse(done, what)


def test_what_cannot_be_browsed_is_refused() -> None:
    done = run(EACH_KIND["session"])
    with pytest.raises(sk.errors.InvalidArgument, match="'table', 'changelog', 'dropped'"):
        sk.browse(done, "windows")
    with pytest.raises(sk.errors.InvalidArgument, match="a store or a run"):
        sk.browse(7)  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="no tables to choose from"):
        sk.browse(sk.open_store("memory", "s"), "table")


def test_a_saved_notebook_has_the_first_rows_as_a_table() -> None:
    frame = pd.DataFrame({"key": ["<b>"] * 30, "time": np.arange(30) * 100})
    browser = sk.browse(plan_of(EACH_KIND["session"], timestamp="time").run(frame))
    bundle = browser._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/html"].count("<tr>") == 11
    assert "The first 10 of 30 sessions." in data["text/html"]
    assert "<b>&lt;b&gt;" not in data["text/html"]
    assert "&lt;b&gt;" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_final_results_and_kafkas_rules() -> None:
    for done in (run(EACH_KIND["hopping"], strategy="on_window_close"), run(EACH_KIND["session"], rules="kafka")):
        browser = sk.browse(done, "changelog")
        assert browser.table.row_count == len(done.changelog())
        assert browser.table.rows(Question(column=1, descending=True)).tolist() == sorted(
            range(browser.table.row_count), key=lambda row: -int(done.changelog()["offset"][row].as_py())
        )
