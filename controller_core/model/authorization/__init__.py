"""Principals and Kafka's ACLs as values, and the decisions over them."""
