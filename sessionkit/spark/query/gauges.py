"""The numbers of streaming queries as gauges of Spark's metrics system, which Prometheus, JMX and others read."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError

from sessionkit.spark.query.progress import QueryProgress

_SOURCE = "org.apache.spark.metrics.source.LongAccumulatorSource$"  # where Spark takes gauges that are not its own


def gauges_of(progress: QueryProgress) -> dict[str, int]:
    """The counters of a query by Kafka's names, and what is known of its last micro-batch.

    Example:
        >>> gauges_of(QueryProgress("clicks"))
        {'windows': 0, 'windows-open': 0, 'windows-closed': 0, 'windows-in-state': 0, 'running': 1, 'failed': 0}
    """
    found = {**progress.counts(), "windows-in-state": progress.windows}
    if progress.batches:
        last = progress.batches[-1]
        found |= {"batch": last.number, "batch-records": last.records, "batch-duration-ms": round(last.seconds * 1000)}
        found |= {"state-bytes": last.state_bytes, **({} if last.behind is None else {"records-lag": last.behind})}
    if progress.partitions:
        times = [each.stream_time_ms for each in progress.partitions.values()]
        found |= {"stream-time-ms": min(times), "stream-time-apart-ms": max(times) - min(times)}
    return {**found, "running": int(not progress.ended), "failed": int(progress.error is not None)}


class SparkGauges:
    """Gauges by the names of queries: one that is started again under its name goes on with those that it had."""

    def __init__(self, context: Any) -> None:
        self._scala, self._java = context._jsc.sc(), context._jvm
        self._gauges: dict[str, Any] = {}
        self._alone = threading.Lock()  # Spark tells of a micro-batch in one thread, and a notebook asks in another

    def show(self, progress: QueryProgress) -> None:
        """Sets the gauges of a query, and makes those that it does not have yet."""
        query = re.sub(r"\W", "_", progress.name)
        values = {f"sessionkit.{query}.{name}": value for name, value in gauges_of(progress).items()}
        with self._alone, suppress(Py4JError, OSError):  # the session has ended: nobody looks at its gauges
            self._register(values)
            for name, value in values.items():
                self._gauges[name].setValue(value)

    def _register(self, values: Mapping[str, int]) -> None:
        made = {name: self._scala.longAccumulator(name) for name in values if name not in self._gauges}
        if made:
            as_java = self._java.java.util.HashMap()
            for name, gauge in made.items():
                as_java.put(name, gauge)
            source = self._java.java.lang.Class.forName(_SOURCE).getField("MODULE$").get(None)
            source.register(self._scala, self._java.PythonUtils.toScalaMap(as_java))
            self._gauges |= made
