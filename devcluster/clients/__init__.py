"""What asks and loads real servers: znodes, Kafka's tools, requests, producers."""
