"""Do the tests notice a change of the code? Mutants of windows/, stores/, aggregations/ and engine/: `make mutants`."""
