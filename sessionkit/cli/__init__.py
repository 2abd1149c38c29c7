"""The command line: what it asks for, and what it says."""
