"""Long checks: each draws its cases from seeds, in pieces that are counted and never repeated."""
