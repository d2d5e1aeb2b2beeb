"""Polls the brokers of a cluster without ZooKeeper, and makes views of their answers (`views`)."""
