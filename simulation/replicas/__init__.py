"""The disk and network of a reference broker's replicas, in memory."""
