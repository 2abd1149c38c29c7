"""What takes longer, or needs a browser, and is no part of the table: `python -m benchmarks soak` and the like."""
