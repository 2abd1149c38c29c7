"""Rules by which `sessionize` cuts sessions beside the gap. Kafka has none of them: plans keep Kafka's sessions."""
