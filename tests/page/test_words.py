"""The page says numbers, lengths and times in the words of the package, and reads lengths as it does."""

from typing import Any

import numpy as np
import pytest

from sessionkit.base.durations import about, duration_ms, grace_with, lacked, show_duration
from sessionkit.base.moments import clock_changes, show_time
from sessionkit.base.text import percent
from sessionkit.errors import InvalidArgument
from sessionkit.views.drawing.time_axis import clock_ticks
from sessionkit.views.page.html import clock_data
from sessionkit.widgets.tuner import LADDER_MS, ladder
from tests.optional import Page as Tab
from tests.page.scenes import drawing

pytestmark = pytest.mark.browser

TEXTS = [
    *(
        "0", "0s", "90s", "45m", "1h 30m", "1h30m", "2 hours and 30 minutes", "1 week", "1.5h", "2 days", "250ms",
        "1,5 h",
    ),
    *("", "soon", "5", "-1s", "1 month", "1h x", "h", "1..5h", "0.3ms", "1_000s", "1e3s"),
]  # fmt: skip
tab = pytest.fixture(drawing, scope="module")


def test_lengths_are_said_alike(tab: Tab) -> None:
    rng = np.random.default_rng(1)
    lengths = [0, 1, 999, 1_000, 59_999, 86_399_999, *(10 ** (rng.random(400) * 13)).astype(np.int64).tolist()]
    each = "[showDuration(ms), aboutDuration(ms), lacked(ms), graceWith(90_000, ms)]"
    said = tab.evaluate(f"all => all.map((ms) => {each})", lengths)
    assert said == [[show_duration(ms), about(ms), lacked(ms), grace_with(90_000, ms)] for ms in lengths]


def test_shares_are_said_alike(tab: Tab) -> None:
    shares = [0, 1, 0.5, 0.995712, 0.99999, 0.99999999, 1e-9, 0.0003, *np.random.default_rng(2).random(200).tolist()]
    assert tab.evaluate("all => all.map(percent)", shares) == [percent(share) for share in shares]


def test_a_length_is_read_as_the_package_reads_it(tab: Tab) -> None:
    def read(text: str) -> int | None:
        try:
            return duration_ms(text, "gap")
        except InvalidArgument:
            return None

    ours = tab.evaluate("all => all.map(readDuration)", TEXTS)
    for text, ms in zip(TEXTS, ours, strict=True):
        assert ms == (0 if text == "0" else read(text)), text


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Antarctica/Troll"]


@pytest.mark.parametrize("zone", ZONES)
def test_times_are_said_and_placed_alike(tab: Tab, zone: str) -> None:
    rng = np.random.default_rng(3)
    change = 1_729_990_800_000  # clocks are set back in Berlin
    spread = rng.integers(-9_000_000, 9_000_000, 200) + rng.choice([change, 1_743_859_800_000, 1_730_613_600_000], 200)
    times: list[Any] = [0, 1_500_000_000_123, *spread.tolist(), *rng.integers(0, 2**41, 200).tolist()]
    latest = max(times)
    found = tab.evaluate(
        "([data, all]) => { const clock = clockOf(data); const at = (ms) => clock.local(ms);"
        "return all.map((ms) => [clock.show(ms), at(ms), clock.firstAt(at(ms)), clock.lastAt(at(ms))]); }",
        [clock_data(zone, latest), times],
    )
    clock = clock_changes(zone, latest + 10**10)
    local = clock.local(times)
    columns = ([show_time(ms, zone) for ms in times], local, clock.first_at(local), clock.last_at(local))
    assert found == [list(row) for row in zip(columns[0], *(each.tolist() for each in columns[1:]), strict=True)]


@pytest.mark.parametrize("zone", [*ZONES, "America/St_Johns"])
def test_axes_have_the_same_ticks(tab: Tab, zone: str) -> None:
    rng = np.random.default_rng(5)
    changes = clock_changes(zone, 2**41).changes_ms
    middles = [1_729_990_800_000, *rng.choice(changes, 30).tolist()] if len(changes) else [1_729_990_800_000] * 31
    spans = [
        [int(at - length * part), int(at + length * (1 - part)), most]
        for at, length, part in zip(middles, 10 ** rng.uniform(1, 11.5, 31), rng.random(31), strict=True)
        for most in (2, 6, 9)
        if at > 2 * length
    ]
    found = tab.evaluate(
        "([data, all]) => { const clock = clockOf(data);"
        "return all.map((span) => ticks(clock, ...span).map(({ at, text }) => [at, text])); }",
        [clock_data(zone, 2**41), spans],
    )
    clock = clock_changes(zone, 2**41 + 10**11)
    for span, ticks in zip(spans, found, strict=True):
        assert ticks == [list(tick) for tick in clock_ticks(clock, zone, *span)], span
        assert sorted(at for at, _ in ticks) == [at for at, _ in ticks]


def test_sliders_have_the_lengths_of_the_tuning_board(tab: Tab) -> None:
    assert tab.evaluate("LADDER") == list(LADDER_MS)
    for value, around, name in ((3_600_000, 3_600_000, "gap"), (0, 60_000, "grace"), (47_000, 47_000, "grace")):
        assert tab.evaluate("all => ladderAround(...all)", [value, around, name]) == ladder(value, around, None, name)
