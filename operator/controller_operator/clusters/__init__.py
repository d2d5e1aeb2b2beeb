"""One Kafka cluster each: what is seen of it and what is done to it, with ZooKeeper or without. Plans do not know which.

`cluster` is the seam, `with_zookeeper` and `without_zookeeper` are its two sides, `pool` holds one of either per address.
"""
