"""Pictures of clocks: a calendar of drops, and the stream times of partitions beside each other."""
