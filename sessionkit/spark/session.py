"""A quiet local Spark for whoever has none of their own, and a Spark whose workers have loaded what they will need."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sessionkit.errors import SparkUnavailable, install, problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sessionkit.plan import Plan

_ENOUGH_ROWS = 10_000  # for `range` to make as many tasks of as there are cores
# a quarter less time for a small file, more for a large one
QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
}


def check_pyspark() -> None:
    """Refuses to go on where there is no pyspark (`SparkUnavailable`)."""
    if find_spec("pyspark") is None:
        want = f"{install('spark')}, which also brings a Java"
        raise SparkUnavailable(problem("this job runs on Spark", "no package pyspark", want))


def start_spark(more: Mapping[str, str]) -> SparkSession:
    """A quiet local Spark on a Java that it accepts; `SparkUnavailable` where there is no pyspark or no such Java."""
    from sessionkit.spark.batch_run import BATCH_SETTINGS
    from sessionkit.spark.environment.java_home import use_java

    check_pyspark()
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python is this one
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    log = resources.files("sessionkit.spark").joinpath("_assets", "log4j2.properties")
    java_options = more.get("spark.driver.extraJavaOptions", "")
    settings = {
        **more,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log} {java_options}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        **BATCH_SETTINGS,
        "spark.sql.timestampType": "TIMESTAMP_NTZ",  # a time without a zone stays one
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[*]").appName("sessionkit")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def prepare(spark: SparkSession | None = None, *plans: Plan) -> int:
    """The number of Python workers that now have the compiled loops in memory, so that a first job need not wait.

    One job, of as many tasks as Spark has cores at this moment, runs a few records in each worker: loops that are in no
    cache are compiled. It reads and changes no setting, so that it does the same through Spark Connect, where settings
    may be refused. Executors that join later load for themselves.

    Args:
        spark: without a session this process loads them alone, as where an image or an archive is made.
        plans: those whose kinds of windows are used; without one sessions, and time and sliding windows.
    Example:
        >>> from sessionkit.spark import prepare
        >>> prepare(spark, plan)  # doctest: +SKIP
        3
    """
    from sessionkit.spark.worker.preparing import EACH_KIND, load, loaded

    kinds = tuple(dict.fromkeys(plan._complete_windows for plan in plans)) or EACH_KIND
    if spark is None:
        load(kinds)
        return 1
    from sessionkit.spark.environment.worker_python import settle_worker_python
    from sessionkit.spark.types import readable_errors
    from sessionkit.spark.worker.task_wrapper import worker_task

    settle_worker_python(spark)
    with readable_errors():
        job = spark.range(_ENOUGH_ROWS).mapInArrow(worker_task(partial(loaded, kinds)), "worker string")
        return len({row[0] for row in job.collect()})
