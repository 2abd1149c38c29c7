"""Stores on disk: rows of bytes in RocksDB, in segments of time."""
