"""Makes quakes-2022-02.parquet from the monthly feed of the US Geological Survey (public domain). See README.md.

.venv/bin/python data/make_quakes.py all_month.csv
"""

import hashlib
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# all_month.csv as the feed gave it on 8 March 2022
SOURCE_SHA256 = "b905d4c0b33e238a3be0d028f80a038efb3b6979de6844754f8d5ed6e1f501d4"
TARGET = Path(__file__).with_name("quakes-2022-02.parquet")

SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("near", pa.string(), nullable=False),
        pa.field("mag", pa.float64()),
        pa.field("depth", pa.float64(), nullable=False),
        pa.field("latitude", pa.float64(), nullable=False),
        pa.field("longitude", pa.float64(), nullable=False),
    ]
)


def quakes_as_given(source: Path) -> pa.Table:
    """The earthquakes of the feed, in its order: the newest first."""
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    if found != SOURCE_SHA256:
        raise SystemExit(f"{source.name} is not the file this was written for; got sha256 {found}")
    rows = pd.read_csv(source, parse_dates=["time"])
    rows = rows[rows["type"] == "earthquake"]
    rows = rows.assign(
        # "8km NW of The Geysers, CA" lies near The Geysers, CA
        near=rows["place"].str.replace(r"^.* ?km [NESW]+ of ", "", regex=True),
        mag=rows["mag"].round(2),
        depth=rows["depth"].round(1),
        latitude=rows["latitude"].round(3),
        longitude=rows["longitude"].round(3),
    )
    return pa.table(
        [pa.array(rows[field.name], from_pandas=True).cast(field.type, safe=False) for field in SCHEMA], SCHEMA
    )


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: make_quakes.py all_month.csv")
    quakes = quakes_as_given(Path(sys.argv[1]))
    pq.write_table(quakes, TARGET, compression="zstd", compression_level=19)
    print(f"{TARGET.name}: {quakes.num_rows} rows, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
