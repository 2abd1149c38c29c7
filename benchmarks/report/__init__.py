"""The results as pages and charts."""
