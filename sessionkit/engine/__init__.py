"""Runs a kind of window over a batch of records, by its kernel or by its processor."""
