"""How many tasks of Spark's jobs are done, while an action waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event, Thread

from pyspark.sql import SparkSession

from sessionkit.base.progress import AFTER_S, EVERY_S, Reached, calls, progress


@contextmanager
def job_progress() -> Iterator[None]:
    """Shows how far the jobs are that are started meanwhile; a session through Spark Connect shows them by itself."""
    spark = SparkSession.getActiveSession() if calls.are_shown else None
    if spark is None or not hasattr(spark, "_jsc"):
        yield
        return
    ended = Event()
    with progress("waiting for Spark") as reached:
        looking = Thread(target=copy_context().run, args=(_look, spark, reached, ended), daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()


def _look(spark: SparkSession, reached: Reached, ended: Event) -> None:
    tracker, wait_s = spark.sparkContext.statusTracker(), AFTER_S
    while not ended.wait(wait_s):
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
        done, count = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
        reached(0, f"waiting for Spark, {done:,} of {count:,} tasks done" if count else "waiting for Spark")
        wait_s = EVERY_S
