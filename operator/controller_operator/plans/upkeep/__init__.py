"""What the operator puts in order in a Kafka cluster without being asked by an object."""
