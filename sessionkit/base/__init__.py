"""What everything stands on: words and escaping, lengths of time, compiling, the codes of decisions, assets."""
