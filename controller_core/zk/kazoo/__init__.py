"""The ZooKeeper interface over kazoo, with the requests that kazoo lacks."""
