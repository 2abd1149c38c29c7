"""`python -m tests.tools`: gets and builds what the tests need beside Python packages, before they share the machine.

Each part is got once. Where a tool is missing it says so and goes on: the tests that need it are skipped.
"""

import multiprocessing
import sys
from collections.abc import Callable

from examples.kafka.jars import Missing, broker_jars
from tests.differential.oracle import OLDER_VERSIONS, OracleUnavailable, build
from tests.kinds import EACH_KIND, load_loops
from tests.spark import class_archive


def main() -> None:
    get("Kafka's jars", broker_jars)
    get("the program that asks Kafka Streams", build)
    get("the same for an older one", lambda: build(OLDER_VERSIONS[-1]))
    get("an archive of Spark's classes", class_archive.build)
    # several processes that meet a loop for the first time would each compile it
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(load_loops, EACH_KIND, chunksize=1)


def get(what: str, step: Callable[[], object]) -> None:
    try:
        step()
    except (Missing, OracleUnavailable, class_archive.NoClassArchive) as error:
        print(f"without {what}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
