"""When records were dropped: a calendar by the clocks of a zone, and the times that are usual."""
