"""A real Kafka on this machine, and Spark between two of its topics."""
