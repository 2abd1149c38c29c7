"""What a streaming query does right now, in the middle of a micro-batch: what Spark tells of it when it is asked."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sessionkit.base.calls import level_of_user
from sessionkit.base.text import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Running(NamedTuple):
    """A moment of a query; its numbers are 0 where Spark does not tell them."""

    is_active: bool  # a micro-batch runs
    message: str  # the query's work, in Spark's words
    tasks: int = 0  # of the stages that run
    done: int = 0  # of these tasks
    records: int = 0  # that these tasks have read so far


def running_now(query: Any) -> Running | None:
    """The current work of a query; None if it cannot be asked, as it has ended or its session has."""
    try:
        if not query.isActive:
            return None
        status = query.status
        return Running(bool(status["isTriggerActive"]), str(status["message"]), *_tasks(str(query.runId)))
    except Exception:  # whatever a session that is going down answers: what it does is no longer of interest
        return None


def _tasks(run: str) -> tuple[int, int, int]:
    """(tasks, those done, records read) of the stages that run for a query; zeros through Spark Connect."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return 0, 0, 0
    tracker, tasks, done, records = context.statusTracker(), 0, 0, 0
    jobs = [job for number in tracker.getJobIdsForGroup(run) if (job := tracker.getJobInfo(number)) is not None]
    of_query = {stage for job in jobs for stage in job.stageIds}
    store = context._jsc.sc().statusStore()
    for stage in set(tracker.getActiveStageIds()) & of_query:  # the jobs of a query are a group with its name
        facts = tracker.getStageInfo(stage)
        if facts is not None:
            tasks, done = tasks + facts.numTasks, done + facts.numCompletedTasks
            records += int(store.lastStageAttempt(stage).inputRecords())
    return tasks, done, records


# ---- partitions of a new query's state: Spark fixes their number when the query first starts


SETTING, SPARKS_OWN = "spark.sql.shuffle.partitions", 200
FEWEST_ON_A_CLUSTER = 16  # which may show few of its cores at first, and grow
MOST = 128  # each is a task and files of its own in every micro-batch
_STARTING = threading.Lock()


def is_chosen(spark: SparkSession) -> bool:
    """Whether the user set the number of partitions."""
    return SETTING in spark.conf.getAll


def cores_at_least(spark: SparkSession) -> int:
    """The cores that Spark shows, and more on a cluster that may show few of them yet, or through Spark Connect."""
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        return FEWEST_ON_A_CLUSTER
    cores = int(context.defaultParallelism)
    return cores if context.master.startswith("local") else max(cores, FEWEST_ON_A_CLUSTER)


def suggested(spark: SparkSession) -> tuple[int, str]:
    """A number for the cores that Spark has, and what it is for, in words.

    A power of 2: source partitions then spread evenly, as their places among the partitions of the state are hashed.
    """
    context: Any = getattr(spark, "_sc", None)
    number = min(MOST, 1 << (cores_at_least(spark) - 1).bit_length())
    if context is None:  # through Spark Connect
        return number, "for a server whose cores are not known here"
    return number, f"for {plural(int(context.defaultParallelism), 'core')}"


def choice_in_words(spark: SparkSession) -> str:
    """The end of `repr(run)`: what `write` will choose; nothing where the user chose, or where Spark has stopped."""
    context: Any = getattr(spark, "_sc", None)
    is_stopped = context is not None and context._jsc is None
    if is_stopped or is_chosen(spark):
        return ""
    number, why = suggested(spark)
    return f" · a new query started by write() keeps it in {plural(number, 'state partition')}, {why}"


@contextmanager
def chosen_for_start(spark: SparkSession) -> Iterator[None]:
    """Gives a query started inside the block the suggested number, unless the user or its checkpoint set one."""
    with _STARTING:
        if is_chosen(spark):
            yield
            return
        spark.conf.set(SETTING, suggested(spark)[0])
        try:
            yield
        finally:
            spark.conf.unset(SETTING)


def warn_of_default(spark: SparkSession) -> None:
    """Says what to set before a query that the user starts; a query that runs already keeps its number."""
    if is_chosen(spark):
        return
    number, why = suggested(spark)
    text = (
        f"a new query would keep its state in {SPARKS_OWN} partitions for ever, Spark's default, and each costs time "
        f'in every micro-batch.\nBefore its first start call spark.conf.set("{SETTING}", {number}) ({why}), or start '
        "it with run.write(…), which does this."
    )
    warnings.warn(text, stacklevel=level_of_user())
