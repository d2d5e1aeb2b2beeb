"""The two clusters on a ZooKeeper that wants certificates and logins."""

BY_KAFKA, BY_US = "/of-kafka", "/of-ours"
"""The chroot of each, by who is its controller."""
