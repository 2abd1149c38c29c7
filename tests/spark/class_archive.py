"""Java's classes of a Spark session as one archive, with which each Spark of the tests starts in half the time.

`python -m tests.spark.class_archive` runs a batch and a stream; Java writes what they loaded as it ends.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.spark.common import BASE, collected, read_stream, records, write_files
from tests.spark.session import start_spark

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "out" / "spark.jsa"  # the Makefile has Java use it
GOAL = "-XX:ArchiveClassesAtExit"
PLAN = BASE.count()


class NoClassArchive(Exception):
    """Why there is none: the tests run without, only slower."""


def build() -> None:
    """Makes the archive where it is missing, or older than the Java or the Spark that it would be for.

    Raises:
        NoClassArchive: there is no Java, or one that cannot write it.
    """
    import pyspark

    from sessionkit.errors import SparkUnavailable
    from sessionkit.spark.environment.java_home import find_java

    try:
        java = find_java().home / "bin" / "java"
    except SparkUnavailable as error:
        raise NoClassArchive(str(error)) from error
    parts = (Path(pyspark.__file__).parent / "jars", java)
    if ARCHIVE.exists() and all(ARCHIVE.stat().st_mtime > part.stat().st_mtime for part in parts):
        return
    ARCHIVE.parent.mkdir(exist_ok=True)
    part = ARCHIVE.with_suffix(".part")
    options = f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {GOAL}="{part}"'
    command = [sys.executable, "-m", "tests.spark.class_archive"]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "SPARK_SUBMIT_OPTS": options}, capture_output=True, text=True, check=False
    )
    if ran.returncode or not part.exists():
        raise NoClassArchive((ran.stdout + ran.stderr).strip()[-1_000:])
    part.replace(ARCHIVE)


def main() -> None:
    """What most tests load."""
    spark = start_spark()
    table = records(2)
    PLAN.run(spark.createDataFrame(table)).table().toPandas()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(table, Path(folder, "in"), [len(table) // 2])
        with collected(PLAN.stream(read_stream(spark, files)).events(), Path(folder, "checkpoint")):
            pass
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.proc.stdin.close()  # tells Java to end
    gateway.proc.wait()


if __name__ == "__main__":
    main()
