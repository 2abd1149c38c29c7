"""Which records moved stream time, and what came too late because of them."""
