"""Parts of the records that can be looked at without the others."""
