"""Programs that Spark runs on: a Java, and a Python for its workers."""
