"""Kafka Streams' windowed aggregations in Python: exact, explained, drawn; in the notebook and on Spark."""

from sessionkit.advice.suggest import suggest_gap, suggest_grace
from sessionkit.advice.sweep import sweep
from sessionkit.aggregations.built_ins import aggregation, collect, count, first, last, max, mean, min, reduce, sum
from sessionkit.audits.audit import Audit, audit
from sessionkit.exports.export import Export
from sessionkit.plan import Plan, group_by_key
from sessionkit.records.partitioner import partition_for
from sessionkit.records.samples import load_sample
from sessionkit.run import Run
from sessionkit.sessionize import sessionize
from sessionkit.spark.checkpoint import read_state
from sessionkit.spark.kafka import from_kafka, to_kafka
from sessionkit.stores import open_store
from sessionkit.widgets import browse, play, tune, watch
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

__version__ = "0.2.0"
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
    "sessionize",
    "suggest_gap",
    "suggest_grace",
    "sum",
    "sweep",
    "to_kafka",
    "tune",
    "watch",
]


def __dir__() -> list[str]:
    """What tab completion offers: the public names, and the modules that hold errors and what can be extended."""
    return sorted([*__all__, "__version__", "aggregations", "errors", "stores", "windows"])
