"""Design v2 of seed 003: brokers that elect leaders among themselves, through ZooKeeper, without any controller."""
