"""The picture of what went downstream for one key."""
