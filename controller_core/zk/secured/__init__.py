"""A ZooKeeper that wants to know who comes: how a connection is secured, and which ACLs znodes get."""
