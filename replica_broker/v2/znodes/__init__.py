"""What design v2 keeps in ZooKeeper, and how each of it is read and written."""
