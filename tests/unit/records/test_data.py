"""The sample file in data/ is what its README says."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

FILE = Path(__file__).parents[3] / "data" / "flights-2013-07.parquet"
ROW_COUNT = 28_491


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return pq.read_table(FILE)


def test_columns_and_rows(flights: pa.Table) -> None:
    assert {field.name: str(field.type) for field in flights.schema} == {
        "partition": "int32", "offset": "int64", "flight": "int16", "carrier": "string", "origin": "string",
        "dest": "string", "tailnum": "string", "scheduled": "timestamp[ms]", "departed": "timestamp[ms]",
        "dep_delay": "int16", "distance": "int16",
    }  # fmt: skip
    assert flights.num_rows == ROW_COUNT
    assert all(column.null_count == 0 for column in flights.columns)


def test_one_partition_and_every_offset_once(flights: pa.Table) -> None:
    assert pc.unique(flights["partition"]).to_pylist() == [0]
    assert flights["offset"].to_pylist() == list(range(ROW_COUNT))


def test_rows_are_in_order_of_arrival_with_ties_by_schedule(flights: pa.Table) -> None:
    arrivals = list(zip(flights["departed"].to_pylist(), flights["scheduled"].to_pylist(), strict=True))
    assert arrivals == sorted(arrivals)


def test_arrival_is_schedule_plus_delay_and_lies_in_july(flights: pa.Table) -> None:
    delay_ms = pc.multiply(flights["dep_delay"].cast(pa.int64()), 60_000)
    assert pc.add(flights["scheduled"], delay_ms.cast(pa.duration("ms"))).equals(flights["departed"])
    assert {(at.year, at.month) for at in flights["departed"].to_pylist()} == {(2013, 7)}


def test_figures_of_the_readme(flights: pa.Table) -> None:
    airline_at_airport = set(zip(flights["carrier"].to_pylist(), flights["origin"].to_pylist(), strict=True))
    early_count = pc.sum(pc.less(flights["dep_delay"], 0)).as_py()
    assert len(airline_at_airport) == 33
    assert set(flights["origin"].to_pylist()) == {"EWR", "JFK", "LGA"}
    assert round(100 * early_count / ROW_COUNT) == 46


def test_the_file_stays_small() -> None:
    assert FILE.stat().st_size < 600_000
