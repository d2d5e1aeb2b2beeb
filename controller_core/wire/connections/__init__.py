"""Connections that we open to servers of Kafka: how each is secured, and how that is done."""
