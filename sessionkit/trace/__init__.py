"""What was decided, as columns, and the laws that hold for it."""
