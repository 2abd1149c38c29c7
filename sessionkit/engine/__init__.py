"""Runs a kind of window over a batch of records by its kernel, and commits what stays open."""
