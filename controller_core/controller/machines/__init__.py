"""The state machines of partitions and replicas: what each transition does to ZooKeeper, the state and the brokers."""
