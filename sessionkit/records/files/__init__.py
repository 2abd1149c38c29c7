"""Records from files, each kind as it is read: Parquet, and text."""
