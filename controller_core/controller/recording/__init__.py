"""What is recorded of state changes: in the journal, for the history, and in the log, for people."""
