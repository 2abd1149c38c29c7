"""What a deployment of Kafka Streams does with the records."""
