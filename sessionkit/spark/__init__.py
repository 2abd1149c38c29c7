"""Plans at scale, with the results of a run in one process: Spark reads, shuffles, keeps the state and tries again."""

from typing import TYPE_CHECKING

import lazy_loader  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from sessionkit.spark.batch_run import BATCH_SETTINGS
    from sessionkit.spark.session import prepare
    from sessionkit.spark.types import readable_errors

__all__ = ["BATCH_SETTINGS", "prepare", "readable_errors"]
_OFFERED = {"batch_run": ["BATCH_SETTINGS"], "session": ["prepare"], "types": ["readable_errors"]}
# loaded when they are asked for: Spark's workers load this folder, too
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs=_OFFERED)
