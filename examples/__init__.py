"""Programs that show sessionkit at work beside other systems."""
