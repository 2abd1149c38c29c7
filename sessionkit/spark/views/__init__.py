"""Views over all keys of a run on Spark."""
