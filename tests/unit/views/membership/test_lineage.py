"""The tree of a session: every record in it once, summed up through each merge."""

from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, UnknownRecord
from tests.interpreted import fewer
from tests.kinds import group_in_ms
from tests.property.streams import draw

MINUTE = 60_000
ROWS = [("ada", 0), ("ada", 8), ("bob", 8), ("ada", 1), ("ada", 4), ("ada", 16), ("ada", 12), ("ada", 13)]


def run(rows: list[tuple[str, int]] = ROWS, windows: Any = None) -> sk.Run:
    frame = pd.DataFrame({"key": [key for key, _ in rows], "at": [at * MINUTE for _, at in rows]})
    windows = windows or sk.SessionWindows(inactivity_gap="5m", grace="1h")
    return group_in_ms("key").windowed_by(windows).count().run(frame)


def test_by_hand() -> None:
    """[0, 1] and [8] are bridged by 4; [0, 8] and [16] by 12; 13 comes last."""
    lineage = run().lineage("ada", 0)
    spans = [
        (node.start_ms // MINUTE, node.end_ms // MINUTE, node.own, node.total, node.bridge) for node in lineage.nodes
    ]
    assert spans == [(0, 1, 2, 2, -1), (8, 8, 1, 1, -1), (0, 8, 1, 4, 4), (16, 16, 1, 1, -1), (0, 16, 2, 7, 6)]
    assert [node.children for node in lineage.nodes] == [(), (), (0, 1), (), (2, 3)]
    assert lineage.records()["offset"].tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert repr(lineage).splitlines() == [
        "Session of key ada, 0 s to 16 min: 7 records",
        "0 s to 16 min  7 records  bridged by record 6",
        "  0 s to 8 min  4 records  bridged by record 4",
        "    0 s to 1 min  2 records  opened",
        "    at 8 min  1 record  opened",
        "  at 16 min  1 record  opened",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(fewer(120)))
def test_records_sum_up_through_every_merge(seed: int) -> None:
    stream = draw(seed)
    times = {"timestamp": "time", "unit": "ms", "partition": "partition", "offset": "offset", "on_bad_time": "drop"}
    done = group_in_ms("key", **times).windowed_by(stream.windows).count().run(stream.table)
    counted = 0
    for row in done.table().to_pylist():
        try:
            lineage = done.lineage(row["key"], row["window_start_ms"], partition=row["partition"])
        except UnknownRecord:
            raise AssertionError(row) from None
        root = lineage.nodes[-1]
        if not done.plan.windows.is_ever_closed and root.end_ms != row["window_end_ms"]:
            continue  # of several sessions in one place the last is told
        assert (root.start_ms, root.end_ms, root.total) == (row["window_start_ms"], row["window_end_ms"], row["count"])
        assert root.total == len(lineage.records()) == sum(node.own for node in lineage.nodes)
        assert len(lineage.nodes) == 1 + 2 * sum(bool(node.children) for node in lineage.nodes)
        counted += root.total
    if done.plan.windows.is_ever_closed:
        assert counted == int(done.trace.accepted.sum())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_bar_for_each_session_of_the_tree(theme: Any) -> None:
    lineage = run([("<b>x", at) for _, at in ROWS]).lineage("<b>x", 0)
    joins, opened, bridged, bridges = lineage.figure(theme=theme).data
    assert (len(opened.y), len(bridged.y)) == (3, 2)
    assert list(zip(bridges.x, bridges.y, strict=True)) == [(4 * MINUTE, 1), (12 * MINUTE, 2)]
    written = [each.text for each in lineage.figure().layout.annotations]
    assert {"5 records: 2 + 2 + the bridge", "8 records: 5 + 1 + 2 from the bridge on"} < set(written)
    moment = list(opened.y).index(0) + 1
    assert opened.base[moment] + opened.x[moment] / 2 == pytest.approx(8 * MINUTE, abs=1)  # in the middle of its bar
    assert len(joins.x) == 3 * 4
    assert "<b>x" not in lineage.figure().layout.title.text.replace("<b>S", "")
    alone = run([("ada", 0)]).lineage("ada", 0).figure()
    assert "never joined with another session" in alone.layout.title.text
    assert [len(trace.y) for trace in alone.data] == [0, 1, 0, 0]


def test_a_session_of_one_record_has_no_length() -> None:
    figure = run().lineage("ada", 0).figure()
    said = sorted(words for name in (1, 2) for words in figure.data[name].customdata)
    assert [words.partition("<br>")[0] for words in said] == [
        "1 record",
        "1 record",
        "2 records · 1 min",
        "4 records, 1 of them since then · 8 min",
        "7 records, 2 of them since then · 16 min",
    ]
    compared = run().compare(run(windows=sk.SessionWindows(inactivity_gap="3m", grace="1h"))).figure()
    assert not [words for trace in compared.data for words in trace.customdata if ": 0 s" in words]


def test_a_long_chain_is_told_in_part() -> None:
    rows = [("ada", 8 * i) for i in range(60)] + [("ada", 8 * i + 4) for i in range(59)]
    lineage = run(rows, sk.SessionWindows(inactivity_gap="5m", grace="30h")).lineage("ada", 0)
    assert len(lineage.nodes) == 119
    assert repr(lineage).splitlines()[-1] == "… and 79 more"
    lineage.figure()


def test_what_has_no_lineage() -> None:
    with pytest.raises(UnknownRecord, match="this key is not in the run"):
        run().lineage("eve", 0)
    with pytest.raises(InvalidArgument, match="only sessions merge"):
        run(windows=sk.TimeWindows(size="5m", grace="0s")).lineage("ada", 0)
