"""What `kontroller check` looks at: the API server and its resources, a Kafka cluster and its controller."""
