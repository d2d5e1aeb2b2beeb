"""The two clusters on a ZooKeeper with certificates and logins."""

BY_KAFKA, BY_US = "/of-kafka", "/of-ours"
"""The chroot of each cluster, by its controller."""
