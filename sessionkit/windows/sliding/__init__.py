"""Sliding windows: parameters, processor, and the kernel that finds finals without expanding the overlap."""
