"""Adding single partitions to topics and removing them, as requested below `/admin` (seed 004)."""
