"""What need not be installed: types of Spark and of a browser, for annotations alone, and approximate counts."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator, Page
    from pyspark.sql import DataFrame, SparkSession

    from sessionkit.aggregations.contract import Aggregation
else:
    Browser = Dialog = Locator = Page = DataFrame = SparkSession = Aggregation = Any

__all__ = ["HAS_SKETCHES", "Browser", "DataFrame", "Dialog", "Locator", "Page", "SparkSession", "nearly"]

HAS_SKETCHES = find_spec("datasketches") is not None  # it has no wheels for Python 3.14


def nearly(column: str) -> dict[str, Aggregation]:
    """An approximate count of different values by the name `nearly`; nothing where its package is not installed."""
    import sessionkit as sk  # not above: loops are interpreted or not by what was set before

    return {"nearly": sk.count_distinct(column, approx=True)} if HAS_SKETCHES else {}
