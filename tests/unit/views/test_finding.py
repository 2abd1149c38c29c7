"""The finding of a run in a sentence, over data of many shapes and all kinds of windows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.durations import DAY, HOUR, MINUTE
from sessionkit.errors import InvalidArgument, PicturesUnavailable
from sessionkit.views.over_time.buckets import MOST, buckets
from sessionkit.views.over_time.card_figure import HEADLINE, card_figure
from sessionkit.views.over_time.finding import finding
from tests.optional import Browser

START = 1_720_000_000_000
SESSIONS = sk.SessionWindows(inactivity_gap="30m", grace="5m")


def run_of(at: Any, user: Any = "ada", windows: Any = SESSIONS, zone: str = "UTC", **options: Any) -> sk.Run:
    plan = sk.group_by_key("user", timestamp="at", unit="ms", timezone=zone).windowed_by(windows).count()
    run: sk.Run = plan.run(pd.DataFrame({"user": user, "at": np.asarray(at, np.int64)}), **options)
    return run


def found(run: sk.Run) -> str:
    return " ".join(finding(run.metrics(), run))


@pytest.fixture(scope="module")
def times() -> Any:
    """Three days of records in order."""
    return START + np.sort(np.random.default_rng(3).integers(0, 3 * DAY, 3_000))


KEYS = np.arange(3_000) % 20


def test_a_log_in_which_nothing_is_dropped(times: Any) -> None:
    said = found(run_of(times, KEYS))
    assert said.startswith("None of the 3,000 records was dropped; a grace of 0 s is enough for them; ")
    assert said.endswith(" sessions have one record.")


def test_the_grace_that_is_enough_is_the_smallest_round_one() -> None:
    at = START + np.arange(600) * MINUTE
    at[100] -= 45 * MINUTE
    user = np.where(np.arange(600) == 100, "bob", "ada")
    assert "; a grace of 1 h is enough for them" in found(
        run_of(at, user, sk.SessionWindows(inactivity_gap="1m", grace="3h"))
    )
    assert "; a grace of 45 min is enough for them" in found(run_of(at, user, sk.TimeWindows(size="1m", grace="45m")))


def test_one_clock_that_is_ahead_is_named_with_what_its_record_cost(times: Any) -> None:
    at = times.copy()
    at[1203] += DAY
    run = run_of(at, KEYS)
    assert f"{100 * run.metrics()['dropped-late'] / 3_000:.4g}" in found(run)
    assert "dropped as late, because record 1203 (key 3) lies 1 d ahead" in found(run)
    assert "; without that record, none is dropped. Leave it out" in found(run)


def test_rows_sorted_by_key_are_late_for_none_once_sorted_by_time(times: Any) -> None:
    order = np.lexsort((times, KEYS))
    run = run_of(times[order], KEYS[order])
    assert "the 20 keys stand one after another" in found(run) and "; sorted by time, none is dropped. sort=" in found(
        run
    )
    assert run_of(np.sort(times[order]), KEYS[order]).metrics()["records-dropped"] == 0


def test_late_records_without_a_cause_are_kept_by_a_grace_that_is_said() -> None:
    random = np.random.default_rng(5)
    at = START + np.arange(3_000) * MINUTE - (random.random(3_000) < 0.05) * random.integers(0, 6 * HOUR, 3_000)
    at[2_000] -= 2 * DAY
    for windows in (SESSIONS, sk.TimeWindows(size="30m", advance="10m", grace="5m")):
        run = run_of(at, KEYS, windows)
        assert "a grace of 6 h instead of 5 min keeps nine in ten of them, and one of 2 d keeps them all" in found(run)
        kept = run_of(at, KEYS, run.plan.with_windows(grace="2d").windows)
        assert kept.metrics()["dropped-late"] == 0


def test_other_kinds_of_windows_and_runs_have_a_finding(times: Any) -> None:
    late = times - (np.arange(3_000) % 50 == 0) * 2 * HOUR
    kinds = (
        sk.TimeWindows(size="30m", grace="5m"),
        sk.SlidingWindows(time_difference="20m", grace="5m"),
        sk.SessionWindows.until(inactivity_gap="30m", retention="2h"),
    )
    for windows in kinds:
        assert found(run_of(late, KEYS, windows))[-1] == "."
        assert found(run_of(late, KEYS, windows, trace=False))[-1] == "."
    run = run_of(late, KEYS)
    assert finding({**run.metrics(), "records-dropped": 51}, None) == ["1.7% of 3,000 records were dropped (51)."]


def test_what_was_dropped_for_another_reason_is_said(times: Any) -> None:
    user = KEYS.astype(object)
    user[:5] = None
    assert found(run_of(times, user)) == "0.17% of 3,000 records were dropped: 5 with no key."
    assert found(run_of([])) == "There are no records."


# ---- over time


SPANS = {
    "toy": [0, 5, 9],
    "seconds": START + np.arange(0, 90_000, 500),
    "three days": START + np.arange(0, 3 * DAY, 20 * MINUTE),
    "two years": START + np.arange(0, 730 * DAY, DAY),
    "a long history": START - np.arange(0, 40 * 365 * DAY, 90 * DAY)[::-1],
    "far times": np.arange(2**55, 2**60, 2**54),
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("name", SPANS)
def test_every_record_is_in_one_stretch(name: str, zone: str) -> None:
    run = run_of(SPANS[name], zone=zone, windows=sk.SessionWindows(inactivity_gap="0s", grace="5m"))
    found = buckets(run._outcome)
    assert found is not None and 1 <= len(found.names) <= MOST and len(set(found.names)) == len(found.names)
    assert found.records.sum() == len(SPANS[name]) and found.windows.sum() == run.metrics()["windows"]


def test_a_stretch_begins_with_the_clock_of_the_zone_on_the_night_when_clocks_change() -> None:
    at = 1_729_900_800_000 + np.arange(0, 20 * DAY, HOUR)  # 26 October 2024; Berlin's clocks go back on the 27th
    days = buckets(run_of(np.concatenate([at, at + 100 * DAY]), zone="Europe/Berlin")._outcome)
    assert days is not None and days.length == "one week" and days.names[:2] == ["2024-10-21", "2024-10-28"]
    hours = buckets(run_of(at[:48], zone="Europe/Berlin")._outcome)
    assert hours is not None and set(hours.records.tolist()) <= {0, 1}


# ---- the card


def words(figure: Any) -> str:
    return " ".join(note.text for note in figure.layout.annotations)


def test_the_card_says_the_finding_and_the_numbers(times: Any) -> None:
    at = times.copy()
    at[1203] += DAY
    run = run_of(at, KEYS)
    figure = card_figure(run, None, "dark")
    said = words(figure).replace("<br>", " ")
    assert finding(run.metrics(), run)[0] in said and "user: gap 30 min, grace 5 min" in said
    assert "<b>3,000</b>" in said and f"<b>{run.metrics()['records-dropped']:,}</b>" in said
    assert sum(bar.y.sum() for bar in figure.data) == 3_000
    assert figure.layout.paper_bgcolor == "#12161c"


def test_the_text_of_users_is_no_markup_of_the_card(times: Any) -> None:
    at = times.copy()
    at[1203] += DAY
    said = words(card_figure(run_of(at, ["<a href='x'>"] * 3_000), "<b>$x$</b>" * 50, None))
    assert "<a" not in said and "$" not in said and "&lt;" in said
    heading = next(note for note in card_figure(run_of(at, "x" * 5_000), None, None).layout.annotations[1:])
    assert heading.text.count("<br>") < HEADLINE[-1][1]


def test_a_card_without_a_trace_or_records_has_no_bars() -> None:
    for run in (run_of([]), run_of([START]), run_of(SPANS["three days"], trace=False)):
        assert len(card_figure(run, None, None).data) == 0


def test_a_card_is_a_png_and_needs_kaleido(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(SPANS["toy"])
    with pytest.raises(InvalidArgument, match=r"a path such as \"card.png\""):
        run.write_png(tmp_path / "card.jpg")
    monkeypatch.setattr("sessionkit.views.over_time.card_figure.find_spec", lambda name: None)
    with pytest.raises(PicturesUnavailable, match="pip install kaleido"):
        run.write_png(tmp_path / "card.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.browser
def test_a_card_has_the_size_of_a_chat_and_a_slide(browser: Browser, tmp_path: Path) -> None:
    content = run_of(SPANS["three days"]).write_png(tmp_path / "card.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (1_200, 630)
