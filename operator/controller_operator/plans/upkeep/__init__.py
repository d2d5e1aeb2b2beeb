"""Work in a Kafka cluster that the operator does without being asked by an object."""
