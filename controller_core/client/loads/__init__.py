"""Loads of a cluster: the sizes of its partitions, the bytes that producers write, and the room on brokers' disks."""
