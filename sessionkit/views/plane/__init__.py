"""The plane: the history of one key, event time across and arrival upward."""
