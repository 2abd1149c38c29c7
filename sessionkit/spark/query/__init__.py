"""A streaming query as it runs: what Spark tells of each micro-batch."""
