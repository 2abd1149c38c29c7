"""Where Spark's Python workers come from in tests: forked from a process that has loaded what all of them need."""

from pyspark.daemon import manager

import sessionkit.spark.worker.partition_processor
import sessionkit.spark.worker.stream_partition  # noqa: F401

if __name__ == "__main__":
    manager()
