"""Alarms on partitions without a leader or with too few replicas in sync, while the history is being written."""
