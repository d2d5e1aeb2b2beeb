"""The segments of one log and their indexes: reads, writes, truncation, and recovery after an unclean shutdown."""
