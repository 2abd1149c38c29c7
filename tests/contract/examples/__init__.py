"""Four things that sessionkit has not, each in one file, written by nothing but its contracts."""
