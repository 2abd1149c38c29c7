"""The benchmarks never fail a test for being slow; what they say must be true all the same."""

import importlib
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.jobs.sessions import finals
from benchmarks.model import Case, Side, Topic
from benchmarks.report.charts import Bar, bars
from benchmarks.report.figures import figures
from benchmarks.report.pages import BEGIN, END, PAGE, between_markers, write
from benchmarks.report.tables import growth, of_topic, summary, table
from benchmarks.running import process, rounds
from benchmarks.running.checks import difference
from benchmarks.running.child import run
from benchmarks.running.kept import Kept
from benchmarks.running.memory import peak_mib, processor_seconds
from benchmarks.running.process import Measured
from benchmarks.shapes import SHAPES, shape
from benchmarks.topics import topics

OURS, PEER = Side("sessionkit", "sessions.finals"), Side("Peer <&|>", "peers.polars_sessions")


def measured(warm: float, rows: int = 10, records: int = 100, total: float = 5.0) -> Measured:
    return Measured(first=9.0, warm=warm, cores=1.5, peak_mib=100.0, rows=rows, records=records, total=total)


def case(same: str = "records", **options: bool) -> Case:
    return Case("A | case", lambda: Path("data"), 1_000, (OURS, PEER), same, **options)


def topic(*cases: Case, growth: bool = False) -> Topic:
    return Topic("sessions", "Sessions", "Words.", cases, growth)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    found = Kept(tmp_path / "kept.jsonl")
    for number, (ours, peer) in enumerate(((1.0, 4.0), (2.0, 4.0), (4.0, 12.0))):
        found.add(("sessions", "A | case", "sessionkit", number), measured(ours))
        found.add(("sessions", "A | case", PEER.name, number), measured(peer, rows=20))
    return found


class TestChecks:
    def test_the_same_answers_are_no_difference(self) -> None:
        assert difference(case(), [measured(1), measured(2)]) == ""

    @pytest.mark.parametrize(("other", "words"), [
        (measured(1, rows=11), "10 rows in sessionkit, 11 in"),
        (measured(1, records=99), "100 records in sessionkit, 99 in"),
        (measured(1, total=5.1), "the sums add up to 5.0 in sessionkit, to 5.1 in"),
    ])  # fmt: skip
    def test_another_answer_is_told(self, other: Measured, words: str) -> None:
        assert words in difference(case(), [measured(1), other])

    def test_nearly_lets_dropped_records_pass(self) -> None:
        assert difference(case("nearly"), [measured(1, 10_000), measured(1, 10_050)]) == ""
        assert difference(case("nearly"), [measured(1, 10_000), measured(1, 10_200)])

    def test_different_things_are_not_compared(self) -> None:
        assert difference(case(""), [measured(1), measured(1, rows=99)]) == ""

    def test_a_peer_that_ran_out_of_memory_is_said_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process.sys, "executable", _program(tmp_path, "MemoryError"))
        with pytest.raises(RuntimeError, match="MemoryError"):
            process.measured(OURS, "data")
        peer = process.measured(PEER, "data")
        assert peer.is_out_of_memory
        assert difference(case(), [measured(1), peer]) == ""
        kept = Kept(tmp_path / "kept.jsonl")
        kept.add(("sessions", "A | case", "sessionkit", 0), measured(1))
        kept.add(("sessions", "A | case", PEER.name, 0), peer)
        line = of_topic(topic(case()), Kept(tmp_path / "kept.jsonl")).splitlines()[-1]
        assert line == "|  | Peer <&\\|> | out of memory |  |  |  |  |  |"


