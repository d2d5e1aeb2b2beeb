"""The main tasks on real servers: first with Kafka's own tools, then with custom resources."""
