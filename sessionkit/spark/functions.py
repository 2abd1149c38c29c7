"""Spark's functions of columns, loaded when the first of them is asked for: this package imports without Spark."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.functions import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        from pyspark.sql import functions

        return getattr(functions, name)
