"""Hopping windows, one slot after the other: each record counts in a span of windows that lie side by side."""
