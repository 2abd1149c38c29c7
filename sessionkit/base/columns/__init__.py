"""Columns of numbers and words, as NumPy and Arrow hold them."""
