"""The Spark session of all tests, in this process and in those that are to be killed."""

import os
import sys
from pathlib import Path

from tests.optional import SparkSession

OWN_SPARK = "spark of their own"  # the group of tests whose Spark no other test uses

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # a query over few rows takes longer to compile than to run
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # the default one starts ten programs a micro-batch, such as readlink
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.python.daemon.module": "tests.spark.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}


def without_java(folder: Path) -> dict[str, str]:
    """What to set on a machine that has every program but java, and an empty cache; JAVA_HOME is to be unset."""
    programs = folder / "programs"
    programs.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            if program.name != "java" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    return {"PATH": str(programs), "XDG_CACHE_HOME": str(folder / "cache")}


def start_spark(master: str = "local[2]", *, remote: bool = False, **options: str) -> SparkSession:
    """A local session, or one of a local server. Raises SparkUnavailable where there is no Java."""
    from pyspark.sql import SparkSession

    from sessionkit.spark.environment.java_home import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    builder = builder.remote(master) if remote else builder.master(master).appName("sessionkit tests")
    for name, value in {**OPTIONS, **options}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
