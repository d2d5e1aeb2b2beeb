"""What the controller commands, in each version that a controller of ZooKeeper's times may send it in."""
