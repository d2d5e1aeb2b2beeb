"""Single partitions are added to topics and removed from them, as seed 004 has it asked for below `/admin`."""
