"""Random cases answered by sessionkit and by Kafka Streams itself, and compared field by field."""
