"""Kafka Streams' windowed aggregations in Python: exact, explained, drawn; in the notebook and on Spark."""
