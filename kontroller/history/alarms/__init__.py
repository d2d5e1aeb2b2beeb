"""What is wrong for too long while the history is written: partitions without a leader or too few in sync; silence."""
