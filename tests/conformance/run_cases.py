"""Answers cases in the oracle's format: `python tests/conformance/run_cases.py CASES RESULTS [--implementation …]`.

CASES and RESULTS are JSON lines, through gzip where the name ends in .gz; "-" is the terminal. One line comes out for
each case; a case of a kind that is not built yet gets {"id", "unsupported"}. Exit status 0: every case got its line.
"""

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.cases import open_text, read_cases, run_case, unsupported


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases")
    parser.add_argument("results")
    parser.add_argument("--implementation", choices=["processor", "kernel"], default="processor")
    options = parser.parse_args(arguments)
    with nullcontext(sys.stdout) if options.results == "-" else open_text(options.results, "w") as out:
        for case in read_cases(options.cases):
            reason = unsupported(case)
            result = {"id": case["id"], "unsupported": reason} if reason else run_case(case, options.implementation)
            print(json.dumps(result, ensure_ascii=False), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
