"""The ZooKeeper seam over kazoo, with the requests that kazoo lacks."""
