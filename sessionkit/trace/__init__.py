"""The decisions of a run as columns, and the laws that hold for them."""
