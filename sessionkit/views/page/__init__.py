"""A page with sliders that recompute a run in the browser: which records it carries, and how it is written."""
