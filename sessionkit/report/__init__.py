"""The report: the job that makes it, and its page."""

from sessionkit.report.job import Progress
from sessionkit.spark.session import QUICK_START, start_spark

__all__ = ["QUICK_START", "Progress", "start_spark"]