def _program(folder: Path, last_words: str) -> str:
    """A program that ends with these words and a failure."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\necho {last_words} >&2\nexit 1\n")
    path.chmod(0o700)
    return str(path)


class TestKept:
    def test_a_run_that_was_stopped_goes_on(self, tmp_path: Path, kept: Kept) -> None:
        again = Kept(tmp_path / "kept.jsonl")
        assert ("sessions", "A | case", "sessionkit", 2) in again
        assert len(again.rounds("sessions", "A | case", ["sessionkit", PEER.name])) == 3

    def test_a_line_that_was_cut_is_dropped(self, tmp_path: Path, kept: Kept) -> None:
        file = tmp_path / "kept.jsonl"
        file.write_text(file.read_text()[:-20])
        again = Kept(file)
        assert ("sessions", "A | case", PEER.name, 2) not in again
        assert len(again.rounds("sessions", "A | case", ["sessionkit", PEER.name])) == 2
        again.add(("sessions", "A | case", PEER.name, 2), measured(1))
        assert len(Kept(file).rounds("sessions", "A | case", [PEER.name])) == 3


class TestRounds:
    def test_sides_of_a_case_follow_each_other_in_each_round(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []
        monkeypatch.setattr(rounds, "measured", lambda side, path: asked.append(side.name) or measured(1))
        one, kept = topic(case()), Kept(tmp_path / "kept.jsonl")
        rounds.run_rounds([one], kept, 2, float("inf"), lambda line: None)
        assert asked == ["sessionkit", PEER.name] * 2
        rounds.run_rounds([one], kept, 3, float("inf"), lambda line: None)
        assert asked == ["sessionkit", PEER.name] * 3

    def test_no_case_begins_after_the_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rounds, "measured", lambda side, path: pytest.fail("began"))
        rounds.run_rounds([topic(case())], Kept(tmp_path / "kept.jsonl"), 2, 0.0, lambda line: None)

    def test_a_wrong_answer_stops_the_benchmark(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rounds, "measured", lambda side, path: measured(1, rows=10 if side is OURS else 99))
        with pytest.raises(ValueError, match="10 rows in sessionkit, 99 in Peer"):
            rounds.run_rounds([topic(case())], Kept(tmp_path / "kept.jsonl"), 1, float("inf"), lambda line: None)


class TestTables:
    def test_ratios_are_those_of_a_round(self, kept: Kept) -> None:
        ours, peer = figures(topic(), case(), kept)
        assert (ours.seconds, ours.least, ours.most) == (2.0, 1.0, 4.0)
        assert (peer.ratio, peer.least_ratio, peer.most_ratio) == (3.0, 2.0, 4.0)

    def test_a_row_of_the_result_may_be_what_counts(self, kept: Kept) -> None:
        assert figures(topic(), case(a_row=True), kept)[1].ratio == pytest.approx(1.5)

    def test_the_first_call_may_be_what_counts(self, kept: Kept) -> None:
        assert figures(topic(), case(first=True), kept)[0].seconds == 9.0

    def test_text_cannot_break_a_table(self, kept: Kept) -> None:
        assert table(("a", " b"), [("x|y", "1\n2")]) == "| a | b |\n| --- | --: |\n| x\\|y | 1 2 |\n"
        assert "A \\| case" in of_topic(topic(case()), kept)
        assert "Peer <&\\|>" in summary([topic(case())], kept)

    def test_growth_is_a_multiple_of_the_first_case(self, kept: Kept) -> None:
        kept.add(("sessions", "worse", "sessionkit", 0), measured(6.0))
        worse = Case("worse", lambda: Path("data"), 1_000, (OURS,))
        found = growth(topic(case(), worse, growth=True), kept)
        assert [(title, times) for title, _, times, _ in found] == [("A | case", 1.0), ("worse", 3.0)]

    def test_what_was_not_measured_is_not_in_the_page(self, tmp_path: Path, kept: Kept) -> None:
        empty = Topic("empty", "Nothing", "Words.", (case(),))
        page = write(tmp_path, [topic(case()), empty], kept, {"Python": "3"}).read_text()
        assert "## Sessions" in page
        assert "## Nothing" not in page
        assert (tmp_path / "charts" / "sessions.svg").exists()


class TestCharts:
    def test_text_cannot_break_a_chart(self) -> None:
        drawn = [Bar("a <b>", "<script>", 2.0, "2 & more", True), Bar("a <b>", "peer", 1.0, "1", False)]
        root = ElementTree.fromstring(bars("<title>", drawn, line_at=1.0))  # noqa: S314
        texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert texts == ["<title>", "a <b>", "<script>", "2 & more", "peer", "1"]

    def test_bars_are_as_long_as_their_values(self) -> None:
        root = ElementTree.fromstring(bars("", [Bar("", "a", 2.0, "", True), Bar("", "b", 1.0, "", False)]))  # noqa: S314
        widths = [float(each.attrib["width"]) for each in root.iter("{http://www.w3.org/2000/svg}rect")]
        assert widths[0] == 2 * widths[1]


class TestPages:
    def test_only_what_is_between_the_markers_changes(self) -> None:
        page = between_markers(f"before\n{BEGIN}\nold\n{END}\nbehind", "new\n", "speed.md")
        assert page == f"before\n{BEGIN}\nnew\n{END}\nbehind"

    @pytest.mark.parametrize("page", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
    def test_a_page_without_markers_is_refused(self, page: str) -> None:
        with pytest.raises(ValueError, match=r"speed\.md must have"):
            between_markers(page, "new", "speed.md")

    def test_the_page_has_its_markers(self) -> None:
        between_markers(PAGE.read_text(encoding="utf-8"), "", PAGE.name)


class TestTopics:
    def test_each_side_has_a_job(self) -> None:
        for each in topics(1_000):
            for one in each.cases:
                for side in one.sides:
                    module, name = side.job.split(".")
                    assert callable(getattr(importlib.import_module(f"benchmarks.jobs.{module}"), name)), side

    def test_no_two_measurements_have_one_name(self) -> None:
        names = [
            (each.name, one.title, side.name) for each in topics(1_000) for one in each.cases for side in one.sides
        ]
        assert len(names) == len(set(names))

    @pytest.mark.parametrize("name", SHAPES)
    def test_sides_agree_on_each_shape(self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("benchmarks.shapes.FOLDER", tmp_path)
        path = str(shape(name, 3_000, keys=50))
        sides = ("sessions.finals", "peers.polars_sessions")
        ours, peer = (run({"job": job, "path": path, "options": {}, "repeats": 0}) for job in sides)
        assert (ours["records"], round(ours["total"], 6)) == (3_000, round(peer["total"], 6))
        assert difference(case(), [Measured(**ours), Measured(**peer)]) == ""
        assert len(finals(path)()) == ours["rows"]


def test_memory_and_work_are_those_of_all_that_a_process_started() -> None:
    """So that Java is counted where Spark and Flink do the work."""
    program = "import time; held = bytearray(b'x') * 200_000_000; print(flush=True); time.sleep(60)"
    worked, held = processor_seconds(), peak_mib()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert peak_mib() > held + 190
        assert processor_seconds() > worked
        child.kill()
