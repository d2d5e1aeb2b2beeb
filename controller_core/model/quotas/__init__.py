"""Quotas of what clients change in the cluster (KIP-599): whose counts for whom, and what is left of it."""
