"""What a streaming query does right now, in the middle of a micro-batch: what Spark tells of it when it is asked."""

from __future__ import annotations

from typing import Any, NamedTuple


class Running(NamedTuple):
    """A moment of a query.

    Args:
        is_active: a micro-batch runs.
        message: what the query does, in Spark's words.
        tasks, done: the tasks of the stages that run, and how many are done; 0 where Spark does not tell.
        records: that these tasks have read so far; 0 where Spark does not tell.
    """

    is_active: bool
    message: str
    tasks: int = 0
    done: int = 0
    records: int = 0


def running_now(query: Any) -> Running | None:
    """What a query does now; None if it cannot be asked, as it has ended or its session has."""
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
    of_query = {stage for job in tracker.getJobIdsForGroup(run) for stage in _stages(tracker, job)}
    store = context._jsc.sc().statusStore()
    for stage in set(tracker.getActiveStageIds()) & of_query:  # the jobs of a query are a group with its name
        told = tracker.getStageInfo(stage)
        if told is not None:
            tasks, done = tasks + told.numTasks, done + told.numCompletedTasks
            records += int(store.lastStageAttempt(stage).inputRecords())
    return tasks, done, records


def _stages(tracker: Any, job: int) -> list[int]:
    told = tracker.getJobInfo(job)
    return [] if told is None else list(told.stageIds)
