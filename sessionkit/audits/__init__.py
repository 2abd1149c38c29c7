"""How the results of a Kafka Streams deployment differ from those that they should be."""
