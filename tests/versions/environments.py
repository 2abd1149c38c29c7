"""The versions that `make versions` runs tests with, and those that it only resolves; docs/versions.md names them."""

from typing import NamedTuple


class Environment(NamedTuple):
    """One Python with one pandas and one PySpark."""

    python: str
    pandas: str
    pyspark: str

    @property
    def name(self) -> str:
        """The name of its folder in out/versions."""
        return f"python{self.python}-pandas{self.pandas}-spark{self.pyspark}"


LOCKED = Environment("3.11", "2.3", "4.2.1")
ENVIRONMENTS = (
    LOCKED,
    Environment("3.11", "3.1", "4.3.0"),
    Environment("3.12", "3.1", "4.2.1"),
    Environment("3.13", "2.3", "4.3.0"),
)
RESOLVED_ONLY = ("3.14", "3.15")

# What pandas, Spark or Python decide: inputs, tables, changelogs, drops, `sessionize`, recorded answers; then Spark.
LOCAL_TESTS = (
    "tests/unit/records", "tests/unit/views/test_tables.py", "tests/unit/other_sessions", "tests/unit/test_mistakes.py",
    "tests/conformance",
)  # fmt: skip
SPARK_TESTS = ("tests/spark/test_spark_batch.py", "tests/spark/test_spark_stream.py", "tests/spark/test_sessionize.py")
KAFKA_TESTS = ("tests/differential/test_versions.py",)
