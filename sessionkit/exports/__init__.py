"""A plan written for other systems: Kafka Streams in Java, ksqlDB, Flink SQL, PySpark."""
