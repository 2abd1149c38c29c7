"""A deployment without a record at a time: kernels decide, and columns tell what follows from that."""
