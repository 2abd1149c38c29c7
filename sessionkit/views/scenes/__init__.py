"""What is to be drawn, before anything is drawn: rows of keys, histories, scenes."""
