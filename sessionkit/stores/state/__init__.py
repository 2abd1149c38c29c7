"""State that a plan keeps between two batches, as columns."""
