"""A cluster as its ZooKeeper says it: `looking` reads and watches the znodes, `decoding` says what they come to."""
