"""Outgoing connections to Kafka servers, and their security."""
