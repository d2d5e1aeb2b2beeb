"""What is asked about offsets of partitions: where they are, and that what is before one be deleted."""
