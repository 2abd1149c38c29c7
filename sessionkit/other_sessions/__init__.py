"""Sessions that another tool made, beside ours: where they differ, and by which rule of theirs."""
