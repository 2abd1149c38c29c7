"""What stores of every kind do the same way: what a plan binds them to, Kafka's calls, and all of it out of rows."""
