"""Runs that keep no trace, cut into bands of keys that are decided one by one."""
