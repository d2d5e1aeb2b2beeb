"""Records of state changes: the journal for the history, and the log for people."""
