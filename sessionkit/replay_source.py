"""The public path of the replay source: `spark.dataSource.register(ReplaySource)`."""

from sessionkit.spark.reading.replay_source import ReplaySource

__all__ = ["ReplaySource"]
