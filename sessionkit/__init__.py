"""Kafka Streams' windowed aggregations in Python: exact, explained, drawn; in the notebook and on Spark."""

from sessionkit.aggregations import aggregation, collect, count, first, last, max, mean, min, reduce, sum
from sessionkit.auditing import Audit, audit
from sessionkit.choosing import suggest_gap, suggest_grace
from sessionkit.exports.export import Export
from sessionkit.kafka import from_kafka, to_kafka
from sessionkit.partitioner import partition_for
from sessionkit.plan import Plan, group_by_key
from sessionkit.run import Run
from sessionkit.samples import load_sample
from sessionkit.spark_store import read_state
from sessionkit.stores import open_store
from sessionkit.sweeping import sweep
from sessionkit.widgets import browse, play, tune, watch
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding import SlidingWindows
from sessionkit.windows.timed import TimeWindows

__version__ = "0.1.0"
__all__ = [
    "Audit",
    "Export",
    "Plan",
    "Run",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "aggregation",
    "audit",
    "browse",
    "collect",
    "count",
    "first",
    "from_kafka",
    "group_by_key",
    "last",
    "load_sample",
    "max",
    "mean",
    "min",
    "open_store",
    "partition_for",
    "play",
    "read_state",
    "reduce",
    "suggest_gap",
    "suggest_grace",
    "sum",
    "sweep",
    "to_kafka",
    "tune",
    "watch",
]
