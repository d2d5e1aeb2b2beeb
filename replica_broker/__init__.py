"""A broker of our own: it keeps replicas of partitions, follows and leads as the controller says, and serves clients."""
