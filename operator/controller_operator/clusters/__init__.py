"""One Kafka cluster each: its observation and the steps on it, with or without ZooKeeper. Plans do not know which.

`cluster` is the seam, `with_zookeeper` and `without_zookeeper` are its two sides, `pool` holds one of either per
address.
"""
