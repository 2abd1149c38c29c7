"""`plan.write` beside `plan.run`, and killed on the way; its time and memory by length are in the table."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.data import DAY_RECORDS, FOLDER, days
from benchmarks.settings import GAP_MS, GRACE_MS

KILLED_DAYS, KILLS, ROUNDS = 10, 20, 5
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


def _command(side: str, count: int, out: Path, times: int) -> list[str]:
    program = PLAN.replace("SIDE", SIDES[side])
    return [sys.executable, "-c", program, str(out), str(times), *map(str, sorted(days(count).iterdir())[:count])]


def _measured(side: str, count: int, out: Path, times: int = 1) -> tuple[float, float]:
    """(seconds of the last of so many calls, MiB that the process held at most)."""
    done = subprocess.run(_command(side, count, out, times), check=True, capture_output=True, text=True)
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
        seconds, _ = _measured("plan.write", KILLED_DAYS, out)
        kills = _killed(other, seconds)
        is_same = pq.read_table(out).equals(pq.read_table(other))
        print(f"{KILLED_DAYS * DAY_RECORDS:,} records, killed {kills} times: {'the same' if is_same else 'OTHER'} rows")
