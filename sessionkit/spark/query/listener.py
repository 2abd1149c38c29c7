"""Hears what Spark tells of streaming queries. Imports pyspark; the rest of sessionkit does not need it."""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import JStreamingQueryListener, StreamingQueryListener

from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.plan import Plan
from sessionkit.spark.query.gauges import SparkGauges
from sessionkit.spark.query.progress import QueryProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEPT_QUERIES = 100  # that have ended
_LAST_WORD_S = 10.0
_listeners: WeakKeyDictionary[SparkSession, Listener] = WeakKeyDictionary()
Heard = Callable[[QueryProgress], None]


class _Progress(JStreamingQueryListener):
    """Takes the progress as JSON: field by field, as pyspark reads it, it takes 0.4 s of CPU time a micro-batch."""

    def onQueryProgress(self, jevent: Any) -> None:
        self.pylistener.take(json.loads(jevent.progress().json()))  # type: ignore[attr-defined]


class Listener(StreamingQueryListener):
    """The progress of every query of a session."""

    def __init__(self, gauges: SparkGauges | None = None) -> None:
        self._gauges = gauges
        self._queries: dict[str, QueryProgress] = {}  # by runId: a query that is started again is another run
        self._heard: dict[str, list[Heard]] = {}
        self._changed = threading.Condition()
        self.plans: dict[str, Plan] = {}  # of the runs of this session, by their names, with the zone of their times
        self.retention_ms: dict[str, int] = {}  # and for how long each keeps a window

    def onQueryStarted(self, event: Any) -> None:
        with self._changed:
            ended = [run for run, query in self._queries.items() if query.ended]
            for run in ended[:-KEPT_QUERIES]:
                del self._queries[run]
            self._queries[str(event.runId)] = QueryProgress(event.name or str(event.id)[:8])

    def onQueryProgress(self, event: Any) -> None:
        self.take(json.loads(event.progress.json))

    def onQueryIdle(self, event: Any) -> None:
        """Does nothing: no record came in."""

    def onQueryTerminated(self, event: Any) -> None:
        run = str(event.runId)
        with self._changed:
            query = self._queries.get(run)
            if query is not None:
                query.ended, query.error = True, event.exception
            self._changed.notify_all()
        self._tell(run)
        self._heard.pop(run, None)

    def take(self, progress: dict[str, Any]) -> None:
        """Takes in the progress of a micro-batch; if it is known already, nothing changes."""
        with self._changed:
            query = self._queries.get(progress["runId"])
            if query is not None:
                query.take(progress)
                if plan := self.plans.get(query.run or ""):
                    query.timezone = plan.source.timezone or "UTC"
                    query.retention_ms = self.retention_ms[query.run or ""]
            self._changed.notify_all()
        self._tell(progress["runId"])

    def note(self, query: StreamingQuery, run: str, checkpoint: str) -> None:
        """Notes of which run a query is and where its checkpoint lies."""
        known = self._queries.get(str(query.runId))
        if known is not None:
            known.run, known.checkpoint = run, checkpoint

    # ---- to ask

    def of_query(self, query: StreamingQuery) -> QueryProgress | None:
        """The progress of a query as of now; None if it was started before this session was listened to."""
        run = str(query.runId)
        last = _last_progress(query)
        if last is not None:  # Spark answers this before the listener hears of it
            self.take(last)
        with self._changed:
            known = self._queries.get(run)
            if known is not None and not query.isActive:
                self._changed.wait_for(lambda: known.ended, _LAST_WORD_S)
        return known

    def of_run(self, name: str, active: list[StreamingQuery]) -> list[QueryProgress]:
        """The progress of the queries of a run of sessionkit, the newest last."""
        for query in active:
            self.of_query(query)
        running = {str(query.runId) for query in active}
        with self._changed:
            gone = [query for run, query in self._queries.items() if run not in running]
            self._changed.wait_for(lambda: all(query.ended for query in gone), _LAST_WORD_S)
            return [query for query in self._queries.values() if query.run == name]

    def call(self, query: StreamingQuery, heard: Heard) -> None:
        """Calls `heard` whenever there is news of a query, from another thread."""
        self._heard.setdefault(str(query.runId), []).append(heard)

    def _tell(self, run: str) -> None:
        query = self._queries.get(run)
        if self._gauges is not None and query is not None and query.run is not None:
            self._gauges.show(query)
        for heard in [*self._heard.get(run, [])]:
            heard(self._queries[run])


def _last_progress(query: StreamingQuery) -> Any:
    """The progress of the last micro-batch that Spark reports, as in JSON."""
    if hasattr(query, "_jsq"):  # not through Spark Connect
        last = query._jsq.lastProgress()
        return None if last is None else json.loads(last.json())
    progress = query.lastProgress
    return json.loads(progress.json) if progress is not None and hasattr(progress, "json") else progress


def listener_of(spark: SparkSession) -> Listener:
    """The listener of a session; it starts to listen when it is first asked for."""
    if spark not in _listeners:
        java = getattr(spark, "_jvm", None)  # none through Spark Connect
        listener = _listeners[spark] = Listener(None if java is None else SparkGauges(spark.sparkContext))
        if java is not None:
            wrapper = java.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
            listener._jlistenerobj = wrapper(_Progress(listener))
        spark.streams.addListener(listener)
    return _listeners[spark]


@atexit.register
def _stop_listening() -> None:
    """Stops all listeners; else Java tells a Python that is gone that its queries have ended, on the console."""
    for spark, listener in [*_listeners.items()]:
        if getattr(getattr(spark, "_sc", None), "_jsc", None) is not None:
            with contextlib.suppress(Exception):
                spark.streams.removeListener(listener)


def progress_of(query: Any) -> tuple[Listener, QueryProgress]:
    """The progress of a query, which must run a plan of sessionkit, and who hears of it."""
    if not hasattr(query, "runId"):
        want = "a query that run.write(…) or writeStream….start() returned"
        raise InvalidArgument(problem("watch takes a streaming query", shorten(repr(query)), want))
    for listener in [*_listeners.values()]:
        found = listener.of_query(query)
        if found is not None and (found.run is not None or not found.batches):
            return listener, found
    want = "a query over what plan.stream(df) gives, started in this process"
    got = f"query {query.name or query.id}"
    raise InvalidArgument(problem("the query does not run a plan of sessionkit", got, want))
