"""Window kinds: for each its parameters, its processor step and its kernel step."""
