"""What is measured, a topic a section of the results, in their order."""

from __future__ import annotations

from benchmarks.model import Topic
from benchmarks.topics import drawn, growth, length, nexmark, sessions, spark, starts, views, windows


def topics(records: int) -> tuple[Topic, ...]:
    """All topics; `records` is the size of the largest data that peers have to read too."""
    return (
        sessions.topic(records),
        starts.topic(records),
        windows.time_topic(records),
        windows.sliding_topic(records // 10),
        windows.deployed_topic(records),
        sessions.doors_topic(records),
        sessions.rules_topic(records),
        sessions.values_topic(records),
        sessions.memory_topic(3 * records),
        sessions.states_topic(records),
        views.topic(records),
        drawn.topic(records // 5),
        nexmark.topic(10 * records),
        length.topic(),
        growth.topic(records // 5),
        spark.batch_topic(),
        spark.stream_topic(),
    )
