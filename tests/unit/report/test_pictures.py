"""The pictures of the report: what they carry, and what is said where a page cannot recompute the run."""

import html

import pyarrow as pa

import sessionkit as sk
from sessionkit.report.page import MOST_CARRIED, pictures
from tests.hostile.test_report import Parts

DATA = pa.table({"who": ["ada", "bob"], "at": [5, 7]})
PLAN = sk.group_by_key("who", timestamp="at", unit="ms").count()


def words_of(text: str) -> str:
    return " ".join(Parts(text).words)


def test_the_pictures_come_with_what_they_carry() -> None:
    said = pictures(PLAN.windowed_by(sk.SessionWindows(inactivity_gap_ms=5, grace_ms=5)).run(DATA))
    assert "This page carries the keys and times of 2 records of 2 keys." in words_of(said)
    assert said.count("data-what-if") == 1 and "<noscript>" in said


def test_more_records_than_a_page_carries_are_of_whole_keys() -> None:
    many = pa.table({"who": [str(row % 50) for row in range(MOST_CARRIED + 50)], "at": range(MOST_CARRIED + 50)})
    said = words_of(pictures(PLAN.windowed_by(sk.SessionWindows(inactivity_gap_ms=5, grace_ms=5)).run(many)))
    assert "49 of 50 keys" in said and "98,049 of 100,050 records" in said


def test_a_run_that_no_page_can_recompute_is_told_so() -> None:
    said = pictures(PLAN.windowed_by(sk.SessionWindows.until(inactivity_gap_ms=5, retention_ms=100)).run(DATA))
    assert "the report cannot recompute this run in the browser" in html.unescape(said)
    assert "data-what-if" not in said
