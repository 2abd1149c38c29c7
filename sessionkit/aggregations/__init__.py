"""What a window computes: the aggregations that there are, the contract of one, and the folds that run them."""

import sessionkit.aggregations.built_ins
import sessionkit.aggregations.of_times
import sessionkit.aggregations.of_values  # noqa: F401
from sessionkit.aggregations.contract import BUILT_INS, Aggregation, Part, built_in

__all__ = ["BUILT_INS", "Aggregation", "Part", "built_in"]
