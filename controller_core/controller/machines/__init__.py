"""The state machines of partitions and replicas: each transition's effects on ZooKeeper, the state and the brokers."""
