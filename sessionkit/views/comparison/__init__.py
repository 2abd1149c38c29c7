"""What changes from one run to another: records, windows, values."""
