"""A cluster from its ZooKeeper: `looking` reads and watches the znodes, `decoding` parses them."""
