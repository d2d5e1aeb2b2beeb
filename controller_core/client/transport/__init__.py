"""Kontroller as a client of Kafka: requests to the controller or to a broker."""
