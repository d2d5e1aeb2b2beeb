"""Where lines come from, as they are written: folders, what controllers serve, a topic."""
