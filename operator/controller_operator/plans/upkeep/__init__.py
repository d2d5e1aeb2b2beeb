"""Work in a Kafka cluster that the operator does without an object that asks for it."""
