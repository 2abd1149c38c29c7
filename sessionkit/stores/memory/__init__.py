"""Stores in memory: a sorted map from time to key, or columns behind it."""
