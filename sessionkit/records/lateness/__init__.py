"""Why many records come too late: their order, their clocks, their sources."""
