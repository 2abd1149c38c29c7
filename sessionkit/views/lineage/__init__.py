"""Which sessions became one, which record merged them, and when."""
