"""`plan.write` of 10, 100 and 1,000 million records: its speed, what its process holds at most, kills on the way."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import FOLDER, GAP_MS, GRACE_MS, visits

DAY_RECORDS, DAY_US = 10_000_000, 86_400_000_000
DAYS, KILLED_DAYS, KILLS, ROUNDS = (1, 10, 100), 10, 20, 5
SIDES = {"plan.run": "plan.run(files, trace=False)", "plan.write": "plan.write(files, table=out, overwrite=True)"}
PLAN = f"""
import sys, time
import sessionkit as sk
from benchmarks.running.memory import peak_bytes

out, times, *files = sys.argv[1:]
plan = (
    sk.group_by_key("key", timestamp="ts")
    .windowed_by(sk.SessionWindows(inactivity_gap_ms={GAP_MS}, grace_ms={GRACE_MS}))
    .aggregate(count=sk.count(), total=sk.sum("value"))
)
for _ in range(int(times)):
    begun = time.perf_counter()
    SIDE
    seconds = time.perf_counter() - begun
print(seconds, peak_bytes("self"))
"""


def files_of(days: int) -> list[Path]:
    """The visits of a day again and again, each after the one before: key, time and value."""
    folder = FOLDER / "days"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{day:03}.parquet" for day in range(days)]
    missing = [day for day, file in enumerate(files) if not file.exists()]
    table = pq.read_table(visits(DAY_RECORDS), columns=["key", "ts", "value"]) if missing else None
    for day in missing:
        assert table is not None
        later = pc.add(table["ts"], pa.scalar(day * DAY_US, pa.duration("us")))
        part = files[day].with_suffix(".part")
        pq.write_table(table.set_column(1, "ts", later), part, row_group_size=1_000_000, compression="zstd")
        part.rename(files[day])
    return files


def _command(side: str, days: int, out: Path, times: int) -> list[str]:
    program = PLAN.replace("SIDE", SIDES[side])
    return [sys.executable, "-c", program, str(out), str(times), *map(str, files_of(days))]


def _measured(side: str, days: int, out: Path, times: int = 1) -> tuple[float, float]:
    """(seconds of the last of so many calls, MiB that the process held at most)."""
    done = subprocess.run(_command(side, days, out, times), check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak / 2**20


def _killed(out: Path, seconds: float) -> int:
    """Writes with kills, each at another time of the call; how many there were."""
    rng, kills = random.Random(42), 0
    shutil.rmtree(out, ignore_errors=True)
    while True:
        process = subprocess.Popen(_command("plan.write", KILLED_DAYS, out, 1), stdout=subprocess.DEVNULL)
        if kills == KILLS:
            assert process.wait() == 0
            return kills
        # what a call does before its first note is done anew: it is let go on until one is due, now and then
        time.sleep(rng.uniform(0.2, 1.0) * seconds * (0.7 if kills % 4 == 3 else 0.2))
        process.kill()
        kills += process.wait() != 0


def measure() -> None:
    """Prints all of it."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        out, other = Path(folder) / "out", Path(folder) / "other"
        rounds = [[_measured(side, 1, out, 3) for side in SIDES] for _ in range(ROUNDS)]
        for side, found in zip(SIDES, zip(*rounds, strict=True), strict=True):
            print(f"{side:<10} {DAY_RECORDS:>13,} records, warm: {min(each[0] for each in found):6.2f} s", flush=True)
        low, *_, high = ratios = sorted(run[0] / write[0] for run, write in rounds)
        print(f"the rate of the second in that of the first: {ratios[ROUNDS // 2]:.2f} ({low:.2f} to {high:.2f})")
        for days in DAYS:
            seconds, peak = _measured("plan.write", days, out)
            rate = days * DAY_RECORDS / seconds / 1e6
            print(
                f"plan.write {days * DAY_RECORDS:>13,} records: {seconds:7.1f} s, {rate:.1f} M/s, {peak:,.0f} MiB",
                flush=True,
            )
        seconds, _ = _measured("plan.write", KILLED_DAYS, out)
        kills = _killed(other, seconds)
        is_same = pq.read_table(out).equals(pq.read_table(other))
        print(f"{KILLED_DAYS * DAY_RECORDS:,} records, killed {kills} times: {'the same' if is_same else 'OTHER'} rows")
