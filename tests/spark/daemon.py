"""Where Spark's Python workers come from in tests: forked from a process that has loaded what all of them need.

pyspark looks for garbage after each task, of which a test has hundreds, but not among what is frozen before the fork.
"""

import gc

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import sessionkit.spark.worker.partition_processor
import sessionkit.spark.worker.stream_partition  # noqa: F401
from tests.kinds import EACH_KIND, load_loops

if __name__ == "__main__":
    for kind in EACH_KIND:
        load_loops(kind)
    gc.collect()
    gc.freeze()
    manager()
