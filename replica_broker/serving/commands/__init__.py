"""What the controller commands, in each version that one of ZooKeeper's times may send it in, and what the coordinators of
transactions do."""
