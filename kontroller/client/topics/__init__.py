"""Topics, and those that are marked for deletion."""
