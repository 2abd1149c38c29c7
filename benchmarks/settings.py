"""What the jobs and the data must agree on. Nothing is imported here: a fresh process pays for it."""

GAP, GRACE = "30m", "5m"
SLIDING_GRACE_MS = 60_000
