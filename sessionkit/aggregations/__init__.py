"""What a window computes: the aggregations that there are, the contract of one, and the folds that run them."""

from sessionkit.aggregations.contract import BUILT_INS, Aggregation, Part, built_in

__all__ = ["BUILT_INS", "Aggregation", "Part", "built_in"]
