"""Random cases through sessionkit and Kafka Streams: `python -m tests.differential --cases 20000 --seed 1`.

Exit status 0: no difference. 1: there was one; the smallest case found that shows it is printed. `--case FILE` runs
cases from a file of JSON lines ("-": the terminal) instead of random ones.
"""

import argparse
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext

from tests.differential.compare import excuses, fault_of
from tests.differential.draw import KINDS, Case, cell_of
from tests.differential.oracle import KAFKA_VERSION, Oracle, OracleFailed, OracleUnavailable
from tests.differential.run import HAVING, PLAYED, Compared, compare, drawn_cases, shrunk


class Progress:
    """One line that is written anew, or a line every ten seconds where nobody looks."""

    def __init__(self, total: int | None) -> None:
        self.total, self.start, self.last, self.done = total, time.monotonic(), 0.0, 0

    def step(self, differences: int) -> None:
        self.done += 1
        now, is_seen = time.monotonic(), sys.stderr.isatty()
        if now - self.last >= (0.5 if is_seen else 10):
            self.last = now
            rate = self.done / max(now - self.start, 1e-9)
            of = "" if self.total is None else f" of {self.total}"
            line = f"{self.done}{of} cases, {differences} differences, {rate:.0f} a second"
            print(f"\r{line}\x1b[K" if is_seen else line, end="" if is_seen else "\n", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2000, help="how many cases to compare")
    parser.add_argument("--seed", type=int, help="the same seed draws the same cases; absent: a new one")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--having", choices=tuple(HAVING), help="only cases that have this")
    parser.add_argument("--stop-after", type=int, default=1, metavar="N", help="stop at the Nth difference")
    parser.add_argument("--kafka", default=KAFKA_VERSION, help="the version of Kafka Streams that is asked")
    parser.add_argument("--case", metavar="FILE", help="cases from a file instead of random ones")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    skipped: dict[str, int] = {}
    kinds = tuple(kind for kind in KINDS if kind in options.kinds)
    cases: Iterable[Case] = drawn_cases(seed, kinds, options.cases, skipped, options.having)
    if options.case is not None:
        with nullcontext(sys.stdin) if options.case == "-" else open(options.case, encoding="utf-8") as lines:
            cases = [json.loads(line) for line in lines if line.strip()]
    try:
        total = None if options.case else options.cases
        return _run(cases, total, seed, skipped, options.stop_after, options.kafka)
    except (OracleUnavailable, OracleFailed) as error:
        print(error, file=sys.stderr)
        return 2


def _until(cases: Iterable[Case], is_over: Callable[[], bool]) -> Iterator[Case]:
    for case in cases:
        if is_over():
            return
        yield case


def _run(
    cases: Iterable[Case], total: int | None, seed: int, skipped: dict[str, int], stop_after: int, version: str
) -> int:
    progress, by_cell, wrong, faults = Progress(total), Counter[str](), Counter[str](), Counter[str]()
    different: list[Compared] = []
    passed_over: Counter[str] = Counter()
    with Oracle(version=version) as oracle:
        for case, kafka in oracle.answers(_until(cases, lambda: len(different) >= stop_after)):
            if len(different) >= stop_after:
                continue  # was under way already
            compared = compare(case, kafka)
            by_cell[str(cell_of(case))] += 1
            faults[fault_of(case, kafka) or ""] += 1
            passed_over.update(excuses(case, compared.ours, kafka))
            if compared.difference is not None:
                different.append(compared)
                wrong[str(cell_of(case))] += 1
            progress.step(len(different))
        elapsed = time.monotonic() - progress.start
        print(file=sys.stderr)
        for cell, count in sorted(by_cell.items()):
            print(f"{cell:40} {count:6}" + (f"  {wrong[cell]} differ" if wrong[cell] else ""))
        for reason, count in sorted(skipped.items()):
            print(f"not supported yet: {reason} ({count})")
        for fault, count in sorted(faults.items()):
            if fault:
                print(f"Kafka failed by a fault of its own, compared up to there: {count} times {fault}")
        for name, count in sorted(passed_over.items()):
            print(f"reads that Kafka itself answers wrongly, as its own full scan says: {name} ({count})")
        for kind, count in sorted(PLAYED.items()):
            print(f"played by kernels as well: {kind} ({count})")
        print(f"{progress.done} cases, {len(different)} differences, seed {seed}, {elapsed:.0f} s")
        for compared in different[:stop_after]:
            print(f"\n{compared.case['id']}, made smaller:\n{shrunk(compared, oracle)}")
    return 1 if different or not progress.done else 0


if __name__ == "__main__":
    sys.exit(main())
