"""A user's rows become checked columns: keys, times, partitions, offsets, values."""
