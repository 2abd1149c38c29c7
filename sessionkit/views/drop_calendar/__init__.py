"""What the clocks of a run show: when records were dropped, and how far the stream time of each partition is."""
