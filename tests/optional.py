"""Types of Spark and of a browser, for annotations alone: neither package need be installed, and none is loaded."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator, Page
    from pyspark.sql import DataFrame, SparkSession
else:
    Browser = Dialog = Locator = Page = DataFrame = SparkSession = Any

__all__ = ["Browser", "DataFrame", "Dialog", "Locator", "Page", "SparkSession"]
