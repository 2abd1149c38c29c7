"""Results that wait before they go downstream: until their window closes, or for a time."""
