"""The methods of `Plan` that write it for other systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

# each language is loaded when it is first asked for: few plans are ever written for another system
if TYPE_CHECKING:
    from sessionkit.base.durations import Duration
    from sessionkit.exports.export import Export
    from sessionkit.exports.request import Exportable


class Exports:
    """What `Plan` inherits: itself as code for Kafka Streams, ksqlDB, Flink and Spark.

    All take `types`, what the aggregated columns hold: "bigint", "double", "string" or "boolean" (left out: "double"
    where they are summed or compared, else "string"), `key_type`, "string", "bigint" or "bytes", and `timestamp`:
    "column" takes the event time from the plan's timestamp column in the record's value, as the plan does; "record"
    takes the record's own timestamp, as Kafka Streams does where nothing else is said. All raise
    `NotBuilt` for what has no counterpart there, such as Python functions, and `InvalidArgument` for a name, a type or
    a topic that cannot be written.
    """

    def to_java(
        self: Exportable,
        *,
        class_name: str = "WindowedAggregation",
        store: str = "rocksdb",
        retention: Duration | None = None,
        types: Mapping[str, str] | None = None,
        key_type: str = "string",
        timestamp: str = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """A complete class for Kafka Streams 4.3, in Java.

        Args:
            store: "rocksdb" or "memory".
            retention: how long its store keeps a window; by default long enough for updates equal to the plan's, and a
                day more for final results.
        Example:
            >>> print(plan.to_java().code.partition("windowedBy(")[2].splitlines()[0])
            SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(10)))
        """
        from sessionkit.exports.java import JAVA, to_java
        from sessionkit.exports.request import request_of

        request = request_of(JAVA, self, types, key_type, timestamp, input_topic, output_topic)
        return to_java(request, class_name=class_name, store=store, retention=retention)

    def to_ksql(
        self: Exportable,
        *,
        retention: Duration | None = None,
        types: Mapping[str, str] | None = None,
        key_type: str = "string",
        timestamp: str = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """Statements of ksqlDB: a stream over the topic, and a table of windows.

        Example:
            >>> print(plan.to_ksql().code.partition("WINDOW ")[2].splitlines()[0])
            SESSION (30 SECONDS, RETENTION 40001 MILLISECONDS, GRACE PERIOD 10 SECONDS)
        """
        from sessionkit.exports.ksql import KSQL, to_ksql
        from sessionkit.exports.request import request_of

        return to_ksql(
            request_of(KSQL, self, types, key_type, timestamp, input_topic, output_topic), retention=retention
        )

    def to_flink_sql(
        self: Exportable,
        *,
        types: Mapping[str, str] | None = None,
        key_type: str = "string",
        timestamp: str = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """Flink SQL: two tables over topics, and an INSERT with a window function.

        Example:
            >>> "SESSION(TABLE `records` PARTITION BY `key`" in plan.to_flink_sql().code
            True
        """
        from sessionkit.exports.flink import FLINK, to_flink_sql
        from sessionkit.exports.request import request_of

        return to_flink_sql(request_of(FLINK, self, types, key_type, timestamp, input_topic, output_topic))

    def to_spark(
        self: Exportable,
        *,
        types: Mapping[str, str] | None = None,
        key_type: str = "string",
        timestamp: str = "column",
        input_topic: str = "input",
        output_topic: str = "output",
    ) -> Export:
        """A Python module for Structured Streaming, with Spark's own windows; only `plan.run` is exact.

        Example:
            >>> 'F.session_window("event_time", "30 seconds")' in plan.to_spark().code
            True
        """
        from sessionkit.exports.request import request_of
        from sessionkit.exports.spark_code import SPARK, to_spark

        return to_spark(request_of(SPARK, self, types, key_type, timestamp, input_topic, output_topic))
