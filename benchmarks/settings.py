"""What the jobs and the data must agree on. Nothing is imported here: a fresh process pays for it."""

GAP, GRACE = "30m", "5m"
SLIDING_GRACE_MS = 60_000
GAP_MS, GRACE_MS = 30_000, 60_000  # of visits
