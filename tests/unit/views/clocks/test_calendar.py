"""Cells of a calendar: contiguous, as clocks of the zone show them, and as fine as the span asks for."""

import numpy as np
import pandas as pd
import pytest

from sessionkit.views.drop_calendar.cells import Calendar, calendar

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata", "+05:45",
)  # fmt: skip
SPANS_H = (0.001, 0.3, 5, 60, 24 * 20, 24 * 61, 24 * 300, 24 * 2_500)


def ms_of(text: str, zone: str) -> int:
    return int(pd.Timestamp(text, tz=zone).value // 1_000_000)


def of(start: str, end: str, zone: str) -> Calendar:
    return calendar(ms_of(start, zone), ms_of(end, zone), zone)


@pytest.mark.thorough
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hours", SPANS_H)
def test_cells_follow_each_other_and_each_has_a_place_of_its_own(zone: str, hours: float) -> None:
    rng = np.random.default_rng(int(hours * 1_000))
    for low in rng.integers(ms_of("1990-01-01", "UTC"), ms_of("2026-01-01", "UTC"), 6).tolist():
        high = low + int(hours * 3_600_000)
        cells = calendar(low, high, zone)
        assert (np.diff(cells.edges_ms) > 0).all()
        assert cells.edges_ms[0] <= low < cells.edges_ms[1]
        assert cells.edges_ms[-2] <= high < cells.edges_ms[-1]
        places = set(zip(cells.row.tolist(), cells.column.tolist(), strict=True))
        assert len(places) == len(cells.names) == len(set(cells.names)) == len(cells.edges_ms) - 1
        assert 0 <= cells.row.min() <= cells.row.max() < cells.row_count
        assert 0 <= cells.column.min() <= cells.column.max() < cells.column_count
        assert not places & {(row, column) for row, column, _ in cells.skipped}
        assert cells.cell_of(np.array([low - 40 * 86_400_000, low, high, cells.edges_ms[-1]])).tolist() == [
            -1,
            0,
            len(cells.names) - 1,
            -1,
        ]


@pytest.mark.parametrize(("hours", "freq"), [(0.3, "h"), (24 * 20, "h"), (24 * 300, "D"), (24 * 2_500, "D")])
@pytest.mark.parametrize("zone", ZONES)
def test_cells_begin_where_pandas_has_them_begin(zone: str, hours: float, freq: str) -> None:
    low = ms_of("2010-02-10 11:17", zone)
    cells = calendar(low, low + hours * 3_600_000, zone)
    times = pd.to_datetime(np.linspace(low, low + hours * 3_600_000, 5_000).astype("int64"), unit="ms", utc=True)
    local = times.tz_convert(zone).tz_localize(None).to_period(freq).start_time
    starts = pd.to_datetime(cells.edges_ms[cells.cell_of(times.as_unit("ms").asi8)], unit="ms", utc=True)
    shown = starts.tz_convert(zone).tz_localize(None)
    # midnight may be skipped: the day then begins with the first time that clocks show
    assert ((shown - local) <= pd.Timedelta(hours=1)).all()
    assert (shown.to_period(freq).start_time == local).all()


@pytest.mark.parametrize(("start", "end", "unit", "rows"), [
    ("1970-01-01 00:00:00.100", "1970-01-01 00:00:00.300", "hour", 24),
    ("2024-05-01 10:00", "2024-06-20 17:00", "hour", 24), ("2023-11-01", "2024-10-30", "day", 7),
    ("2019-03-01", "2025-03-01", "day", 7), ("1975-03-01", "2025-03-01", "day", 7),
])  # fmt: skip
def test_a_cell_is_as_long_as_the_span_asks_for(start: str, end: str, unit: str, rows: int) -> None:
    cells = of(start, end, "UTC")
    assert (cells.unit, cells.row_count) == (unit, rows)
    assert 1 <= len(cells.column_ticks) <= 11
    assert all(0 <= place < cells.column_count for place, _ in cells.column_ticks)


def test_an_hour_that_comes_twice_has_two_rows() -> None:
    cells = of("2024-10-20", "2024-11-03", "Europe/Berlin")
    assert cells.row_count == 25
    assert (3, "02:00 again") in cells.row_ticks
    twice = [at for at, name in enumerate(cells.names) if name.startswith("2024-10-27 02:00")]
    assert [cells.names[at] for at in twice] == ["2024-10-27 02:00+02:00", "2024-10-27 02:00+01:00"]
    assert cells.row[twice].tolist() == [2, 3]
    assert np.diff(cells.edges_ms[twice[0] : twice[0] + 3]).tolist() == [3_600_000] * 2


def test_an_hour_that_clocks_skip_is_named() -> None:
    cells = of("2025-03-20 03:00", "2025-04-03 01:00", "Europe/Berlin")
    assert cells.skipped == [(2, 10, "2025-03-30 02:00")]
    assert cells.row_count == 24
