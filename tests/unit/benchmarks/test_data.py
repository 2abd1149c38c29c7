"""Data of the benchmarks that others make, or nobody chose: the same each time, and what it is said to be."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import drawn, nexmark
from benchmarks.model import Case, Side, Topic
from benchmarks.report.tables import of_topic
from benchmarks.running.kept import Kept
from benchmarks.running.process import Measured


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (drawn, nexmark):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    return tmp_path


def test_a_drawn_file_is_what_its_words_say(folder: Path) -> None:
    for number in range(drawn.SHAPES):
        shape = drawn.drawn(number, 2_000)
        file = drawn.file_of(number, 2_000)
        table = pq.read_table(file)
        assert len(table) == 2_000
        assert len(pc.unique(table["key"])) <= shape.keys
        assert len(table.column_names) == 3 + shape.values
        assert pc.max(table["partition"]).as_py() < shape.partitions
        assert f"{shape.keys:,} keys (" in shape.words
        if shape.text_bytes:
            assert set(pc.binary_length(table["key"]).to_pylist()) == {max(shape.text_bytes, len(f"{shape.keys:x}"))}
        file.unlink()
        assert pq.read_table(drawn.file_of(number, 2_000)).equals(table)


def test_drawn_shapes_differ_in_all_that_is_drawn() -> None:
    shapes = [drawn.drawn(number, 2_000_000) for number in range(drawn.SHAPES)]
    for column in zip(*shapes, strict=True):
        assert len({*column}) > 3
    assert {bool(shape.text_bytes) for shape in shapes} == {True, False}


@pytest.mark.parametrize("group", [1, 1_000])
def test_bids_are_those_of_nexmark(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nexmark, "PART", 46_000)
    table = pq.read_table(nexmark.bids(92_000, group))
    time_ms = table["time"].cast("int64").to_numpy()
    assert np.ptp(time_ms) == pytest.approx(10_000, abs=100)  # 9,200 bids of 10,000 events a second
    assert np.maximum.accumulate(time_ms)[-1] - time_ms.min() == np.ptp(time_ms)
    late_ms = np.maximum.accumulate(time_ms) - time_ms
    assert late_ms.max() == 0 if group == 1 else 90 <= late_ms.max() <= 100
    bidder, auction = table["bidder"].to_numpy(), table["auction"].to_numpy()
    assert np.mean(bidder % 100 == 1) == pytest.approx(0.75, abs=0.02)
    assert np.mean(auction % 100 == 0) == pytest.approx(0.5, abs=0.02)
    assert 1_000 <= bidder.min() < bidder.max() <= 1_000 + 2_000 + nexmark.LEAD
    assert 100 <= table["price"].to_numpy().min() < table["price"].to_numpy().max() <= 100_000_000


def test_drawn_cases_have_a_line_with_the_median_and_the_worst(tmp_path: Path) -> None:
    sides = (Side("sessionkit", "sessions.finals"), Side("Polars", "peers.polars_sessions"))
    cases = [Case(f"Sessions. shape {n}", lambda: tmp_path, 10, sides, kind="Sessions") for n in range(3)]
    kept = Kept(tmp_path / "kept.jsonl")
    for case, peer in zip(cases, (4.0, 0.5, 2.0), strict=True):
        for side, warm in zip(sides, (1.0, peer), strict=True):
            found = Measured(first=9, warm=warm, cores=1, peak_mib=1, rows=1, records=1, total=1)
            kept.add(("drawn", case.title, side.name, 0), found)
    text = of_topic(Topic("drawn", "Drawn", "Words.", tuple(cases)), kept)
    assert "| Sessions | 3 | 2.0 | 0.5 | shape 1 |" in text
