"""One decision in words: a record's, a window's, a deployment's."""
