"""Suppress on a stream: its buffer is kept in Spark's state, and goes on where the query stopped."""

from pathlib import Path

import pytest

import sessionkit as sk
from tests.optional import SparkSession
from tests.spark.common import (
    WINDOWS,
    plan_of,
    read_stream,
    records,
    run_through,
    write_files,
)

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark


def test_x(spark: SparkSession, tmp_path: Path) -> None:
    table = records(2).slice(0, 600)
    base = plan_of(WINDOWS["session"], "on_window_update")
    for first, other in ((base, base.suppress("until_window_closes")), (base.suppress("until_window_closes"), base)):
        folder = write_files(table.slice(0, 300), tmp_path / f"in{id(first)}", [150])
        check = tmp_path / f"check{id(first)}"
        run_through(first.stream(read_stream(spark, folder)).events(), check)
        rest = write_files(table.slice(300), tmp_path / f"rest{id(first)}", []) / "00000.parquet"
        rest.rename(folder / "later.parquet")
        try:
            run_through(other.stream(read_stream(spark, folder)).events(), check)
        except Exception as e:
            print(type(e), str(e)[:3000])
        print(sk.read_state(check).count(), len(sk.open_store("spark", checkpoint=check)))
