"""What went downstream for one key, what was taken back, and what is pending."""
