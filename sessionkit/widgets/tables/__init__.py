"""Tables one can look into: what a run found, sorted, filtered and paged where the data is."""
