"""Data that a user gives, opened as a table: each kind of frame, of file, and of plain Python values."""
