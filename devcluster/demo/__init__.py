"""The main job, shown on real parts: first on brokers with Kafka's own tools, then through custom resources."""
