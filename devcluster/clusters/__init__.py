"""Real servers on loopback: ZooKeeper, Kafka, our controller, Kubernetes."""
