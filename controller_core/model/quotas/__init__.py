"""Quotas on changes of the cluster (KIP-599): the quota of a client, and its remaining tokens."""
