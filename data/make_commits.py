"""Makes commits-2024-2025.parquet from a clone of the repository of Git. See README.md.

.venv/bin/python data/make_commits.py path/of/the/clone
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

NEWEST = "1a3e64c6c4a623626ff0687008732a8e007e2a1c"  # the history that this was made from ends here
FIRST_DAY, DAY_AFTER_LAST = "2024-01-01", "2026-01-01"
MAINTAINER = "Junio C Hamano"
ROWS_SHA256 = "2039178455318441e333cc14d997f1bfa1367fdfedf17400e698b70edbd5b54c"  # of the rows below, as text
TARGET = Path(__file__).with_name("commits-2024-2025.parquet")

SCHEMA = pa.schema(
    [
        pa.field("commit", pa.string(), nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("written", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("applied", pa.timestamp("ms", tz="UTC"), nullable=False),
    ]
)


def commits_in_order(clone: Path) -> pa.Table:
    """The commits that the maintainer applied in the two years, in the order in which he did."""
    command = ["git", "-C", str(clone), "log", "--no-merges", "--format=%H%x09%an%x09%at%x09%ct%x09%cn", NEWEST]
    log = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", errors="replace").stdout
    lines = log.split("\n")[:-1]
    rows = pd.DataFrame([line.split("\t") for line in lines], columns=["commit", "name", "written", "applied", "by"])
    for column in ("written", "applied"):
        rows[column] = pd.to_datetime(rows[column].astype("int64"), unit="s", utc=True)
    chosen = (rows["by"] == MAINTAINER) & (rows["applied"] >= FIRST_DAY) & (rows["applied"] < DAY_AFTER_LAST)
    # the log goes from child to parent; of commits in the same second the parent comes first
    rows = rows[chosen].iloc[::-1].sort_values("applied", kind="stable").reset_index(drop=True)
    # authors are numbered in the order in which they first appear
    rows["author"] = [f"author {number + 1:03d}" for number in pd.factorize(rows["name"])[0]]
    rows["commit"] = rows["commit"].str[:10]
    found = hashlib.sha256(rows[SCHEMA.names].to_csv(index=False).encode()).hexdigest()
    if found != ROWS_SHA256:
        raise SystemExit(f"the clone's history is not the one this was written for; got sha256 {found}")
    return pa.Table.from_pandas(rows[SCHEMA.names], SCHEMA, preserve_index=False)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: make_commits.py path/of/the/clone")
    commits = commits_in_order(Path(sys.argv[1]))
    pq.write_table(commits, TARGET, compression="zstd", compression_level=19)
    print(f"{TARGET.name}: {commits.num_rows} rows, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
