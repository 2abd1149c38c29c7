"""Records answers of Kafka Streams: `python -m tests.differential.record suppress FILE --cases 220 --seed 22`.

Takes the drawn cases that have the field (`suppress`, `restarts`, …) and few records, and writes them with what Kafka
said, as tests/golden keeps them.
"""

import argparse
import itertools
import json
from collections.abc import Iterator

from tests.conformance.cases import open_text
from tests.differential.compare import fault_of
from tests.differential.draw import Case, draw
from tests.differential.oracle import Oracle
from tests.differential.run import why_unsupported

MOST_RECORDS = 40


def wanted(field: str, seed: int) -> Iterator[Case]:
    """The small drawn cases of a seed that have the field, without the reads at their end."""
    for index in itertools.count():
        case = draw(seed, index)
        is_told = isinstance(case["caching"], bool)  # of a limited cache Kafka does not tell evictions from commits
        if field in case and is_told and len(case["records"]) <= MOST_RECORDS and why_unsupported(case) is None:
            yield {name: value for name, value in case.items() if name != "queries"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("field")
    parser.add_argument("file")
    parser.add_argument("--cases", type=int, default=220)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    number = 0
    with Oracle() as oracle, open_text(options.file, "w") as out:
        for case in wanted(options.field, options.seed):
            kafka = oracle.ask(case)
            if fault_of(case, kafka):
                continue
            number += 1
            version = kafka.pop("kafka_version")
            expected = {name: part for name, part in kafka.items() if name != "id"}
            id = f"random-{options.field}-{number:03}"
            named = {**case, "id": id, "kafka_version": version, "expected": expected}
            print(json.dumps(named, ensure_ascii=False, separators=(",", ":")), file=out)
            if number == options.cases:
                return


if __name__ == "__main__":
    main()
