"""Alarms while the history is written: partitions without a leader or with too few in-sync replicas, and silence."""
