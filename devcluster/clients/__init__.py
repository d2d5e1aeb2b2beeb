"""Clients of real servers: znodes, Kafka's tools, single requests, producers."""
