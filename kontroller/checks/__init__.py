"""The checks of `kontroller check`: the API server and its resources, a Kafka cluster and its controller."""
