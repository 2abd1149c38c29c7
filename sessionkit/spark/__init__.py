"""Plans at scale, with the results of a run in one process: Spark reads, shuffles, keeps the state and tries again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessionkit.spark.batch_run import BATCH_SETTINGS
    from sessionkit.spark.types import readable_errors

__all__ = ["BATCH_SETTINGS", "readable_errors"]


def __getattr__(name: str) -> Any:
    """What users import from here, loaded when it is asked for: Spark's workers load this folder, too."""
    if name == "BATCH_SETTINGS":
        from sessionkit.spark.batch_run import BATCH_SETTINGS

        return BATCH_SETTINGS
    if name == "readable_errors":
        from sessionkit.spark.types import readable_errors

        return readable_errors
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
