"""What the report says of records that were dropped, of the gap, and when: true of all of them, in whole sentences."""

import html
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND
from tests.unit.report.test_sessions import run_of, shapes, told

START = 1_720_000_000_000


def words(run: sk.Run, **more: Any) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", told(run, **more)))).replace(" .", ".")


def kept_by_grace(run: sk.Run) -> dict[str, int]:
    """The rows of the table of graces: how many records each keeps."""
    part = told(run).partition("<h3>How much grace would keep them</h3>")[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]+>", "|", row) for row in part.split("<tr>")[2:]]
    cells = [[cell for cell in row.split("|") if cell] for row in rows]
    return {grace: int(kept.replace(",", "")) for grace, kept, _ in cells}


def commits() -> sk.Run:
    """Records of twenty years in order of arrival, of which a third carry times from days to years before."""
    random = np.random.default_rng(1)
    arrived = np.sort(START - random.integers(0, 20 * 365 * DAY, 4_000))
    tail = np.minimum(3 * DAY * (1 + random.pareto(0.45, 4_000)), 4_000 * DAY).astype(np.int64)
    late = random.random(4_000) < 0.35
    records = pd.DataFrame({"user": random.integers(0, 5, 4_000), "at": np.where(late, arrived - tail, arrived)})
    return run_of(records, gap="1d", grace="7d")


