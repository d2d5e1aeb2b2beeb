"""Limits how much a client may change in the cluster in a time, by Kafka's quotas in ZooKeeper (KIP-599)."""
