"""Asks the brokers of a cluster without ZooKeeper again and again, and makes views of what they say (`views`)."""