def test_the_grace_table_is_exact_for_more_drops_than_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was of every fourth of them, and said that all were kept by a grace that kept not all."""
    run = run_of(shapes()["late rows"])
    exact, late = kept_by_grace(run), run.metrics()["dropped-late"]
    monkeypatch.setattr("sessionkit.report.page.WEIGHED_DROPS", 100)
    assert kept_by_grace(run) == exact and [*exact.values()][-1] == late
    grace = re.search(r"All of them are kept with a grace of (.+?)\. More", words(run))
    assert grace is not None
    found = grace[1].replace(" min", "m")
    assert run.plan.with_windows(grace=found).run(shapes()["late rows"]).metrics()["dropped-late"] == 0


def test_a_sample_is_said_to_be_one_where_other_graces_cannot_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(shapes()["late rows"])
    monkeypatch.setattr("sessionkit.report.page.WEIGHED_DROPS", 100)
    monkeypatch.setattr("sessionkit.report.page.can_replay", lambda run: False)
    said, late = words(run), run.metrics()["dropped-late"]
    looked_at = len(range(0, late, -(-late // 100)))
    assert (
        f"Of {late:,} late records, {looked_at} were looked at, evenly spread; these are kept with a grace of " in said
    )
    assert "All of them are kept" not in said and [*kept_by_grace(run).values()][-1] == looked_at


@pytest.mark.parametrize("name", ["commits", "seconds"])
def test_there_is_a_table_of_graces_wherever_records_were_late(name: str) -> None:
    """There was none where records lacked years, or less than a minute."""
    at = START + np.arange(600) * MINUTE - (np.arange(600) % 50 == 7) * 80 * SECOND
    run = (
        commits()
        if name == "commits"
        else run_of(pd.DataFrame({"user": np.arange(600) % 7, "at": at}), "0s", gap="10s")
    )
    kept = kept_by_grace(run)
    assert len(kept) >= (3 if name == "commits" else 1) and [*kept.values()][-1] == run.metrics()["dropped-late"] > 0
    assert len(kept) < 30


def test_the_last_column_is_said_to_be_rounded_up() -> None:
    said = words(run_of(shapes()["late rows"]))
    assert "The grace in the last column, rounded up, keeps the record." in said and "millisecond" not in said


def test_a_lateness_of_years_is_not_cured_by_a_grace() -> None:
    said = words(commits())
    assert "their lateness has a long tail, which a grace does not cure: nine in ten of them need one of " in said
    assert "accept these drops" in said and " all." not in said.partition(" A session holds")[0]


def test_words_of_python_are_options_on_the_page_of_a_command() -> None:
    from sessionkit.cli.saying import with_options

    remark = 'x is text, and the type of \'n\' was guessed; types={"n": "string"} in group_by_key would set one'
    run = run_of(shapes()["one row"])
    assert "; --types n=string would set one" in words(run, remarks=[remark], wording=with_options)
    assert remark in words(run, remarks=[remark])


def test_the_key_that_loses_much_more_than_others_is_named_first() -> None:
    at = START + np.arange(3_000) * MINUTE
    user = np.where(np.arange(3_000) % 10 == 3, "lib", "doc")
    at[(user == "lib") & (np.arange(3_000) % 3 > 0)] -= 3 * HOUR
    said = words(run_of(pd.DataFrame({"user": user, "at": at}), gap="1m"))
    assert "Key lib loses most: 66.67% of its 300 records were dropped, and 0% of the others." in said
    assert "Key " not in words(run_of(shapes()["late rows"])).partition("Over time")[0]


def test_the_share_that_was_dropped_stands_beside_dropped() -> None:
    rows = told(run_of(shapes()["late rows"])).partition("<h2>Per key</h2>")[2].partition("</table>")[0]
    assert ">dropped</th><th scope='col' class='n'>share</th>" in rows
    assert "share" not in told(run_of(shapes()["one row"])).partition("<h2>Per key</h2>")[2].partition("</table>")[0]


def test_sentences_are_whole() -> None:
    said = words(run_of(shapes()["late rows"]))
    assert "half of the sessions last so long or less" in said and "are no longer" not in said
    assert "first 20" not in said or "(first 20" in said
    none = words(run_of(shapes()["one key"], "0s"))
    assert none.count("0 s") - none.partition("The plan")[2].count("0 s") <= 3 and "even later" not in none


def test_a_gap_in_a_valley_says_which_others_give_the_same_sessions() -> None:
    random = np.random.default_rng(4)
    pauses = np.where(
        random.random(4_000) < 0.2, random.integers(HOUR, 5 * HOUR, 4_000), random.integers(99, MINUTE, 4_000)
    )
    pauses[7] = HOUR
    records = pd.DataFrame({"user": "ada", "at": START + np.cumsum(pauses)})
    said = words(run_of(records)).partition("Over time")[0]
    assert "no pause is between 1 min and 1 h long, so every gap between gives the same sessions" in said
    assert len(run_of(records, gap="50m").table()) == len(run_of(records).table())
    assert "A gap stands out, 7 min" in words(run_of(records, gap="2h"))


def test_the_calendar_opens_at_the_worst_day() -> None:
    run = commits()
    worst = re.search(r"The worst day is \w+, ([\d-]+) with", " ".join(run.drop_calendar().words()))
    assert worst is not None
    cells = re.findall(r"title='\w+, ([\d-]+):[^']*' id=worst>", told(run))
    assert cells == [worst[1]]


def test_the_clock_of_a_key_is_wrong_from_a_record_on() -> None:
    """All of its records were to be left out, where a quarter of them was wrong."""
    at = START + np.arange(14_400) * 6 * SECOND
    user = np.arange(14_400) % 10
    wrong = (user == 4) & (np.arange(14_400) >= 10_800)
    run = run_of(pd.DataFrame({"user": user, "at": at + wrong * 45 * MINUTE}), "0s", gap="5m")
    said = words(run)
    assert "the clock of key 4 is some 45 min ahead of the others from its record at 2024-07-04 04:" in said
    assert f"Leave its {wrong.sum()} records from then on out, or correct their times." in said
    assert "without those records, none is dropped" in said


def test_the_terminal_and_the_page_say_the_same_share() -> None:
    """The terminal gave all drops to a clock to which the page gave nearly all."""
    at = START + np.arange(14_400) * 6 * SECOND
    at[7::400] -= 3 * HOUR
    user = np.arange(14_400) % 10
    run = run_of(pd.DataFrame({"user": user, "at": at + (user == 4) * 45 * MINUTE}), "0s", gap="5m")
    said = next(each for each in run.remarks() if "clock of key 4" in each)
    assert "were dropped, nearly all because the clock of key 4" in said
    assert "as late, nearly all because the clock of key 4" in words(run)


def test_a_quarter_is_named_as_one() -> None:
    at = START - np.arange(15 * 73)[::-1] * 5 * DAY
    said = words(run_of(pd.DataFrame({"user": "ada", "at": at})))
    assert re.search(r"in one quarter \((first )?20\d\d Q[1-4]\)", said)
