"""Python workers between their tasks."""

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from sessionkit.spark.worker.task_wrapper import worker_task
from tests.optional import SparkSession

pytestmark = pytest.mark.spark


def test_what_a_worker_has_loaded_is_no_garbage_to_look_for(spark: SparkSession) -> None:
    """pyspark collects garbage after each task; what is frozen is left out."""

    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})

    def run() -> int:
        return int(spark.range(1).mapInArrow(worker_task(frozen), "frozen long").collect()[0][0])

    assert max(run() for _ in range(4)) > 10_000
