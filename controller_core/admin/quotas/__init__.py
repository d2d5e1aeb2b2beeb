"""Who may change how much of the cluster in which time, by Kafka's quotas in ZooKeeper (KIP-599)."""
