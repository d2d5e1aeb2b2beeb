"""Commands of design v2, which has nobody but ZooKeeper to ask."""
