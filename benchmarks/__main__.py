"""`make bench`: makes its own data, runs all sides of each case in turn, checks their results and writes the pages.

Read the ratios: sides run right after each other, and the machine's mood is in all of them. A benchmark never fails a
test.
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

from benchmarks.report.pages import publish, write
from benchmarks.running.kept import Kept
from benchmarks.running.machine import ROOT, commit, machine
from benchmarks.running.rounds import run_rounds
from benchmarks.topics import topics

RESULTS = ROOT / "benchmarks" / "results"
LONG = ("large_batch", "soak", "stages", "stream", "widgets", "write")
RECORDS, SHORT_RECORDS = 10_000_000, 1_000_000


def main() -> None:
    """Runs what is asked for."""
    names = [topic.name for topic in topics(RECORDS)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*names, *LONG, []], default=[], help="all topics, if none is given")
    parser.add_argument("--records", type=int, help=f"{RECORDS:,}, and {SHORT_RECORDS:,} for the short form")
    parser.add_argument("--rounds", type=int, help="5, and 2 for the short form")
    parser.add_argument("--short", action="store_true", help="a tenth of the records, two rounds")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no case after so many minutes")
    parser.add_argument("--publish", action="store_true", help="write RESULTS.md and docs/speed.md")
    options = parser.parse_args()
    for name in options.what:
        if name in LONG:
            importlib.import_module(f"benchmarks.long.{name}").measure()
    wanted = [name for name in options.what or names if name in names]
    if wanted:
        _table(options, wanted)


def _table(options: argparse.Namespace, wanted: list[str]) -> None:
    records = options.records or (SHORT_RECORDS if options.short else RECORDS)
    rounds = options.rounds or (2 if options.short else 5)
    version = commit()
    file = RESULTS / f"{version}-{records}.jsonl"
    if version.endswith("changed"):  # what was measured before was measured on other code
        file.unlink(missing_ok=True)
    kept = Kept(file)
    chosen = [topic for topic in topics(records) if topic.name in wanted]
    run_rounds(chosen, kept, rounds, time.monotonic() + options.minutes * 60, lambda line: print(line, flush=True))
    made_on = {"sessionkit": version, **machine()}
    page = write(Path(__file__).parent if options.publish else RESULTS, chosen, kept, made_on)
    if options.publish:
        publish(chosen, kept, made_on)
    print(f"the results are in {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
