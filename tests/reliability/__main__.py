"""Long checks, in pieces that resume: `python -m tests.reliability differential --cases 100000`.

Without a name: each check until its goal. What was done is written down in out/reliability, by commit, with the seeds,
and no seed is used twice. A seed is replayed by --seed; --tell shows what was done so far, --keep puts it into done.csv
and docs/reliability.md, from where another checkout goes on. Exit status 1: something was wrong, and it is printed.
"""

import argparse
import json
import os
import sys

from tests.reliability.pieces import PAGE, Ledger, keep, load, names, run, shown_on


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=names())
    parser.add_argument("--cases", type=int, help="how many on this commit; absent: to the check's goal, over all")
    parser.add_argument("--seed", type=int, help="only this piece, in this process, not written down")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tell", action="store_true", help="only say what was done so far")
    parser.add_argument("--keep", action="store_true", help="put what was done so far into done.csv and onto the page")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    chosen = [options.name] if options.name else names()
    if options.seed is not None and options.name:
        return _replay(options.name, options.seed, options.cases, as_json=options.json)
    if options.keep:
        keep(Ledger(name) for name in chosen)
        PAGE.write_text(shown_on(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    wrong = 0
    for name in chosen:
        ledger = Ledger(name)
        if not options.tell:
            wrong += run(name, options.cases, options.processes, ledger)
        for line in ledger.table():
            print(line)
        for piece in ledger.pieces:
            for text in piece.wrong:
                print(f"\n{name} --seed {piece.seed} --cases {piece.done}, on {piece.commit}:\n{text}")
    return 1 if wrong else 0


def _replay(name: str, seed: int, cases: int | None, *, as_json: bool) -> int:
    check = load(name)
    outcome = check.check(seed, cases or check.PIECE)
    if as_json:
        print("\n" + json.dumps(outcome._asdict()))
        return 0
    print(f"{name} --seed {seed}: {outcome.done:,} cases, {len(outcome.wrong)} wrong, {outcome.noted}")
    print("\n\n".join(outcome.wrong))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
