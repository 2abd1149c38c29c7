"""What only a deployment of Kafka Streams has: its settings, its rules record by record, its restarts and caches."""
