"""In how many partitions a new query keeps its state: Spark fixes the number when the query first starts."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sessionkit.base.calls import level_of_user
from sessionkit.base.text import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING, SPARKS_OWN = "spark.sql.shuffle.partitions", 200
FEWEST_ON_A_CLUSTER = 16  # which may show few of its cores at first, and grow
MOST = 128  # each is a task and files of its own in every micro-batch
_STARTING = threading.Lock()


def is_chosen(spark: SparkSession) -> bool:
    """Whether the user set the number."""
    return SETTING in spark.conf.getAll


def suggested(spark: SparkSession) -> tuple[int, str]:
    """A number for the cores that Spark has, and what it is for, in words.

    A power of 2: source partitions then spread evenly, as their places among the partitions of the state are hashed.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:  # through Spark Connect
        return FEWEST_ON_A_CLUSTER, "for a server whose cores are not known here"
    cores = int(context.defaultParallelism)
    fewest = 1 if context.master.startswith("local") else FEWEST_ON_A_CLUSTER
    return min(MOST, max(fewest, 1 << (cores - 1).bit_length())), f"for {plural(cores, 'core')}"


def choice_in_words(spark: SparkSession) -> str:
    """The end of `repr(run)`: what `write` will choose; nothing where the user chose, or where Spark has stopped."""
    context: Any = getattr(spark, "_sc", None)
    is_stopped = context is not None and context._jsc is None
    if is_stopped or is_chosen(spark):
        return ""
    number, why = suggested(spark)
    return f" · a new query started by write() keeps it in {plural(number, 'state partition')}, {why}"


@contextmanager
def chosen_for_start(spark: SparkSession) -> Iterator[None]:
    """A query that is started herein has the suggested number, unless the user set one or its checkpoint has one."""
    with _STARTING:
        if is_chosen(spark):
            yield
            return
        spark.conf.set(SETTING, suggested(spark)[0])
        try:
            yield
        finally:
            spark.conf.unset(SETTING)


def warn_of_default(spark: SparkSession) -> None:
    """Says what to set before a query that the user starts; a query that runs already keeps its number."""
    if is_chosen(spark):
        return
    number, why = suggested(spark)
    text = (
        f"a new query would keep its state in {SPARKS_OWN} partitions for ever, Spark's default, and each costs time "
        f'in every micro-batch.\nBefore its first start call spark.conf.set("{SETTING}", {number}) ({why}), or start '
        "it with run.write(…), which does this."
    )
    warnings.warn(text, stacklevel=level_of_user())
