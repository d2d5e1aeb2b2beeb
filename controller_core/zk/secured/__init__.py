"""Access to a secured ZooKeeper: how a connection is secured, and which ACLs znodes get."""
